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

/// Sums of what all pieces have in common, over 16-bit words: see [`Headers::sums`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sums {
    /// Of the IPv4 header; `None` for IPv6, whose header has no checksum.
    network: Option<u32>,
    /// Of the pseudo header and the transport header.
    transport: u32,
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
    /// Sums what the headers of all pieces have in common: everything but lengths, IP identification, sequence number,
    /// flags and checksums. `None`: they are no headers of TCP or UDP over IPv4 or IPv6, or are cut.
    #[must_use]
    pub fn sums(&self, headers: &[u8]) -> Option<Sums> {
        let headers = headers.get(..self.length)?;
        let network = headers.get(self.ip..self.transport)?;
        let transport = headers.get(self.transport..)?;
        let (network, addresses) = match network.first()? >> 4 {
            4 => {
                // Without total length, identification and checksum.
                let own = sum(sum(0, network.get(..2)?), network.get(6..10)?);
                let addresses = sum(0, network.get(12..20)?);
                let rest = sum(0, network.get(20..)?);
                (Some(add(add(own, addresses), rest)), addresses)
            }
            6 => (None, sum(0, network.get(8..40)?)),
            _ => return None,
        };
        let protocol = if self.tcp { TCP } else { UDP };
        let mut total = add(addresses, u32::from(swap(u16::from(protocol))));
        total = sum(total, transport.get(..4)?);
        if self.tcp {
            // Without sequence number, offset with flags, and checksum.
            total = sum(total, transport.get(8..12)?);
            total = sum(total, transport.get(14..16)?);
            total = sum(total, transport.get(18..)?);
        }
        Some(Sums {
            network,
            transport: total,
        })
    }

    /// Turns a copy of the large packet's headers into those of a piece. False: they are not what they were summed as, or
    /// the piece is too long.
    #[must_use]
    pub fn write(&self, headers: &mut [u8], sums: &Sums, piece: Piece) -> bool {
        self.try_write(headers, sums, piece).is_some()
    }

    fn try_write(&self, headers: &mut [u8], sums: &Sums, piece: Piece) -> Option<()> {
        let headers = headers.get_mut(..self.length)?;
        let after_ip = self.length.checked_sub(self.transport)?;
        let (before, transport) = headers.split_at_mut_checked(self.transport)?;
        let network = before.get_mut(self.ip..)?;
        let bytes = u32::try_from(after_ip).ok()?.checked_add(piece.length)?;
        match sums.network {
            Some(common) => Self::write_v4(network, common, bytes, piece.index)?,
            None => Self::write_v6(network, bytes)?,
        }
        let total = add(sums.transport, u32::from(swap(bytes as u16)));
        let total = add(total, piece.sum);
        if self.tcp {
            Self::write_tcp(transport, piece, total)
        } else {
            Self::write_udp(transport, bytes, total)
        }
    }

    fn write_v4(header: &mut [u8], common: u32, bytes: u32, index: u32) -> Option<()> {
        let total = u32::try_from(header.len()).ok()?.checked_add(bytes)?;
        let total = u16::try_from(total).ok()?;
        let header: &mut [u8; 12] = header.first_chunk_mut()?;
        let length: &mut [u8; 4] = header.get_mut(2..6)?.first_chunk_mut()?;
        let [_, _, high, low] = *length;
        let id = u16::from_be_bytes([high, low]).wrapping_add(index as u16);
        let ([a, b], [c, d]) = (total.to_be_bytes(), id.to_be_bytes());
        *length = [a, b, c, d];
        let sum = add(common, u32::from(swap(total)));
        let checksum: &mut [u8; 2] = header.get_mut(10..12)?.first_chunk_mut()?;
        *checksum = (!fold(add(sum, u32::from(swap(id))))).to_ne_bytes();
        Some(())
    }

    fn write_v6(header: &mut [u8], bytes: u32) -> Option<()> {
        let extensions = u32::try_from(header.len().checked_sub(40)?).ok()?;
        let length = u16::try_from(bytes.checked_add(extensions)?).ok()?;
        put16(header, 4, length)
    }

    fn write_tcp(header: &mut [u8], piece: Piece, total: u32) -> Option<()> {
        // Of known length: no bound is checked below.
        let header: &mut [u8; 20] = header.first_chunk_mut()?;
        let sequence: &mut [u8; 4] = header.get_mut(4..8)?.first_chunk_mut()?;
        *sequence = u32::from_be_bytes(*sequence)
            .wrapping_add(piece.offset)
            .to_be_bytes();
        let mut total = add(total, u32::from_ne_bytes(*sequence));
        let offset: &mut [u8; 2] = header.get_mut(12..14)?.first_chunk_mut()?;
        let [_, flags] = offset;
        if !piece.last {
            *flags &= !(FIN | PSH);
        }
        if piece.index > 0 {
            *flags &= !CWR;
        }
        total = add(total, u32::from(u16::from_ne_bytes(*offset)));
        let checksum: &mut [u8; 2] = header.get_mut(16..18)?.first_chunk_mut()?;
        *checksum = (!fold(total)).to_ne_bytes();
        Some(())
    }

    fn write_udp(header: &mut [u8], bytes: u32, total: u32) -> Option<()> {
        let length = u16::try_from(bytes).ok()?;
        let own: &mut [u8; 4] = header.get_mut(4..8)?.first_chunk_mut()?;
        // 0 would say that there is no checksum.
        let checksum = match !fold(add(total, u32::from(swap(length)))) {
            0 => 0xffff,
            other => other,
        };
        let ([a, b], [c, d]) = (length.to_be_bytes(), checksum.to_ne_bytes());
        *own = [a, b, c, d];
        Some(())
    }
}

/// A number in network order, as a word in memory order.
const fn swap(value: u16) -> u16 {
    u16::from_ne_bytes(value.to_be_bytes())
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
