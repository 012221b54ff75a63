// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets between two interfaces.

use anyhow::{Context, ensure};

use super::Setup;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::traffic::{number, send_file};
use crate::guest::{Guest, Result};

pub(super) fn ping(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    // The port's MTU less the 4-byte IPoIB header (RFC 4391, section 6); a connection's (RFC 4755).
    let mtu = match setup.mode {
        Mode::Datagram => "2044",
        Mode::Connected => "65520",
    };
    for end in [&pair.a, &pair.b] {
        guest.same("mode", end.file("mode")?, setup.mode.to_string())?;
        guest.same("MTU", end.detail("mtu")?.as_str(), mtu)?;
    }
    let before = guest.vhca(0).stats()?;
    pair.ping(5, 56)?;
    // Over a datagram's MTU: IP sends it in pieces.
    pair.ping(3, 8000)?;
    if setup.mode == Mode::Connected {
        pair.ping(3, 60000)?;
        let grown = guest.vhca(0).stats()?.since(&before);
        let messages = grown.get("rc_messages")?;
        // Each ping of ours and each answer to theirs is one message.
        ensure!(
            messages >= 44,
            "only {messages} RC messages: these packets went another way"
        );
    }
    Ok(())
}

pub(super) fn iperf(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    let modes = setup.batching(guest.long());
    if modes.is_empty() {
        return both_ways(guest, &pair, if guest.long() { 3 } else { 2 });
    }
    for mode in modes {
        setup.set_batching(&pair, mode)?;
        both_ways(guest, &pair, 2).with_context(|| format!("batching={mode}"))?;
    }
    Ok(())
}

fn both_ways(guest: &Guest, pair: &Pair, seconds: u32) -> Result {
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let tcp = Pair::iperf(from, to, guest, &format!("--time {seconds}"))?;
        let received = number(&tcp, "/sum_received/bytes")?;
        ensure!(
            received > 1e6,
            "TCP {} to {}: {received} bytes in {seconds} s",
            from.dev,
            to.dev
        );
        // A rate that an emulated machine carries without loss.
        let options = format!("--time {seconds} --udp --bitrate 2M --length 1400");
        let udp = Pair::iperf(from, to, guest, &options)?;
        let sent = number(&udp, "/sum/packets")?;
        let lost = number(&udp, "/sum/lost_packets")?;
        ensure!(
            sent > 100.0 * f64::from(seconds),
            "UDP {} to {}: {sent} packets sent",
            from.dev,
            to.dev
        );
        ensure!(
            lost <= sent / 50.0,
            "UDP {} to {}: {lost} of {sent} lost",
            from.dev,
            to.dev
        );
    }
    Ok(())
}

/// Sends random bytes over TCP, both ways, and compares what arrives.
pub(super) fn integrity(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    let length = if guest.long() { 32 << 20 } else { 8 << 20 };
    let modes = setup.batching(guest.long());
    for mode in modes.iter().chain(modes.is_empty().then_some(&"")) {
        if !mode.is_empty() {
            setup.set_batching(&pair, mode)?;
        }
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            send_file(guest, from, to, length).with_context(|| format!("batching={mode:?}"))?;
        }
    }
    Ok(())
}
