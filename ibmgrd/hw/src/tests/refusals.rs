// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured refusals: what the user reads of them.

use super::Capture;
use crate::nl::{Exchange, NlError, Request};

/// Plays a captured answer to the captured request, and returns what comes out of it.
fn replay(name: &str) -> Result<(), NlError> {
    let capture = Capture::read(name);
    let request = Request::captured(&capture.sent[0]);
    let sequence = u32::from_ne_bytes(capture.sent[0][8..12].try_into().unwrap());
    let requests = [request];
    let mut exchange = Exchange::new(&requests, sequence);
    for datagram in &capture.received {
        exchange.take(datagram, &mut |_| Ok(())).unwrap();
    }
    assert!(!exchange.is_waiting());
    exchange.results().next().unwrap().map(|_| ())
}

fn said(name: &str) -> String {
    replay(name).unwrap_err().to_string()
}

#[test]
fn the_kernels_sentence_and_the_attribute_reach_the_user() {
    assert_eq!(
        said("linux-6.18/t0-set-coalesce-unsupported"),
        "cannot modify an unsupported parameter \
         (EINVAL, attribute ETHTOOL_A_COALESCE_STATS_BLOCK_USECS)"
    );
    assert_eq!(
        said("linux-6.18/v0-set-other-name"),
        "ifindex and name do not match (ENODEV, attribute ETHTOOL_A_COALESCE_HEADER)"
    );
    assert_eq!(
        said("linux-6.18/t0-set-mode-refused"),
        "tun/tap creation via rtnetlink is not supported. (EOPNOTSUPP)"
    );
}

#[test]
fn a_refusal_without_a_sentence_is_the_error_number() {
    assert_eq!(
        said("linux-6.18/v0-coalesce"),
        "Operation not supported (EOPNOTSUPP)"
    );
    assert_eq!(said("linux-6.18/link-none"), "No such device (ENODEV)");
    assert_eq!(
        replay("linux-6.18/link-none").unwrap_err().errno(),
        Some(libc::ENODEV)
    );
}

#[test]
fn refusals_of_the_stock_driver() {
    let ib0 = |what: &str| said(&format!("linux-6.12-ipoib/ib0-{what}"));
    assert_eq!(
        ib0("set-coalesce-unsupported"),
        "cannot modify an unsupported parameter \
         (EINVAL, attribute ETHTOOL_A_COALESCE_STATS_BLOCK_USECS)"
    );
    // The driver says nothing of its 16 bits, nor of its two modes.
    assert_eq!(ib0("set-coalesce-large"), "Invalid argument (EINVAL)");
    assert_eq!(ib0("set-mode-refused"), "Invalid argument (EINVAL)");
    assert_eq!(
        ib0("set-mtu-refused"),
        "mtu less than device minimum (EINVAL)"
    );
    assert_eq!(ib0("private-flags"), "Operation not supported (EOPNOTSUPP)");
}

#[test]
fn success_is_no_error() {
    for name in [
        "v0-set-mtu-same",
        "links",
        "v0-link",
        "v0-features",
        "all-napis",
    ] {
        replay(&format!("linux-6.18/{name}")).unwrap();
    }
    for name in ["ib0", "ib0.rtnl", "ib1.8001"] {
        replay(&format!("linux-6.12-ipoib/{name}-set-connected")).unwrap();
    }
}
