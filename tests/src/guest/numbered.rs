// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbered datagrams: each must arrive, once, and in its order.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};

use super::Result;
use super::ipoib::{End, Pair};

/// Datagrams on their way at a time: a socket's receive buffer of 208 KiB holds that many, each in a
/// page of its own.
const WINDOW: u64 = 32;

/// How long a datagram may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Streams of numbered datagrams, as fast as they go, until they are told to stop.
#[derive(Debug)]
pub struct Streams {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<u64>>>,
}

impl Streams {
    /// Starts `count` streams in each direction.
    ///
    /// # Errors
    ///
    /// When a socket can't be made.
    pub fn start(pair: &Pair, count: u16) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for number in 0..count {
            for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
                let (sender, receiver) = sockets(from, to, 7100 + number)?;
                let arrived = Arc::new(AtomicU64::new(0));
                let seen = Arc::clone(&arrived);
                let (told, name) = (Arc::clone(&stop), from.dev.clone());
                // The receiver says 0 when it is over, whatever the reason: the sender must not wait then.
                let reader = thread::spawn(move || receive(&receiver, &seen));
                threads.push(thread::spawn(move || {
                    let sent = send(&sender, &arrived, &told);
                    let got = match reader.join() {
                        Ok(got) => got.with_context(|| format!("a stream from {name}"))?,
                        Err(_) => return Err(anyhow!("the receiver panicked")),
                    };
                    let sent = sent.with_context(|| format!("a stream from {name}"))?;
                    ensure!(sent == got, "{name}: {sent} sent, {got} arrived");
                    Ok(got)
                }));
            }
        }
        Ok(Self { stop, threads })
    }

    /// Ends the streams and returns how many datagrams arrived.
    ///
    /// # Errors
    ///
    /// When one was lost, came twice, or out of its order.
    pub fn finish(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = 0;
        for thread in self.threads {
            match thread.join() {
                Ok(count) => all += count?,
                Err(_) => return Err(anyhow!("a sender panicked")),
            }
        }
        Ok(all)
    }
}

fn sockets(from: &End, to: &End, port: u16) -> Result<(UdpSocket, UdpSocket)> {
    let receiver = to.ns.enter(|| UdpSocket::bind((to.v4.as_str(), port)))??;
    receiver.set_read_timeout(Some(LIMIT))?;
    let sender = from.ns.enter(|| UdpSocket::bind((from.v4.as_str(), 0)))??;
    sender.connect((to.v4.as_str(), port))?;
    Ok((sender, receiver))
}

/// Last number of a stream that ended early.
const OVER: u64 = u64::MAX;

fn send(socket: &UdpSocket, arrived: &AtomicU64, stop: &AtomicBool) -> Result<u64> {
    let mut buffer = [0; 1400];
    let mut number: u64 = 0;
    loop {
        let last = stop.load(Ordering::Relaxed);
        let seen = arrived.load(Ordering::Relaxed);
        if seen == OVER {
            return Ok(number);
        }
        if number - seen >= WINDOW {
            thread::yield_now();
            continue;
        }
        buffer[..8].copy_from_slice(&number.to_be_bytes());
        buffer[8] = u8::from(last);
        // Sizes differ, so that chains hold small and large packets.
        let size = 16 + usize::try_from(number * 131 % 1384)?;
        socket.send(&buffer[..size])?;
        number += 1;
        if last {
            return Ok(number);
        }
    }
}

fn receive(socket: &UdpSocket, arrived: &AtomicU64) -> Result<u64> {
    let result = receive_all(socket, arrived);
    arrived.store(OVER, Ordering::Relaxed);
    result
}

fn receive_all(socket: &UdpSocket, arrived: &AtomicU64) -> Result<u64> {
    let mut buffer = [0; 2048];
    let mut wanted: u64 = 0;
    loop {
        let size = socket
            .recv(&mut buffer)
            .with_context(|| format!("number {wanted} is lost"))?;
        ensure!(size >= 16, "a datagram of {size} bytes");
        let [a, b, c, d, e, f, g, h, last, ..] = buffer;
        let number = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        if number != wanted {
            let late = comes_late(socket, wanted)?;
            let what = if late { "came late" } else { "is lost" };
            bail!("number {number} came, {wanted} was due and {what}");
        }
        wanted += 1;
        if last == 1 {
            return Ok(wanted);
        }
        arrived.store(wanted, Ordering::Relaxed);
    }
}

/// Says whether a number comes after all, among those that were on their way with it.
fn comes_late(socket: &UdpSocket, wanted: u64) -> Result<bool> {
    let mut buffer = [0; 2048];
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    for _ in 0..WINDOW {
        if socket.recv(&mut buffer).is_err() {
            return Ok(false);
        }
        if buffer.starts_with(&wanted.to_be_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}
