// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets between two interfaces of the stock driver, in both modes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
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

/// Time limit of a connection, a read or a write.
const LIMIT: Duration = Duration::from_secs(30);

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

/// Sends random bytes over TCP, both ways, and compares what arrives.
fn send_file(guest: &Guest, mode: Mode) -> Result {
    let pair = Pair::stock(guest, mode)?;
    let mut sent = vec![0; 8 << 20];
    File::open("/dev/urandom")?.read_exact(&mut sent)?;
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let address: SocketAddr = format!("{}:7000", to.v4).parse()?;
        let listener = to.ns.enter(|| TcpListener::bind(address))??;
        let mut sender = from
            .ns
            .enter(|| TcpStream::connect_timeout(&address, LIMIT))??;
        let (mut receiver, _) = listener.accept()?;
        receiver.set_read_timeout(Some(LIMIT))?;
        sender.set_write_timeout(Some(LIMIT))?;
        let mut received = Vec::with_capacity(sent.len());
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                sender.write_all(&sent)?;
                sender.shutdown(Shutdown::Write)
            });
            receiver.read_to_end(&mut received)?;
            writer
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))
        })?;
        guest.same("bytes received", received.len(), sent.len())?;
        let changed = sent
            .iter()
            .zip(&received)
            .position(|(one, other)| one != other);
        guest.same("first changed byte", changed, None)?;
    }
    Ok(())
}
