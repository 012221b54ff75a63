// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Load between two ends: floods that only keep the drivers busy, and bytes that are compared.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::ipoib::{End, Pair};
use super::process::Running;
use super::{Guest, Result};

/// Time limit of a connection, a read or a write.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a server may take until it listens.
const SERVER_LIMIT: Duration = Duration::from_secs(20);

/// Commands that send and receive; dropped, they end.
pub type Traffic = Vec<Running>;

/// TCP one way, a UDP flood the other, for a minute; returns with packets on their way.
///
/// # Errors
///
/// When hardly a packet moves.
pub fn start(guest: &Guest, pair: &Pair) -> Result<Traffic> {
    let mut running = Vec::new();
    for (from, to, port, options) in [
        (&pair.a, &pair.b, 5303, ""),
        (&pair.b, &pair.a, 5304, "--udp --bitrate 0 --length 1400"),
    ] {
        running.extend(iperf(guest, from, to, port, options)?);
    }
    let before = guest.vhca(0).stats()?;
    thread::sleep(Duration::from_millis(1500));
    let packets = guest.vhca(0).stats()?.since(&before).get("tx_packets")?;
    ensure!(
        packets > 100,
        "only {packets} packets in 1.5 s: no traffic to speak of"
    );
    Ok(running)
}

/// An iperf3 that goes on for a minute: server and client.
///
/// # Errors
///
/// When the server doesn't listen.
pub fn iperf(
    guest: &Guest,
    from: &End,
    to: &End,
    port: u16,
    options: &str,
) -> Result<[Running; 2]> {
    let server = to
        .ns
        .start(&format!("iperf3 --server --one-off --port {port}"))?;
    guest.wait_for("iperf3 server", SERVER_LIMIT, || {
        let sockets = to.ns.run(&format!("ss -Hltn sport = :{port}"))?;
        Ok((!sockets.is_empty()).then_some(()))
    })?;
    let line = format!(
        "iperf3 --client {} --port {port} --time 60 {options}",
        to.v4
    );
    Ok([server, from.ns.start(&line)?])
}

/// Flood pings both ways for as long as it is kept: whatever is lost, the next one goes out.
///
/// # Errors
///
/// When ping can't be started.
pub fn flood(pair: &Pair) -> Result<[Running; 2]> {
    let flood = |from: &End, to: &End| from.ns.start(&format!("ping -q -f -s 1400 {}", to.v4));
    Ok([flood(&pair.a, &pair.b)?, flood(&pair.b, &pair.a)?])
}

/// Sends random bytes over TCP and compares what arrives.
///
/// # Errors
///
/// When something stops for 30 s, is missing, or differs.
pub fn send_file(guest: &Guest, from: &End, to: &End, length: usize) -> Result {
    let mut sent = vec![0; length];
    File::open("/dev/urandom")?.read_exact(&mut sent)?;
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
    guest.same("first changed byte", changed, None)
}

/// Returns a number of iperf3's report.
///
/// # Errors
///
/// With the report, when it has none there.
pub fn number(report: &Value, path: &str) -> Result<f64> {
    let value = report.pointer(path).and_then(Value::as_f64);
    value.with_context(|| format!("iperf3's report has no {path}:\n{report:#}"))
}
