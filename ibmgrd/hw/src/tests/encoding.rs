// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this crate sends, against what ip(8) and ethtool(8) sent for the same change.

use super::{Capture, messages};
use crate::ethtool::{Group, named_bits};
use crate::nl::attr::{Out, attrs, bytes_of};
use crate::rtnl::{IpoibChange, LinkChange};
use crate::uapi::*;

/// Attributes as (type, payload), nests as their inside: flags of the type and padding left aside.
fn flatten(bytes: &[u8], nests: &[&[u16]], path: &[u16], out: &mut Vec<(Vec<u16>, Vec<u8>)>) {
    for attr in attrs(bytes) {
        let attr = attr.unwrap();
        let path = [path, &[attr.kind]].concat();
        if nests.contains(&&path[..]) {
            flatten(attr.value, nests, &path, out);
        } else {
            // Texts are told with or without their terminator; the kernel takes both.
            let value = attr.value.strip_suffix(&[0]).filter(|rest| rest.is_ascii());
            let is_text = path.last() == Some(&IFLA_INFO_KIND) && path.len() == 2;
            let value = if is_text {
                value.unwrap_or(attr.value)
            } else {
                attr.value
            };
            out.push((path, value.to_vec()));
        }
    }
}

/// Compares a change with `ip link set`, whose interface had index 3.
#[track_caller]
fn like_ip(name: &str, change: LinkChange) {
    let sent = Capture::read(&format!("iproute2-6.1/{name}")).sent;
    let theirs = messages(&sent[0]).remove(0);
    assert_eq!(theirs.kind, libc::RTM_NEWLINK);
    let ours = change.request();
    assert_eq!(ours.body()[..16], theirs.body[..16], "the header");
    let nests: [&[u16]; 2] = [&[IFLA_LINKINFO], &[IFLA_LINKINFO, IFLA_INFO_DATA]];
    let (mut our_attrs, mut their_attrs) = (Vec::new(), Vec::new());
    flatten(&ours.body()[16..], &nests, &[], &mut our_attrs);
    flatten(&theirs.body[16..], &nests, &[], &mut their_attrs);
    assert_eq!(our_attrs, their_attrs);
}

#[test]
fn link_changes_are_those_of_ip() {
    let v0 = || LinkChange::of(3);
    like_ip(
        "set-mtu",
        LinkChange {
            mtu: Some(1400),
            ..v0()
        },
    );
    like_ip(
        "set-up",
        LinkChange {
            up: Some(true),
            ..v0()
        },
    );
    like_ip(
        "set-down",
        LinkChange {
            up: Some(false),
            ..v0()
        },
    );
    like_ip(
        "set-txqueuelen",
        LinkChange {
            tx_queue_len: Some(77),
            ..v0()
        },
    );
    like_ip(
        "set-alias",
        LinkChange {
            alias: Some("rail 0".to_owned()),
            ..v0()
        },
    );
    like_ip(
        "clear-alias",
        LinkChange {
            alias: Some(String::new()),
            ..v0()
        },
    );
    like_ip(
        "set-gso",
        LinkChange {
            gso_max_size: Some(60_000),
            ..v0()
        },
    );
    like_ip(
        "set-gro",
        LinkChange {
            gro_max_size: Some(60_000),
            ..v0()
        },
    );
    let kind = "ipoib".to_owned();
    let ipoib = IpoibChange {
        kind,
        mode: Some(1),
        umcast: Some(1),
        own: Vec::new(),
    };
    like_ip(
        "set-ipoib",
        LinkChange {
            ipoib: Some(ipoib),
            ..v0()
        },
    );
}

#[test]
fn own_attributes_go_into_the_drivers_data() {
    let own = vec![(32, 2), (33, 64)];
    let ipoib = IpoibChange {
        kind: "ipoib_batch".to_owned(),
        own,
        ..IpoibChange::default()
    };
    let request = LinkChange {
        ipoib: Some(ipoib),
        ..LinkChange::of(3)
    }
    .request();
    let nests: [&[u16]; 2] = [&[IFLA_LINKINFO], &[IFLA_LINKINFO, IFLA_INFO_DATA]];
    let mut flat = Vec::new();
    flatten(&request.body()[16..], &nests, &[], &mut flat);
    let data = |kind| vec![IFLA_LINKINFO, IFLA_INFO_DATA, kind];
    assert_eq!(
        flat[0],
        (vec![IFLA_LINKINFO, IFLA_INFO_KIND], b"ipoib_batch".to_vec())
    );
    assert_eq!(flat[1], (data(32), 2_u32.to_ne_bytes().to_vec()));
    assert_eq!(flat[2], (data(33), 64_u32.to_ne_bytes().to_vec()));
}

/// Compares with `ethtool`, leaving out the header, which names the device in another way.
#[track_caller]
fn like_ethtool(name: &str, command: u8, ours: &[Out]) {
    let sent = Capture::read(&format!("ethtool-6.1/{name}")).sent;
    let theirs = messages(&sent[0]).remove(0);
    assert_eq!(theirs.body[0], command);
    let theirs: Vec<_> = attrs(&theirs.body[4..])
        .map(|attr| attr.unwrap())
        .filter(|attr| attr.kind != ETHTOOL_A_COALESCE_HEADER)
        .map(|attr| (attr.kind, attr.value.to_vec()))
        .collect();
    let ours = bytes_of(ours);
    let ours: Vec<_> = attrs(&ours)
        .map(|attr| attr.unwrap())
        .map(|attr| (attr.kind, attr.value.to_vec()))
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn ethtool_changes_are_those_of_ethtool() {
    let frames = Group::Coalesce.encode(&[(ETHTOOL_A_COALESCE_RX_MAX_FRAMES, 9)]);
    like_ethtool("coalesce", ETHTOOL_MSG_COALESCE_SET, &frames);
    let adaptive = Group::Coalesce.encode(&[
        (ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, 1),
        (ETHTOOL_A_COALESCE_TX_USECS, 3),
    ]);
    like_ethtool("adaptive", ETHTOOL_MSG_COALESCE_SET, &adaptive);
    let channels = [
        (ETHTOOL_A_CHANNELS_RX_COUNT, 2),
        (ETHTOOL_A_CHANNELS_TX_COUNT, 1),
    ];
    like_ethtool(
        "channels",
        ETHTOOL_MSG_CHANNELS_SET,
        &Group::Channels.encode(&channels),
    );
    let rings = [(ETHTOOL_A_RINGS_RX, 128), (ETHTOOL_A_RINGS_TX, 64)];
    like_ethtool("rings", ETHTOOL_MSG_RINGS_SET, &Group::Rings.encode(&rings));
    let bits = [("rx-gro-list", true), ("tx-udp-segmentation", false)];
    let features = [named_bits(ETHTOOL_A_FEATURES_WANTED, &bits)];
    like_ethtool("features", ETHTOOL_MSG_FEATURES_SET, &features);
    let flags = [named_bits(
        ETHTOOL_A_PRIVFLAGS_FLAGS,
        &[("link-down-on-close", true)],
    )];
    like_ethtool("private-flags", ETHTOOL_MSG_PRIVFLAGS_SET, &flags);
}
