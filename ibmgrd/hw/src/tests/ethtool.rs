// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured messages of the generic netlink families.

use ethtool::{EthtoolAttr, EthtoolChannelAttr, EthtoolCoalesceAttr, EthtoolMessage};
use netlink_packet_core::{Nla, ParseableParametrized};
use netlink_packet_generic::GenlHeader;

use super::Capture;
use crate::ethtool::{Answer, Ask, Features, Group, Params, decode_feature_names};
use crate::genl::Family;
use crate::netdev::Napi;
use crate::uapi::*;

fn params(name: &str, group: Group) -> Params {
    match Ask::Params(group)
        .decode(&Capture::read(name).body())
        .unwrap()
    {
        Answer::Params(params) => params,
        other => panic!("{other:?}"),
    }
}

fn features(body: &[u8]) -> Features {
    match Ask::Features.decode(body).unwrap() {
        Answer::Features(features) => *features,
        other => panic!("{other:?}"),
    }
}

#[test]
fn channels_of_a_veth() {
    let channels = params("linux-6.18/v0-channels", Group::Channels);
    assert_eq!(channels.get(ETHTOOL_A_CHANNELS_RX_MAX), Some(4));
    assert_eq!(channels.get(ETHTOOL_A_CHANNELS_TX_MAX), Some(4));
    assert_eq!(channels.get(ETHTOOL_A_CHANNELS_RX_COUNT), Some(4));
    assert_eq!(channels.get(ETHTOOL_A_CHANNELS_COMBINED_COUNT), None);
    assert_eq!(channels.other, []);
}

#[test]
fn a_tun_device_has_one_coalescing_parameter() {
    let coalesce = params("linux-6.18/t0-coalesce", Group::Coalesce);
    assert_eq!(coalesce.values, [(ETHTOOL_A_COALESCE_RX_MAX_FRAMES, 7)]);
}

#[test]
fn every_device_of_a_list_has_its_index() {
    let messages = Capture::read("linux-6.18/all-features").messages();
    let mut indices: Vec<_> = messages.iter().map(|m| features(&m.body).index).collect();
    indices.dedup();
    assert_eq!(indices.len(), 4);
    assert!(!indices.contains(&0));
}

#[test]
fn features_have_names_by_number() {
    let names = decode_feature_names(&Capture::read("linux-6.18/feature-names").body()).unwrap();
    let bit = |name: &str| {
        let at = names
            .iter()
            .position(|other| other == name)
            .unwrap_or_else(|| panic!("{name}"));
        u32::try_from(at).unwrap()
    };
    assert_eq!(bit("tx-scatter-gather"), 0);
    let v0 = features(&Capture::read("linux-6.18/v0-features").body());
    assert!(v0.active.has(bit("rx-gro")) && v0.hardware.has(bit("rx-gro")));
    assert!(v0.wanted.has(bit("rx-gro")) && !v0.unchangeable.has(bit("rx-gro")));
    assert!(!v0.active.has(bit("rx-fcs")) && !v0.hardware.has(bit("rx-fcs")));
    let fixed = ["netns-local", "netns-immutable"];
    let fixed = fixed
        .iter()
        .find(|name| names.iter().any(|other| other == *name));
    assert!(fixed.is_none_or(|name| v0.unchangeable.has(bit(name))));
}

#[test]
fn naps_of_a_veth_with_gro() {
    let messages = Capture::read("linux-6.18/v0-napis").messages();
    let napis: Vec<_> = messages
        .iter()
        .map(|m| Napi::decode(&m.body).unwrap())
        .collect();
    assert_eq!(napis.len(), 4, "one for each receive queue");
    for napi in &napis {
        assert!(napi.id > 0 && napi.index > 0);
        assert_eq!(napi.defer_hard_irqs, Some(0));
        assert_eq!(napi.gro_flush_timeout, Some(0));
        assert_eq!(napi.irq_suspend_timeout, Some(0));
        assert_eq!(napi.threaded, Some(0));
        assert_eq!(napi.irq, None);
    }
}

#[test]
fn families_tell_their_groups_and_commands() {
    let ethtool = Family::decode(&Capture::read("linux-6.18/family-ethtool").body()).unwrap();
    assert!(ethtool.id >= 16);
    assert!(ethtool.group("monitor").is_some());
    assert!(ethtool.commands.contains(&ETHTOOL_MSG_COALESCE_SET));
    let netdev = Family::decode(&Capture::read("linux-6.18/family-netdev").body()).unwrap();
    assert!(netdev.group("mgmt").is_some() && netdev.group("monitor").is_none());
    assert!(netdev.commands.contains(&NETDEV_CMD_NAPI_SET));
}

/// The `ethtool` crate, on the messages that it decodes in full.
#[test]
fn another_decoder_sees_the_same_numbers() {
    let header = |cmd| GenlHeader { cmd, version: 1 };
    let body = Capture::read("linux-6.18/v0-channels").body();
    let theirs = EthtoolMessage::parse_with_param(&body[4..], header(body[0])).unwrap();
    let ours = params("linux-6.18/v0-channels", Group::Channels);
    let mut compared = 0;
    for attr in theirs.nlas {
        let (kind, value) = match &attr {
            EthtoolAttr::Channel(attr) => match attr {
                EthtoolChannelAttr::RxMax(value)
                | EthtoolChannelAttr::TxMax(value)
                | EthtoolChannelAttr::RxCount(value)
                | EthtoolChannelAttr::TxCount(value) => (attr.kind(), *value),
                EthtoolChannelAttr::Header(_) => continue,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(ours.get(kind), Some(value));
        compared += 1;
    }
    assert_eq!(compared, ours.values.len());

    let body = Capture::read("linux-6.18/t0-coalesce").body();
    let theirs = EthtoolMessage::parse_with_param(&body[4..], header(body[0])).unwrap();
    let expected = EthtoolAttr::Coalesce(EthtoolCoalesceAttr::RxMaxFrames(7));
    assert!(theirs.nlas.contains(&expected));
}
