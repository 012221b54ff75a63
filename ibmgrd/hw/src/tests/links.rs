// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured link messages.

use netlink_packet_core::Parseable;
use netlink_packet_route::link::{InfoData, InfoIpoib, LinkAttribute, LinkInfo, LinkMessage, Prop};

use super::{Capture, all_captures};
use crate::rtnl::Link;

#[test]
fn a_veth_is_as_ip_shows_it() {
    let link = Link::decode(&Capture::read("linux-6.18/v0-link").body()).unwrap();
    assert_eq!(link.name, "v0");
    assert_eq!(link.alt_names, ["a-much-longer-name-than-15"]);
    assert_eq!(link.kind.as_deref(), Some("veth"));
    assert_eq!(link.hw_type, 1);
    assert!(link.is_up());
    assert_eq!(link.carrier, Some(true));
    assert_eq!(
        (link.mtu, link.min_mtu, link.max_mtu),
        (1500, Some(68), Some(65535))
    );
    assert_eq!(
        (link.tx_queue_len, link.tx_queues, link.rx_queues),
        (1000, Some(4), Some(4))
    );
    assert_eq!(link.address.as_bytes().len(), 6);
    assert_eq!(
        (link.gso_max_size, link.tso_max_size),
        (Some(65536), Some(524_280))
    );
    assert_eq!(link.gro_max_size, Some(65536));
    assert_eq!(link.alias, None);
    assert_eq!(link.ipoib, None);
    assert!(link.link.is_some(), "the other end");
}

#[test]
fn a_list_has_every_interface_in_order() {
    let messages = Capture::read("linux-6.18/links").messages();
    let links: Vec<_> = messages
        .iter()
        .map(|m| Link::decode(&m.body).unwrap())
        .collect();
    let names: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["lo", "v1", "v0", "t0"]);
    assert!(links.is_sorted_by_key(|link| link.index));
    assert_eq!(links[1].alias.as_deref(), Some("to the left"));
    assert_eq!(links[3].kind.as_deref(), Some("tun"));
    assert_eq!(
        links[3].address.as_bytes(),
        [] as [u8; 0],
        "a tun device has no address"
    );
}

/// Every link message of every capture, against the decoder of netlink-packet-route.
#[test]
fn another_decoder_sees_the_same() {
    let mut compared = 0;
    for name in all_captures() {
        for message in Capture::read(&name).messages() {
            // The generic controller has the same number as RTM_NEWLINK.
            if message.kind == libc::RTM_NEWLINK && !name.contains("/family-") {
                let theirs = LinkMessage::parse(&message.body).unwrap();
                compare(&Link::decode(&message.body).unwrap(), &theirs);
                compared += 1;
            }
        }
    }
    assert!(compared >= 6, "{compared}");
}

fn compare(ours: &Link, theirs: &LinkMessage) {
    assert_eq!(ours.index, theirs.header.index);
    assert_eq!(ours.flags, theirs.header.flags.bits());
    assert_eq!(ours.hw_type, u16::from(theirs.header.link_layer_type));
    let name = &ours.name;
    for attribute in &theirs.attributes {
        match attribute {
            LinkAttribute::IfName(value) => assert_eq!(ours.name, *value),
            LinkAttribute::Mtu(value) => assert_eq!(ours.mtu, *value, "{name}"),
            LinkAttribute::MinMtu(value) => assert_eq!(ours.min_mtu, Some(*value), "{name}"),
            LinkAttribute::MaxMtu(value) => assert_eq!(ours.max_mtu, Some(*value), "{name}"),
            LinkAttribute::TxQueueLen(value) => assert_eq!(ours.tx_queue_len, *value, "{name}"),
            LinkAttribute::IfAlias(value) => assert_eq!(ours.alias.as_ref(), Some(value)),
            LinkAttribute::Address(value) => assert_eq!(ours.address.as_bytes(), value),
            LinkAttribute::PermAddress(value) => {
                assert_eq!(ours.permanent_address.unwrap().as_bytes(), value);
            }
            LinkAttribute::OperState(value) => assert_eq!(ours.operstate, u8::from(*value)),
            LinkAttribute::Carrier(value) => assert_eq!(ours.carrier, Some(*value != 0)),
            LinkAttribute::Link(value) => assert_eq!(ours.link, Some(*value), "{name}"),
            LinkAttribute::LinkNetNsId(value) => assert_eq!(ours.link_netns, Some(*value)),
            LinkAttribute::Controller(value) => assert_eq!(ours.master, Some(*value)),
            LinkAttribute::ParentDevName(value) => {
                assert_eq!(ours.parent_device.as_ref(), Some(value));
            }
            LinkAttribute::GsoMaxSize(value) => assert_eq!(ours.gso_max_size, Some(*value)),
            LinkAttribute::GroMaxSize(value) => assert_eq!(ours.gro_max_size, Some(*value)),
            LinkAttribute::TsoMaxSize(value) => assert_eq!(ours.tso_max_size, Some(*value)),
            LinkAttribute::NumTxQueues(value) => assert_eq!(ours.tx_queues, Some(*value)),
            LinkAttribute::NumRxQueues(value) => assert_eq!(ours.rx_queues, Some(*value)),
            LinkAttribute::PropList(props) => {
                let names = props.iter().filter_map(|prop| match prop {
                    Prop::AltIfName(name) => Some(name.clone()),
                    _ => None,
                });
                assert_eq!(ours.alt_names, names.collect::<Vec<_>>());
            }
            LinkAttribute::LinkInfo(infos) => compare_info(ours, infos),
            _ => {}
        }
    }
}

fn compare_info(ours: &Link, infos: &[LinkInfo]) {
    for info in infos {
        match info {
            LinkInfo::Kind(kind) => assert_eq!(ours.kind, Some(kind.to_string())),
            LinkInfo::Data(InfoData::Ipoib(theirs)) => {
                let ours = ours.ipoib.as_ref().unwrap();
                for info in theirs {
                    match info {
                        InfoIpoib::Pkey(value) => assert_eq!(ours.pkey, Some(*value)),
                        InfoIpoib::Mode(value) => assert_eq!(ours.mode, Some((*value).into())),
                        InfoIpoib::UmCast(value) => assert_eq!(ours.umcast, Some(*value)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
