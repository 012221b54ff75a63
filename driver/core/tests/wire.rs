// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Frame and address formats, byte by byte.
#![cfg(not(loom))]

use ipoib_core::refill;
use ipoib_core::wire::{Address, BadFrame, EtherType, broadcast_gid, check_frame, encap};
use proptest::prelude::*;

#[test]
fn an_address_is_flags_qpn_and_gid() {
    let gid = [
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef,
    ];
    let address = Address::new(Address::FLAG_RC, 0x12_3456, gid);
    assert_eq!(address.bytes()[..4], [0x80, 0x12, 0x34, 0x56]);
    assert_eq!(address.bytes()[4..], gid);
    assert_eq!(
        (address.flags(), address.qpn(), address.gid()),
        (0x80, 0x12_3456, gid)
    );
    assert!(!address.is_multicast());
}

#[test]
fn the_broadcast_group_carries_the_full_member_pkey() {
    let gid = broadcast_gid(0x0001, 2);
    assert_eq!(gid[..6], [0xff, 0x12, 0x40, 0x1b, 0x80, 0x01]);
    assert_eq!(gid[12..], [0xff; 4]);
    assert!(Address::new(0, 0xff_ffff, gid).is_multicast());
}

#[test]
fn frames_are_checked_before_they_are_trusted() {
    assert_eq!(check_frame(&encap(0x0800), 24, 2044), Ok(EtherType::Ipv4));
    assert_eq!(
        check_frame(&[0x08, 0x06, 0xff, 0xff], 24, 2044),
        Ok(EtherType::Arp),
        "reserved bits"
    );
    assert_eq!(
        check_frame(&[0x08, 0x00, 0x00], 3, 2044),
        Err(BadFrame::Short)
    );
    assert_eq!(
        check_frame(&encap(0x0800), 4, 2044),
        Err(BadFrame::Short),
        "no payload"
    );
    assert_eq!(check_frame(&encap(0x0800), 2048, 2044), Ok(EtherType::Ipv4));
    assert_eq!(check_frame(&encap(0x0800), 2049, 2044), Err(BadFrame::Long));
    assert_eq!(
        check_frame(&encap(0x1234), 24, 2044),
        Err(BadFrame::EtherType)
    );
}

#[test]
fn receive_buffers_are_posted_in_chains_and_never_run_short() {
    assert!(!refill::is_due(0, 0, 256));
    assert!(!refill::is_due(15, 241, 256));
    assert!(refill::is_due(16, 240, 256));
    assert!(refill::is_due(1, 128, 256), "half empty is hurry");
    assert!(refill::is_copied(256, 256) && !refill::is_copied(257, 256));
    assert!(!refill::is_copied(0, 0), "0 turns it off");
}

proptest! {
    #[test]
    fn no_bytes_confuse_the_frame_check(header in prop::collection::vec(any::<u8>(), 0..8), length: usize) {
        let _ = check_frame(&header, length, 2044);
    }
}
