// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Headers of segments against a plain checksum of the whole packet.
#![cfg(not(loom))]

use ipoib_core::segment::{Headers, Piece};
use proptest::prelude::*;

/// RFC 1071, byte by byte: the sum of big-endian words.
fn plain(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum = 0_u64;
    for word in bytes.chunks(2) {
        sum += u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The kernel's `__wsum` of a payload: words in memory order.
fn wsum(bytes: &[u8]) -> u32 {
    let mut sum = 0_u64;
    for word in bytes.chunks(2) {
        sum += u64::from(u16::from_ne_bytes([
            word[0],
            word.get(1).copied().unwrap_or(0),
        ]));
    }
    while sum >> 32 != 0 {
        sum = (sum & 0xffff_ffff) + (sum >> 32);
    }
    sum as u32
}

fn large(v6: bool, tcp: bool, noise: &[u8; 128]) -> (Vec<u8>, Headers) {
    let mut bytes = noise[..4].to_vec();
    let ip = if v6 { 40 } else { 20 };
    let transport = 4 + ip;
    bytes.extend(&noise[4..transport]);
    bytes[4] = if v6 { 0x60 } else { 0x45 };
    let own = if tcp { 32 } else { 8 };
    bytes.extend(&noise[transport..transport + own]);
    let headers = Headers {
        ip: 4,
        transport,
        length: transport + own,
        tcp,
    };
    (bytes, headers)
}

proptest! {
    #[test]
    fn a_piece_is_a_valid_packet(
        v6: bool, tcp: bool, last: bool,
        noise in prop::array::uniform32(any::<[u8; 4]>()),
        index in 0_u32..64, offset in 0_u32..65_000,
        payload in prop::collection::vec(any::<u8>(), 1..2100),
    ) {
        let noise: [u8; 128] = noise.concat().try_into().unwrap();
        let (before, headers) = large(v6, tcp, &noise);
        let mut bytes = before.clone();
        let length = payload.len() as u32;
        let sum = wsum(&payload);
        let sums = headers.sums(&before).unwrap();
        let done = headers.write(&mut bytes, &sums, Piece { index, offset, length, last, sum });
        prop_assert!(done);
        let (network, transport) = bytes[4..].split_at(headers.transport - 4);
        let inside = (transport.len() + payload.len()) as u16;
        let protocol = if tcp { 6 } else { 17 };
        let addresses = if v6 {
            prop_assert_eq!(&network[4..6], &inside.to_be_bytes());
            &network[8..40]
        } else {
            prop_assert_eq!(&network[2..4], &(inside + 20).to_be_bytes());
            prop_assert_eq!(plain(&[network]), 0xffff);
            let id = u16::from_be_bytes([before[8], before[9]]).wrapping_add(index as u16);
            prop_assert_eq!(&network[4..6], &id.to_be_bytes());
            &network[12..20]
        };
        let pseudo = [&inside.to_be_bytes()[..], &[0, protocol]].concat();
        prop_assert_eq!(plain(&[addresses, &pseudo, transport, &payload]), 0xffff);
        if tcp {
            let at = headers.transport;
            let first = u32::from_be_bytes(before[at + 4..at + 8].try_into().unwrap());
            prop_assert_eq!(&transport[4..8], &first.wrapping_add(offset).to_be_bytes());
            let kept = (if last { 0xff } else { !0x09 }) & (if index > 0 { !0x80 } else { 0xff });
            prop_assert_eq!(transport[13], before[at + 13] & kept);
        } else {
            prop_assert_eq!(&transport[4..6], &inside.to_be_bytes());
            prop_assert_ne!(&transport[6..8], &[0, 0]);
        }
    }

    #[test]
    fn nonsense_is_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..128),
        ip in 0_usize..140, transport in 0_usize..140, length in 0_usize..140, tcp: bool,
    ) {
        let mut bytes = bytes;
        let piece = Piece { index: 1, offset: 2, length: 70_000, last: false, sum: 9 };
        let headers = Headers { ip, transport, length, tcp };
        if let Some(sums) = headers.sums(&bytes) {
            let done = headers.write(&mut bytes, &sums, piece);
            prop_assert!(!done, "70 000 bytes do not fit a packet");
        }
    }
}
