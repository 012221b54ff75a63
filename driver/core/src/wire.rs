// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Frame and address formats of IP over InfiniBand (RFC 4391).
//!
//! Everything that comes from the wire is parsed here before it is trusted. Big-endian throughout.

/// Bytes of the global routing header that a UD receive buffer begins with, filled or not
/// (InfiniBand Architecture 1.x, 11.4.1.2).
pub const GRH_LEN: usize = 40;

/// Bytes of the encapsulation header: a 16-bit Ethernet type and 16 reserved bits (RFC 4391, 6).
pub const ENCAP_LEN: usize = 4;

/// Bytes of a link-layer address (RFC 4391, 9.1.1).
pub const ADDRESS_LEN: usize = 20;

/// Ethernet types that the driver carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub enum EtherType {
    /// IPv4.
    Ipv4 = 0x0800,
    /// ARP, and InARP.
    Arp = 0x0806,
    /// RARP.
    Rarp = 0x8035,
    /// IPv6.
    Ipv6 = 0x86dd,
    /// TIPC.
    Tipc = 0x88ca,
}

impl EtherType {
    /// Returns the type of a number, if the driver carries it.
    #[must_use]
    pub const fn from_raw(raw: u16) -> Option<Self> {
        match raw {
            0x0800 => Some(Self::Ipv4),
            0x0806 => Some(Self::Arp),
            0x8035 => Some(Self::Rarp),
            0x86dd => Some(Self::Ipv6),
            0x88ca => Some(Self::Tipc),
            _ => None,
        }
    }
}

/// Why a received frame is dropped; each reason has a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadFrame {
    /// Shorter than its headers.
    Short,
    /// Longer than the interface takes.
    Long,
    /// An Ethernet type that IPoIB does not carry.
    EtherType,
}

/// Checks a frame that begins with its encapsulation header, and returns its type.
///
/// `length` is the whole frame's bytes from that header on, `limit` the most that the interface
/// takes. The reserved bits are ignored, as RFC 4391, 6 demands of receivers.
///
/// # Errors
///
/// Why the frame must be dropped.
pub fn check_frame(header: &[u8], length: usize, limit: usize) -> Result<EtherType, BadFrame> {
    let &[high, low, _, _, ..] = header else {
        return Err(BadFrame::Short);
    };
    if length <= ENCAP_LEN {
        return Err(BadFrame::Short);
    }
    if length > limit.saturating_add(ENCAP_LEN) {
        return Err(BadFrame::Long);
    }
    EtherType::from_raw(u16::from_be_bytes([high, low])).ok_or(BadFrame::EtherType)
}

/// Returns the encapsulation header of a frame.
#[must_use]
pub const fn encap(ether_type: u16) -> [u8; ENCAP_LEN] {
    let [high, low] = ether_type.to_be_bytes();
    [high, low, 0, 0]
}

/// A link-layer address: flags, queue pair number and GID.
///
/// It is kept in words: each packet looks for one, and a kernel has no vector registers to compare or copy bytes with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Address {
    /// Flags, queue pair number, and four bytes of the GID.
    first: u64,
    /// Eight more bytes of the GID.
    middle: u64,
    /// Its last four.
    last: u32,
}

impl Address {
    /// Flag of the first byte: the interface takes connected-mode (RC) connections (RFC 4755, 3.1).
    pub const FLAG_RC: u8 = 0x80;

    /// Returns the address of a queue pair at a port.
    #[must_use]
    pub const fn new(flags: u8, qpn: u32, gid: [u8; 16]) -> Self {
        let gid = u128::from_be_bytes(gid);
        let qpn = qpn & 0x00ff_ffff;
        Self {
            first: (flags as u64) << 56 | (qpn as u64) << 32 | (gid >> 96) as u64,
            middle: (gid >> 32) as u64,
            last: gid as u32,
        }
    }

    /// Returns the address of its bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; ADDRESS_LEN]) -> Self {
        let (first, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (middle, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        Self {
            first: u64::from_be_bytes(*first),
            middle: u64::from_be_bytes(*middle),
            last: u32::from_be_bytes(*rest.first_chunk().unwrap_or(&[0; 4])),
        }
    }

    /// Returns its bytes.
    #[must_use]
    pub const fn bytes(&self) -> [u8; ADDRESS_LEN] {
        let [a, b, c, d, e, f, g, h] = self.first.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = self.middle.to_be_bytes();
        let [q, r, s, t] = self.last.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t]
    }

    /// Returns the 24-bit queue pair number.
    #[must_use]
    pub const fn qpn(&self) -> u32 {
        (self.first >> 32) as u32 & 0x00ff_ffff
    }

    /// Returns the flags byte.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        (self.first >> 56) as u8
    }

    /// Returns the GID.
    #[must_use]
    pub const fn gid(&self) -> [u8; 16] {
        let high = (self.first as u32 as u128) << 96;
        (high | (self.middle as u128) << 32 | self.last as u128).to_be_bytes()
    }

    /// Says whether the GID is a multicast one.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        (self.first >> 24) as u8 == 0xff
    }

    /// Returns the address under which a destination is kept: without flags; that of a group with the queue pair number
    /// that multicast packets carry, and with the P_Key. The stack maps IP groups to GIDs with the P_Key that the broadcast
    /// address had at that time.
    #[must_use]
    pub const fn destination(&self, pkey: u16) -> Self {
        let mut to = *self;
        if to.is_multicast() {
            to.first = 0x00ff_ffff << 32 | to.first as u32 as u64;
            to.middle = (pkey as u64) << 48 | to.middle & 0x0000_ffff_ffff_ffff;
        } else {
            to.first &= 0x00ff_ffff_ffff_ffff;
        }
        to
    }

    /// Returns a hash of what differs between ports and groups: the queue pair number and the GID's last bytes.
    #[must_use]
    pub const fn hash(&self) -> u8 {
        let word = self.last ^ self.qpn() << 16;
        (word.wrapping_mul(0x9e37_79b1) >> 24) as u8
    }
}

/// Reads what a packet of the stack begins with: the address that it goes to, and the number of its Ethernet type.
#[must_use]
pub fn read_header(head: &[u8]) -> Option<(Address, u16)> {
    let (address, rest) = head.split_first_chunk()?;
    let encap: &[u8; ENCAP_LEN] = rest.first_chunk()?;
    let [high, low, ..] = *encap;
    Some((
        Address::from_bytes(address),
        u16::from_be_bytes([high, low]),
    ))
}

/// Returns the MGID of the broadcast group of a partition: `ff1s:401b:<P_Key>::ffff:ffff`, with the
/// scope nibble `s` (RFC 4391, 4).
#[must_use]
pub const fn broadcast_gid(pkey: u16, scope: u8) -> [u8; 16] {
    let [high, low] = (pkey | 0x8000).to_be_bytes();
    let scope = 0x10 | (scope & 0x0f);
    [
        0xff, scope, 0x40, 0x1b, high, low, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ]
}
