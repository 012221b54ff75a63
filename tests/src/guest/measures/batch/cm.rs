// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connected mode: what of a flood of small datagrams arrives, with the copy of small packets and without, and what a byte
//! of a stream costs.
//!
//! The flood is that of the 2008 measurement: datagrams of 128 bytes, faster than large receive buffers can be replaced.
//! A short receive queue and a wire that moves many packets before it tells of them make the receiver run out of buffers;
//! that is an RNR NAK, which ends a connection of IPoIB, and what was under way is lost.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;

use super::icount::busy;
use super::{Driver, LIMIT, netperf, netserver, result};
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The measures.
pub const MEASURES: &[Task] = &[
    Task::new(
        "measure.batch_cm_flood",
        "small datagrams in connected mode, over stock, and on with the copy and without",
        flood,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::COUNTED)
    .limit(1800)
    .allow(KNOWN),
    Task::new(
        "measure.batch_cm_stream",
        "a TCP stream in connected mode, over stock and on",
        stream,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::COUNTED)
    .limit(1800)
    .allow(KNOWN),
];

/// Bytes of a datagram.
const SIZE: usize = 128;

/// What the flood is measured over: name, driver, and the threshold up to which packets are copied, where it can be set.
const FLOODED: [(&str, Driver, Option<u32>); 3] = [
    ("stock", Driver::Stock, None),
    ("copy", Driver::On, Some(256)),
    ("nocopy", Driver::On, Some(0)),
];

fn flood(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 3)?;
    let milliseconds: u64 = guest.arg("ms", 500)?;
    let queue: u32 = guest.arg("queue", 32)?;
    let batch: u32 = guest.arg("wire_batch", 128)?;
    guest.unload("vhca")?;
    guest.load(&format!("vhca hcas=2 managed=1 wire_batch={batch}"))?;
    for _ in 0..rounds {
        for (name, driver, copy) in FLOODED {
            let params = format!("recv_queue_size={queue}");
            driver.with_params(guest, &params, Mode::Connected, |guest, pair| {
                if let Some(threshold) = copy {
                    for end in [&pair.a, &pair.b] {
                        let dev = &end.dev;
                        end.ns
                            .run(&format!("ibctl set {dev} cm-copybreak={threshold}"))?;
                    }
                }
                pair.ping(3, 56)?;
                one_flood(guest, pair, name, Duration::from_millis(milliseconds))
            })?;
        }
    }
    Ok(())
}

/// Sends as fast as it can for a while.
fn one_flood(guest: &Guest, pair: &Pair, name: &str, length: Duration) -> Result {
    let socket = |end: &End, port: u16| -> Result<UdpSocket> {
        let made = end.ns.enter(|| UdpSocket::bind((end.v4.as_str(), port)))?;
        let made = made.with_context(|| format!("a socket in {}", end.ns.name()))?;
        // Nothing is lost for want of room in the socket.
        setsockopt(&made, RcvBufForce, &(512 << 20))?;
        Ok(made)
    };
    let (from, to) = (socket(&pair.a, 5304)?, socket(&pair.b, 5305)?);
    from.connect((pair.b.v4.as_str(), 5305))?;
    to.set_read_timeout(Some(Duration::from_millis(300)))?;
    let stats = || -> Result<[u64; 2]> {
        Ok([
            guest.vhca(1).stats()?.get("rnr_naks")?,
            guest.vhca(0).stats()?.get("qp_errors")?,
        ])
    };
    let before = stats()?;
    let (sent, received, took) = thread::scope(|scope| {
        let receiver = scope.spawn(move || -> Result<u32> {
            let mut buffer = [0; 2048];
            let mut received = 0;
            // Until nothing comes any more, which is not how it begins.
            loop {
                match to.recv(&mut buffer) {
                    Ok(_) => received += 1,
                    Err(_) if received > 0 => return Ok(received),
                    Err(error) => return Err(error).context("nothing of the flood arrived"),
                }
            }
        });
        let (began, mut sent) = (Instant::now(), 0_u32);
        while began.elapsed() < length {
            // A full queue refuses; that is not sent.
            sent += u32::from(from.send(&[0; SIZE]).is_ok());
        }
        let took = began.elapsed();
        match receiver.join() {
            Ok(received) => Ok((sent, received?, took)),
            Err(_) => Err(anyhow!("the receiver panicked")),
        }
    })?;
    let after = stats()?;
    ensure!(sent > 100, "{name}: only {sent} datagrams were sent");
    let per_s = |count: u32| f64::from(count) / took.as_secs_f64();
    guest.figure(&format!("sent.{name}"), f64::from(sent), "1");
    guest.figure(&format!("received.{name}"), f64::from(received), "1");
    let mbps = per_s(received) * (SIZE * 8) as f64 / 1e6;
    guest.figure(&format!("mbps.{name}"), mbps, "Mbit/s");
    for (at, figure) in ["rnr_naks", "resets"].iter().enumerate() {
        let (before, after) = before.get(at).zip(after.get(at)).context("two counters")?;
        let grown = u32::try_from(after - before)?;
        guest.figure(&format!("{figure}.{name}"), f64::from(grown), "1");
    }
    Ok(())
}

fn stream(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 3)?;
    let megabytes: u32 = guest.arg("mb", 64)?;
    for _ in 0..rounds {
        for driver in [Driver::Stock, Driver::On] {
            driver.with_params(guest, "", Mode::Connected, |guest, pair| {
                let server = netserver(guest, pair)?;
                let line = netperf(pair, 1, "TCP_STREAM", "-m 65536");
                // The connection is made, and windows are open, before what counts.
                pair.a.ns.attempt(&line, LIMIT)?.success()?;
                let rate = result(&pair.a.ns.attempt(&line, LIMIT)?.success()?)?;
                guest.figure(&format!("mbps.{driver}"), rate, "Mbit/s");
                let cost = |megabytes: u32| -> Result<f64> {
                    let bytes = -i64::from(megabytes) * (1 << 20);
                    let line = netperf(pair, bytes, "TCP_STREAM", "-m 65536");
                    let before = busy(guest)?;
                    pair.a.ns.attempt(&line, LIMIT)?.success()?;
                    Ok(busy(guest)? - before)
                };
                let (short, long) = (cost(megabytes / 8)?, cost(megabytes)?);
                let bytes = f64::from(megabytes - megabytes / 8) * f64::from(1 << 20);
                let figure = format!("instr_per_byte.{driver}");
                guest.figure(&figure, (long - short) / bytes, "1/byte");
                drop(server);
                Ok(())
            })?;
        }
    }
    Ok(())
}
