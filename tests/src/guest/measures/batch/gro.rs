// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the GRO flush timeout makes of TCP streams: segments per packet that goes up the stack, acknowledgements, and
//! what it costs a lone request.
//!
//! The packet time of an emulated machine is long against the kernel's tick, at which GRO lets go of what it holds
//! (`napi_gro_flush`, net/core/gro.c). On a machine that counts an instruction as a nanosecond it is some 10 us.
//!
//! A virtual HCA tells of completions when its wire has moved so many packets, which a poll then finds together:
//! here two, as an HCA does whose packets come one by one.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{Driver, LIMIT, netperf, netserver, result};
use crate::guest::ipoib::{End, Pair};
use crate::guest::process::finish;
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.batch_gro",
    "TCP streams with and without a GRO flush timeout, over stock and on",
    measure,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::SWIFT)
.limit(1800)
.allow(KNOWN)];

/// Segments of 1448 bytes that the largest IP packet holds.
const MOST: u32 = 45;

fn measure(guest: &mut Guest) -> Result {
    let streams: u32 = guest.arg("streams", 4)?;
    let seconds: u32 = guest.arg("seconds", 4)?;
    let packets: u32 = guest.arg("wire_batch", 2)?;
    guest.unload("vhca")?;
    guest.load(&format!("vhca hcas=2 managed=1 wire_batch={packets}"))?;
    for driver in [Driver::Stock, Driver::On] {
        driver.with(guest, |guest, pair| {
            for end in [&pair.a, &pair.b] {
                end.ns.run(&format!("ip link set {} mtu 1500", end.dev))?;
                end.ns.enter(large_windows)?.context("large windows")?;
            }
            let server = netserver(guest, pair)?;
            let without = run(guest, pair, streams, seconds)?;
            without.tell(guest, driver, "without");
            rates(guest, pair, driver, "without")?;
            // Twice the time in which each stream gets a whole packet together.
            let timeout = without.packet_ns * f64::from(2 * MOST * streams);
            guest.figure(&format!("timeout.{driver}"), timeout / 1e3, "us");
            for end in [&pair.a, &pair.b] {
                set(end, &format!("gro-flush-timeout={:.0}us", timeout / 1e3))?;
            }
            let with = run(guest, pair, streams, seconds)?;
            with.tell(guest, driver, "with");
            rates(guest, pair, driver, "with")?;
            for end in [&pair.a, &pair.b] {
                set(end, "napi-defer-hard-irqs=2")?;
            }
            rates(guest, pair, driver, "deferred")?;
            drop(server);
            Ok(())
        })?;
    }
    Ok(())
}

fn large_windows() -> Result {
    for (file, text) in [
        ("tcp_rmem", "4096 8388608 16777216"),
        ("tcp_wmem", "4096 8388608 16777216"),
    ] {
        fs::write(format!("/proc/sys/net/ipv4/{file}"), text)?;
    }
    Ok(())
}

fn set(end: &End, assignment: &str) -> Result {
    let line = format!("ibctl set {} {assignment}", end.dev);
    // Stored without effect by the stock driver, which has a status of its own.
    end.ns.attempt(&line, LIMIT).map(|_| ())
}

/// What one run showed.
struct Found {
    /// Nanoseconds between two segments.
    packet_ns: f64,
    /// Segments per packet that the receiver's stack got.
    segments: f64,
    /// Acknowledgements per segment.
    acks: f64,
    /// Acknowledgements per second.
    acks_per_s: f64,
    /// Megabits per second.
    mbps: f64,
}

impl Found {
    fn tell(&self, guest: &Guest, driver: Driver, timeout: &str) {
        for (name, value, unit) in [
            ("segments", self.segments, "1"),
            ("acks_per_segment", self.acks, "1"),
            ("acks_per_s", self.acks_per_s, "1/s"),
            ("mbps", self.mbps, "Mbit/s"),
            ("packet_time", self.packet_ns / 1e3, "us"),
        ] {
            guest.figure(&format!("{name}.{timeout}.{driver}"), value, unit);
        }
    }
}

/// Runs so many streams from the first end to the second.
fn run(guest: &Guest, pair: &Pair, streams: u32, seconds: u32) -> Result<Found> {
    let seen = || -> Result<[u64; 3]> {
        let [a, b] = [guest.vhca(0).stats()?, guest.vhca(1).stats()?];
        Ok([
            b.get("rx_packets")?,
            a.get("rx_packets")?,
            received(&pair.b)?,
        ])
    };
    // Connections are made before, and end after, what is counted.
    let one = netperf(pair, i64::from(seconds) + 3, "TCP_STREAM", "-m 262144");
    let script = format!("for i in $(seq {streams}); do {one} & done; wait");
    guest.write("/tmp/streams.sh", &script)?;
    let running = pair.a.ns.start("sh /tmp/streams.sh")?;
    thread::sleep(Duration::from_secs(2));
    let (began, before) = (Instant::now(), seen()?);
    thread::sleep(Duration::from_secs(seconds.into()));
    let (length, after) = (began.elapsed().as_secs_f64(), seen()?);
    let printed = finish(running, LIMIT)?.success()?;
    let rates = printed.lines().map(result).collect::<Result<Vec<f64>>>()?;
    ensure!(
        rates.len() == streams as usize,
        "{} streams ended",
        rates.len()
    );
    let grown = |at: usize| -> Result<f64> {
        let (before, after) = (before.get(at), after.get(at));
        let (before, after) = before.zip(after).context("three counters")?;
        Ok(f64::from(u32::try_from(after - before)?))
    };
    let [segments, acks, packets] = [grown(0)?, grown(1)?, grown(2)?];
    Ok(Found {
        packet_ns: length * 1e9 / segments,
        segments: segments / packets,
        acks: acks / segments,
        acks_per_s: acks / length,
        mbps: rates.iter().sum(),
    })
}

/// Returns the packets that the stack of an end got, as many as GRO made of them (`InReceives`, RFC 4293).
fn received(end: &End) -> Result<u64> {
    let text = end
        .ns
        .enter(|| fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = lines.next().zip(lines.next()).context("no IP counters")?;
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = pairs
        .find(|(name, _)| *name == "InReceives")
        .context("no InReceives")?;
    Ok(value.parse()?)
}

fn rates(guest: &Guest, pair: &Pair, driver: Driver, timeout: &str) -> Result {
    let line = netperf(pair, 1, "TCP_RR", "-r 1,1");
    let rate = result(&pair.a.ns.attempt(&line, LIMIT)?.success()?)?;
    guest.figure(&format!("rr.{timeout}.{driver}"), rate, "1/s");
    Ok(())
}
