// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No bytes whatever make a decoder panic, or loop.

use proptest::prelude::*;

use super::{Capture, all_captures};
use crate::ethtool::{Ask, FeatureOutcome, Group, decode_feature_names};
use crate::genl::Family;
use crate::netdev::Napi;
use crate::nl::{Exchange, Request};
use crate::rtnl::Link;

fn decode_all(body: &[u8]) {
    let _ = Link::decode(body);
    let _ = Napi::decode(body);
    let _ = Family::decode(body);
    let _ = decode_feature_names(body);
    let _ = FeatureOutcome::decode(body);
    for ask in [
        Ask::Features,
        Ask::PrivateFlags,
        Ask::Params(Group::Coalesce),
    ] {
        let _ = ask.decode(body);
    }
}

/// Takes the datagram as an answer to a request that had the same sequence number.
fn take(datagram: &[u8], sent: &[u8]) {
    let requests = [Request::captured(sent)];
    let sequence = sent[8..12].try_into().map(u32::from_ne_bytes).unwrap();
    let mut exchange = Exchange::new(&requests, sequence);
    let _ = exchange.take(datagram, &mut |reply| {
        decode_all(reply.body);
        Ok(())
    });
    let _ = exchange.results().count();
}

fn corpus() -> Vec<Capture> {
    all_captures()
        .iter()
        .map(|name| Capture::read(name))
        .collect()
}

#[test]
fn every_prefix_of_every_capture() {
    for capture in corpus() {
        for datagram in &capture.received {
            for end in 0..datagram.len().min(600) {
                take(&datagram[..end], &capture.sent[0]);
            }
        }
        for message in capture.messages() {
            for end in 0..message.body.len().min(600) {
                decode_all(&message.body[..end]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn mutated_captures(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let names = all_captures();
        let capture = Capture::read(which.get::<String>(&names));
        let mut datagram = capture.received[0].clone();
        for (at, byte) in &changes {
            let at = at.index(datagram.len());
            datagram[at] = *byte;
        }
        take(&datagram, &capture.sent[0]);
        if let Some(message) = capture.messages().first() {
            let mut body = message.body.clone();
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            decode_all(&body);
        }
    }

    #[test]
    fn any_bytes(body in prop::collection::vec(any::<u8>(), 0..400)) {
        decode_all(&body);
    }
}
