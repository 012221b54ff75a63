// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Headers of the packets that a large one is cut into.
//!
//! The stack hands a large TCP or UDP packet over as one (`NETIF_F_TSO`, `NETIF_F_GSO_UDP_L4`). Each piece of its payload
//! goes out behind a copy of its headers in which lengths, sequence number, flags and checksums are its own: RFC 9293,
//! 3.1 (TCP), RFC 768 (UDP), RFC 791 and RFC 8200 (IP). Checksums are taken over 16-bit words in memory order, which RFC
//! 1071 allows, as the kernel's `__wsum` is.

/// Most bytes of headers, the encapsulation header included.
pub const MAX_HEADER: usize = 128;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Where the headers of a large packet are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Headers {
    /// Offset of the IP header.
    pub ip: usize,
    /// Offset of the TCP or UDP header.
    pub transport: usize,
    /// Bytes of all headers.
    pub length: usize,
    /// TCP; UDP otherwise.
    pub tcp: bool,
}

/// One piece of the payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Its number, from 0.
    pub index: u32,
    /// Bytes of payload before it.
    pub offset: u32,
    /// Its bytes.
    pub length: u32,
    /// Nothing follows it.
    pub last: bool,
    /// The partial checksum of its bytes.
    pub sum: u32,
}

impl Headers {
    /// Turns a copy of the large packet's headers into those of a piece. False: they are no headers of TCP or UDP over
    /// IPv4 or IPv6, or are cut.
    #[must_use]
    pub fn write(&self, headers: &mut [u8], piece: Piece) -> bool {
        self.try_write(headers, piece).is_some()
    }

    fn try_write(&self, headers: &mut [u8], piece: Piece) -> Option<()> {
        let headers = headers.get_mut(..self.length)?;
        let after_ip = self.length.checked_sub(self.transport)?;
        let (before, transport) = headers.split_at_mut_checked(self.transport)?;
        let network = before.get_mut(self.ip..)?;
        let bytes = u32::try_from(after_ip).ok()?.checked_add(piece.length)?;
        let mut sum = match network.first()? >> 4 {
            4 => Self::write_v4(network, bytes, piece.index)?,
            6 => Self::write_v6(network, bytes)?,
            _ => return None,
        };
        sum = add(sum, u32::from(swap(bytes as u16)));
        sum = add(
            sum,
            u32::from(swap(u16::from(if self.tcp { TCP } else { UDP }))),
        );
        sum = add(sum, piece.sum);
        if self.tcp {
            Self::write_tcp(transport, piece, sum)
        } else {
            Self::write_udp(transport, bytes, sum)
        }
    }

    /// Returns the sum of the addresses.
    fn write_v4(header: &mut [u8], bytes: u32, index: u32) -> Option<u32> {
        let total = bytes.checked_add(u32::try_from(header.len()).ok()?)?;
        let id = be16(header, 4)?.wrapping_add(index as u16);
        put16(header, 2, u16::try_from(total).ok()?)?;
        put16(header, 4, id)?;
        put16(header, 10, 0)?;
        let checksum = !fold(sum(0, header));
        header
            .get_mut(10..12)?
            .copy_from_slice(&checksum.to_ne_bytes());
        Some(sum(0, header.get(12..20)?))
    }

    fn write_v6(header: &mut [u8], bytes: u32) -> Option<u32> {
        let extensions = u32::try_from(header.len().checked_sub(40)?).ok()?;
        put16(
            header,
            4,
            u16::try_from(bytes.checked_add(extensions)?).ok()?,
        )?;
        Some(sum(0, header.get(8..40)?))
    }

    fn write_tcp(header: &mut [u8], piece: Piece, mut total: u32) -> Option<()> {
        let sequence: &mut [u8; 4] = header.get_mut(4..8)?.first_chunk_mut()?;
        *sequence = u32::from_be_bytes(*sequence)
            .wrapping_add(piece.offset)
            .to_be_bytes();
        let flags = header.get_mut(13)?;
        if !piece.last {
            *flags &= !(FIN | PSH);
        }
        if piece.index > 0 {
            *flags &= !CWR;
        }
        put16(header, 16, 0)?;
        total = sum(total, header);
        let checksum = !fold(total);
        header
            .get_mut(16..18)?
            .copy_from_slice(&checksum.to_ne_bytes());
        Some(())
    }

    fn write_udp(header: &mut [u8], bytes: u32, mut total: u32) -> Option<()> {
        put16(header, 4, u16::try_from(bytes).ok()?)?;
        put16(header, 6, 0)?;
        total = sum(total, header);
        // 0 would say that there is no checksum.
        let checksum = match !fold(total) {
            0 => 0xffff,
            other => other,
        };
        header
            .get_mut(6..8)?
            .copy_from_slice(&checksum.to_ne_bytes());
        Some(())
    }
}

/// A number in network order, as a word in memory order.
const fn swap(value: u16) -> u16 {
    u16::from_ne_bytes(value.to_be_bytes())
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|two| u16::from_be_bytes(*two))
}

fn put16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}

/// Adds with the carry at the lower end.
const fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as u32)
}

/// Adds the 16-bit words of some bytes; an odd one at the end counts as one before a zero.
fn sum(mut total: u32, bytes: &[u8]) -> u32 {
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        if let Some(four) = word.first_chunk() {
            total = add(total, u32::from_ne_bytes(*four));
        }
    }
    for word in words.remainder().chunks(2) {
        let two = [
            word.first().copied().unwrap_or(0),
            word.get(1).copied().unwrap_or(0),
        ];
        total = add(total, u32::from(u16::from_ne_bytes(two)));
    }
    total
}

/// Folds a sum to 16 bits.
const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff).wrapping_add(sum >> 16);
    (once & 0xffff).wrapping_add(once >> 16) as u16
}
