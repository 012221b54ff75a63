// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets between two interfaces of the stock driver, in both modes.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "stock.datagram_ping",
        "IPv4 and IPv6 both ways, managed fabric",
        datagram_ping,
    )
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
    Task::new(
        "stock.datagram_ping_opensm",
        "IPv4 and IPv6 both ways, under opensm",
        datagram_ping,
    )
    .fabric(Fabric::OpenSm, 2)
    .allow(KNOWN),
    Task::new(
        "stock.connected_ping",
        "MTU 65520 over reliable connections",
        connected_ping,
    )
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
    Task::new(
        "stock.connected_ping_opensm",
        "MTU 65520 over connections, opensm",
        connected_ping,
    )
    .fabric(Fabric::OpenSm, 2)
    .allow(KNOWN),
    Task::new(
        "stock.datagram_iperf",
        "TCP and UDP both ways, datagram mode",
        datagram_iperf,
    )
    .fabric(Fabric::OpenSm, 2)
    .limit(120)
    .allow(KNOWN),
    Task::new(
        "stock.connected_iperf",
        "TCP and UDP both ways, connected mode",
        connected_iperf,
    )
    .fabric(Fabric::OpenSm, 2)
    .limit(120)
    .allow(KNOWN),
    Task::new(
        "stock.datagram_integrity",
        "a file arrives whole, datagram mode",
        datagram_file,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120)
    .allow(KNOWN),
    Task::new(
        "stock.connected_integrity",
        "a file arrives whole, connected mode",
        connected_file,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120)
    .allow(KNOWN),
];

fn datagram_ping(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    for end in [&pair.a, &pair.b] {
        guest.same(
            "mode",
            end.detail("linkinfo/info_data/mode")?.as_str(),
            "datagram",
        )?;
        // The port's MTU less the 4-byte IPoIB header (RFC 4391, section 6).
        guest.same("MTU", end.detail("mtu")?.as_str(), "2044")?;
    }
    pair.ping(5, 56)?;
    // Over the MTU: IP sends it in pieces.
    pair.ping(3, 8000)
}

fn connected_ping(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Connected)?;
    for end in [&pair.a, &pair.b] {
        guest.same(
            "mode",
            end.detail("linkinfo/info_data/mode")?.as_str(),
            "connected",
        )?;
        guest.same("MTU", end.detail("mtu")?.as_str(), "65520")?;
    }
    let before = guest.vhca(0).stats()?;
    pair.ping(5, 56)?;
    pair.ping(3, 8000)?;
    pair.ping(3, 60000)?;
    let grown = guest.vhca(0).stats()?.since(&before);
    let messages = grown.get("rc_messages")?;
    // Each ping of ours and each answer to theirs is one message.
    ensure!(
        messages >= 44,
        "only {messages} RC messages: these packets went another way"
    );
    Ok(())
}

fn datagram_iperf(guest: &mut Guest) -> Result {
    iperf(guest, Mode::Datagram)
}

fn connected_iperf(guest: &mut Guest) -> Result {
    iperf(guest, Mode::Connected)
}

fn iperf(guest: &Guest, mode: Mode) -> Result {
    let pair = Pair::stock(guest, mode)?;
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let tcp = Pair::iperf(from, to, guest, "--time 3")?;
        let received = number(&tcp, "/sum_received/bytes")?;
        ensure!(
            received > 1e6,
            "TCP {} to {}: {received} bytes in 3 s",
            from.dev,
            to.dev
        );
        // A rate that an emulated machine carries without loss.
        let udp = Pair::iperf(from, to, guest, "--time 3 --udp --bitrate 2M --length 1400")?;
        let sent = number(&udp, "/sum/packets")?;
        let lost = number(&udp, "/sum/lost_packets")?;
        ensure!(
            sent > 300.0,
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

fn number(report: &Value, path: &str) -> Result<f64> {
    let value = report.pointer(path).and_then(Value::as_f64);
    value.with_context(|| format!("iperf3's report has no {path}:\n{report:#}"))
}

fn datagram_file(guest: &mut Guest) -> Result {
    send_file(guest, Mode::Datagram)
}

fn connected_file(guest: &mut Guest) -> Result {
    send_file(guest, Mode::Connected)
}

/// Sends random bytes over TCP and compares checksums.
fn send_file(guest: &Guest, mode: Mode) -> Result {
    let pair = Pair::stock(guest, mode)?;
    guest.run("dd if=/dev/urandom of=/tmp/sent bs=64k count=128")?;
    let limit = Duration::from_secs(60);
    // Options only: the words of a command are split at spaces.
    guest.write(
        "/tmp/receive",
        "#!/usr/bin/bash\nexec nc -l -p 7000 > /tmp/received\n",
    )?;
    guest.write(
        "/tmp/send",
        "#!/usr/bin/bash\nexec nc -w 30 \"$1\" 7000 < /tmp/sent\n",
    )?;
    guest.run("chmod 755 /tmp/receive /tmp/send")?;
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let mut receiver = to.ns.start("/tmp/receive")?;
        guest.wait_for("listener", limit, || {
            Ok((!to.ns.run("ss -Hltn sport = :7000")?.is_empty()).then_some(()))
        })?;
        from.ns
            .attempt(&format!("/tmp/send {}", to.v4), limit)?
            .success()?;
        guest.wait_for("end of the receiver", limit, || {
            Ok((!receiver.is_running()?).then_some(()))
        })?;
        let sums = guest.run("sha256sum /tmp/sent /tmp/received")?;
        let sums: Vec<&str> = sums
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        ensure!(
            sums.len() == 2 && sums.first() == sums.get(1),
            "the file changed: {sums:?}"
        );
    }
    Ok(())
}
