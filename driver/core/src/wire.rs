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
#[derive(Clone, Copy, Debug, Eq)]
pub struct Address(pub [u8; ADDRESS_LEN]);

/// By words: the kernel's `memcmp` goes byte by byte, for each packet.
impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Address {
    /// Flag of the first byte: the interface takes connected-mode (RC) connections (RFC 4755, 3.1).
    pub const FLAG_RC: u8 = 0x80;

    /// Returns the address of a queue pair at a port.
    #[must_use]
    pub const fn new(flags: u8, qpn: u32, gid: [u8; 16]) -> Self {
        let [_, high, mid, low] = qpn.to_be_bytes();
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = gid;
        Self([
            flags, high, mid, low, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p,
        ])
    }

    const fn words(&self) -> (u64, u64, u32) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = self.0;
        (
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
            u32::from_ne_bytes([q, r, s, t]),
        )
    }

    /// Returns the 24-bit queue pair number.
    #[must_use]
    pub const fn qpn(&self) -> u32 {
        let [_, high, mid, low, ..] = self.0;
        u32::from_be_bytes([0, high, mid, low])
    }

    /// Returns the flags byte.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        let [flags, ..] = self.0;
        flags
    }

    /// Returns the GID.
    #[must_use]
    pub const fn gid(&self) -> [u8; 16] {
        let [_, _, _, _, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.0;
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// Says whether the GID is a multicast one.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        let [_, _, _, _, first, ..] = self.0;
        first == 0xff
    }
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
