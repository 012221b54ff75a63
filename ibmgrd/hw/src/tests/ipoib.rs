// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured messages of the stock ib_ipoib: two ports, and a P_Key child of each kind.

use super::Capture;
use crate::ethtool::{Answer, Ask, Features, Group, decode_feature_names};
use crate::netdev::Napi;
use crate::rtnl::Link;
use crate::uapi::*;

fn links(name: &str) -> Vec<Link> {
    let messages = Capture::read(&format!("linux-6.12-ipoib/{name}")).messages();
    messages
        .iter()
        .map(|message| Link::decode(&message.body).unwrap())
        .collect()
}

fn link<'a>(links: &'a [Link], name: &str) -> &'a Link {
    links.iter().find(|link| link.name == name).unwrap()
}

#[test]
fn a_port_in_datagram_mode() {
    let links = links("datagram-links");
    let ib0 = link(&links, "ib0");
    assert_eq!(ib0.kind.as_deref(), Some("ipoib"));
    assert_eq!(ib0.hw_type, ARPHRD_INFINIBAND);
    assert_eq!(
        (ib0.mtu, ib0.min_mtu, ib0.max_mtu),
        (2044, Some(0), Some(65520))
    );
    assert!(ib0.is_up() && ib0.carrier == Some(true));
    assert_eq!(ib0.parent_device.as_deref(), Some("vhca.0"));
    assert_eq!(ib0.link, None);
    // Flags and QPN, the subnet prefix, the port's GUID (RFC 4391, 9.1.1).
    let address = ib0.address.as_bytes();
    assert_eq!(address.len(), 20);
    assert_eq!(address[0] & 0x80, 0x80, "connected mode is possible");
    assert_eq!(address[4..12], [0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ib0.permanent_address.as_ref(), Some(&ib0.address));
    let info = ib0.ipoib.as_ref().unwrap();
    assert_eq!(
        (info.pkey, info.mode, info.umcast),
        (Some(0xffff), Some(0), Some(0))
    );
    assert_eq!(info.other, []);
    assert_eq!(info.own(32), None);
}

#[test]
fn children_know_their_parent_and_partition() {
    let links = links("datagram-links");
    for (child, parent, pkey) in [("ib0.rtnl", "ib0", 0xffff), ("ib1.8001", "ib1", 0x8001)] {
        let (child, parent) = (link(&links, child), link(&links, parent));
        assert_eq!(child.link, Some(parent.index));
        assert_eq!(child.kind.as_deref(), Some("ipoib"));
        assert_eq!(child.ipoib.as_ref().unwrap().pkey, Some(pkey));
        let guid = |link: &Link| link.address.as_bytes()[12..].to_vec();
        assert_eq!(guid(child), guid(parent));
        assert_ne!(child.address, parent.address, "their queue pairs differ");
    }
}

#[test]
fn connected_mode_brings_its_mtu() {
    let (before, after) = (links("datagram-links"), links("connected-links"));
    for name in ["ib0", "ib0.rtnl", "ib1.8001"] {
        let (before, after) = (link(&before, name), link(&after, name));
        assert_eq!(before.ipoib.as_ref().unwrap().mode, Some(0));
        assert_eq!(after.ipoib.as_ref().unwrap().mode, Some(1));
        assert_eq!((before.mtu, after.mtu), (2044, 65520), "{name}");
    }
    assert_eq!(
        link(&before, "ib1"),
        link(&after, "ib1"),
        "it was not touched"
    );
}

#[test]
fn the_driver_takes_two_coalescing_parameters() {
    for name in ["ib0", "ib0.rtnl", "ib1.8001"] {
        let body = Capture::read(&format!("linux-6.12-ipoib/{name}-coalesce")).body();
        let Ok(Answer::Params(params)) = Ask::Params(Group::Coalesce).decode(&body) else {
            panic!("{name}");
        };
        let kinds: Vec<u16> = params.values.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                ETHTOOL_A_COALESCE_RX_USECS,
                ETHTOOL_A_COALESCE_RX_MAX_FRAMES
            ]
        );
    }
}

#[test]
fn napi_instances_of_this_kernel_have_no_settings() {
    let messages = Capture::read("linux-6.12-ipoib/ib0-napis").messages();
    let napis: Vec<_> = messages
        .iter()
        .map(|m| Napi::decode(&m.body).unwrap())
        .collect();
    assert_eq!(napis.len(), 2, "one for receiving, one for sending");
    for napi in napis {
        assert!(napi.id > 0);
        assert_eq!(
            (napi.gro_flush_timeout, napi.defer_hard_irqs, napi.threaded),
            (None, None, None)
        );
    }
}

#[test]
fn features() {
    let names = Capture::read("linux-6.12-ipoib/feature-names").body();
    let names = decode_feature_names(&names).unwrap();
    let bit = |name: &str| u32::try_from(names.iter().position(|n| n == name).unwrap()).unwrap();
    let body = Capture::read("linux-6.12-ipoib/ib0-features").body();
    let Ok(Answer::Features(features)) = Ask::Features.decode(&body) else {
        panic!("no features");
    };
    let Features {
        hardware,
        active,
        unchangeable,
        ..
    } = *features;
    assert!(active.has(bit("rx-gro")) && hardware.has(bit("rx-gro")));
    assert!(active.has(bit("tx-scatter-gather")) && !hardware.has(bit("tx-scatter-gather")));
    assert!(active.has(bit("vlan-challenged")) && unchangeable.has(bit("vlan-challenged")));
}
