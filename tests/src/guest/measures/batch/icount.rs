// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions per data packet of the whole machine: both ends, the wire, the programs.
//!
//! On a machine that counts time in instructions, the time that its processor was not idle tells how many it executed.
//! What a run costs beyond its packets (starting programs, connecting) is the same for a short and a long one, so that
//! the difference of the two is the cost of the packets alone.
//!
//! A packet is what an unhurried sender makes: 1992 bytes of a stream, one small send, one datagram. Over a driver that
//! leaves packets accounted to their socket until they are sent, TCP joins small sends meanwhile; so both drivers are
//! given the same data to carry, and how many packets each made of it is a figure of its own.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, UdpGroSegment, UdpGsoSegment};

use super::{Driver, LIMIT, netperf, netserver};
use crate::guest::ipoib::Pair;
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::{COUNTED_NS, Shape};

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.batch_icount",
    "instructions per packet over stock, on and adaptive: a stream, small sends, trains",
    measure,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::COUNTED)
.limit(900)
.allow(KNOWN)];

/// Datagrams of a train, and bytes of each.
const TRAIN: (usize, u16) = (64, 256);

/// Trains under way: less than the receive ring and the socket's buffer hold, so that none is lost.
const WINDOW: usize = 2;

/// What is measured: name, and the work for so many packets.
type Work = (&'static str, fn(&Pair, u32) -> Result);

const WORKS: &[Work] = &[
    ("stream", |pair, packets| {
        stream(pair, packets.saturating_mul(1992), "-m 16384")
    }),
    ("nodelay32", |pair, packets| {
        stream(pair, packets.saturating_mul(32), "-m 32 -D")
    }),
    ("udpgso", |pair, packets| trains(pair, packets, false)),
    ("udpgso_gro", |pair, packets| trains(pair, packets, true)),
];

fn measure(guest: &mut Guest) -> Result {
    // Which driver comes first differs from seed to seed.
    let seed: u32 = guest.arg("seed", 1)?;
    // Whole trains, eight times. Enough that what one seed shuffles evens out.
    let packets: u32 = guest.arg("packets", 32768)?;
    let mut drivers = [Driver::Stock, Driver::On, Driver::Adaptive];
    drivers.rotate_left(seed as usize % 3);
    for driver in drivers {
        driver.with(guest, |guest, pair| {
            // It would make small sends wait for the device, and their packets larger, the slower that is.
            let off = || fs::write("/proc/sys/net/ipv4/tcp_autocorking", "0");
            pair.a.ns.enter(off)?.context("turning autocorking off")?;
            let server = netserver(guest, pair)?;
            for (name, work) in WORKS {
                // Paths, caches and congestion windows of the first run are not those of the others.
                cost(guest, pair, *work, packets / 8)?;
                let short = cost(guest, pair, *work, packets / 8)?;
                let long = cost(guest, pair, *work, packets)?;
                let (busy, sent) = (long.0 - short.0, long.1 - short.1);
                let wanted = f64::from(packets - packets / 8);
                ensure!(sent > 10.0, "{name}: only {sent} packets");
                guest.figure(&format!("{name}.{driver}"), busy / wanted, "instructions");
                guest.figure(&format!("{name}.wire.{driver}"), sent / wanted, "1");
            }
            drop(server);
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns instructions and data packets of some work.
fn cost(
    guest: &Guest,
    pair: &Pair,
    work: fn(&Pair, u32) -> Result,
    packets: u32,
) -> Result<(f64, f64)> {
    let sent = || -> Result<f64> { number(guest.vhca(0).stats()?.get("send_wrs")?) };
    let before = (busy(guest)?, sent()?);
    work(pair, packets)?;
    Ok((busy(guest)? - before.0, sent()? - before.1))
}

fn number(value: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(value)?))
}

/// Returns the instructions executed since the processor started, from the kernel's clock and its idle time.
pub(super) fn busy(guest: &Guest) -> Result<f64> {
    let text = guest.read("/proc/timer_list")?;
    let nanoseconds = |line: &str| -> Option<f64> {
        let mut words = line.split(' ').rev();
        let value = words.find_map(|word| word.parse::<f64>().ok());
        value.filter(|_| line.ends_with(" nsecs"))
    };
    let find = |start: &str| {
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(start));
        line.and_then(nanoseconds)
            .ok_or_else(|| anyhow!("no {start:?} in /proc/timer_list:\n{text}"))
    };
    Ok((find("now at")? - find(".idle_sleeptime")?) / f64::from(COUNTED_NS))
}

fn stream(pair: &Pair, bytes: u32, options: &str) -> Result {
    let line = netperf(pair, -i64::from(bytes), "TCP_STREAM", options);
    pair.a.ns.attempt(&line, LIMIT)?.success().map(|_| ())
}

/// Sends trains of datagrams, each of which the receiver acknowledges.
fn trains(pair: &Pair, packets: u32, gro: bool) -> Result {
    let socket = |end: &crate::guest::ipoib::End, port: u16| -> Result<UdpSocket> {
        let made = end.ns.enter(|| UdpSocket::bind((end.v4.as_str(), port)))?;
        let made = made.with_context(|| format!("a socket in {}", end.ns.name()))?;
        made.set_read_timeout(Some(Duration::from_secs(20)))?;
        setsockopt(&made, RcvBufForce, &(8 << 20))?;
        Ok(made)
    };
    let (from, to) = (socket(&pair.a, 5302)?, socket(&pair.b, 5303)?);
    from.connect((pair.b.v4.as_str(), 5303))?;
    to.connect((pair.a.v4.as_str(), 5302))?;
    let (count, size) = TRAIN;
    setsockopt(&from, UdpGsoSegment, &i32::from(size))?;
    setsockopt(&to, UdpGroSegment, &gro)?;
    let bytes = count * usize::from(size);
    let trains = packets as usize / count;
    thread::scope(|scope| {
        let receiver = scope.spawn(move || -> Result {
            let mut buffer = vec![0; 1 << 16];
            for _ in 0..trains {
                let mut got = 0;
                while got < bytes {
                    got += to
                        .recv(&mut buffer)
                        .context("a datagram of a train is lost")?;
                }
                to.send(&[0])?;
            }
            Ok(())
        });
        let data = vec![0; bytes];
        for sent in 0..trains + WINDOW {
            if sent >= WINDOW {
                from.recv(&mut [0]).context("a train is not acknowledged")?;
            }
            if sent < trains {
                from.send(&data)?;
            }
        }
        match receiver.join() {
            Ok(result) => result,
            Err(_) => Err(anyhow!("the receiver panicked")),
        }
    })
}
