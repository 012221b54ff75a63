// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ring sizes and coalescing change under full traffic.

use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::ours;
use crate::guest::ipoib::{End, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result, traffic};

/// How long a neighbour may take to learn an address.
const LIMIT: Duration = Duration::from_secs(20);

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.rings",
        "ring sizes and coalescing change under TCP, whose bytes arrive as they were sent",
        rings,
    )
    .fabric(Fabric::Managed, 2)
    .limit(240)
    .long_limit(1800),
    Task::new(
        "batch.rings_idle",
        "neighbours learn the address of a new queue pair without traffic of theirs",
        idle,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.rings_umcast",
        "with umcast, too, a new queue pair is in the groups of the old one",
        umcast,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
];

fn rings(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let length = if guest.long() { 256 << 20 } else { 24 << 20 };
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let changes = thread::scope(|scope| -> Result<u32> {
            let file = scope.spawn(|| traffic::send_file(guest, from, to, length));
            let mut changes = 0;
            while !file.is_finished() {
                for end in [from, to] {
                    change(guest, &pair, end, changes)?;
                    changes += 1;
                }
            }
            match file.join() {
                Ok(result) => result.map(|()| changes),
                Err(_) => bail!("the sender panicked"),
            }
        })
        .with_context(|| format!("from {}", from.dev))?;
        ensure!(
            changes >= 8,
            "only {changes} changes while the file was sent"
        );
    }
    let counters = pair.a.counters()?;
    guest.same("transmit timeouts", counters.get("tx_timeouts")?, 0)?;
    pair.ping(3, 1000)
}

/// Makes one change and reads it back.
fn change(guest: &Guest, pair: &Pair, end: &End, number: u32) -> Result {
    let dev = &end.dev;
    let (rx, tx) = (64 << (number % 7), 128 << (number % 5));
    end.ns.run(&format!("ethtool -G {dev} rx {rx} tx {tx}"))?;
    let shown = end.ns.run(&format!("ethtool -g {dev}"))?;
    let now = shown.split("Current").nth(1).unwrap_or_default();
    for (name, value) in [("RX:", rx), ("TX:", tx)] {
        let found = now.lines().find_map(|line| line.strip_prefix(name));
        guest.same(name, found.map(str::trim), Some(value.to_string().as_str()))?;
    }
    let (usecs, frames) = (number * 37 % 500, number * 7 % 64);
    end.ns.run(&format!(
        "ethtool -C {dev} rx-usecs {usecs} rx-frames {frames}"
    ))?;
    let shown = end.ns.run(&format!("ethtool -c {dev}"))?;
    for (name, value) in [("rx-usecs:", usecs), ("rx-frames:", frames)] {
        let found = shown.lines().find_map(|line| line.strip_prefix(name));
        guest.same(name, found.map(str::trim), Some(value.to_string().as_str()))?;
    }
    // Another queue pair has another address; the neighbour is told.
    pair.wait_ready(guest)
}

fn idle(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    pair.ping(1, 56)?;
    for (number, (end, peer)) in [(&pair.b, &pair.a), (&pair.a, &pair.b)]
        .into_iter()
        .enumerate()
    {
        // The kernel forgets its neighbours when the carrier goes, and a gratuitous answer makes none.
        pair.wait_reachable(guest)?;
        let old = address(end)?;
        let rx = 256 << number;
        end.ns.run(&format!("ethtool -G {} rx {rx}", end.dev))?;
        let new = address(end)?;
        ensure!(new != old, "{} still has the address {old}", end.dev);
        end.wait_link(guest, true)?;
        guest.wait_for("the new address at the peer", LIMIT, || {
            let known = peer.ns.run(&format!("ip neigh show dev {}", peer.dev))?;
            let count = |address: &str| known.matches(address).count();
            ensure!(
                count(&old) == 0 && count(&new) >= 2,
                "{old} is now {new}, but {} has:\n{known}",
                peer.dev
            );
            Ok(Some(()))
        })?;
    }
    pair.ping(1, 56)
}

fn umcast(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    for end in [&pair.a, &pair.b] {
        end.write("umcast", "1")?;
    }
    for number in 0..4 {
        let (end, peer, hca) = if number % 2 == 0 {
            (&pair.b, &pair.a, 1)
        } else {
            (&pair.a, &pair.b, 0)
        };
        // Leaves without an answer: they are still under way when the groups are wanted again.
        guest.vhca(hca).fault("sa_status", "0")?;
        guest.vhca(hca).fault("sa_next", "3")?;
        end.ns
            .run(&format!("ethtool -G {} tx {}", end.dev, 128 << number))?;
        end.wait_link(guest, true)?;
        // The group in which neighbours ask for the address (RFC 4291, 2.7.1).
        let group = format!("ff02::1:ff00:{}%{}", host(&end.v6), peer.dev);
        guest
            .wait_for("answer of the solicited-node group", LIMIT, || {
                let line = format!("ping -6 -n -c 1 -W 1 {group}");
                let output = peer.ns.attempt(&line, LIMIT)?;
                Ok(output.status.success().then_some(()))
            })
            .with_context(|| format!("round {number}"))?;
    }
    Ok(())
}

/// Returns the last part of an address.
fn host(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

/// Returns the interface's link-layer address.
fn address(end: &End) -> Result<String> {
    let text = end
        .ns
        .run(&format!("cat /sys/class/net/{}/address", end.dev))?;
    Ok(text.trim().to_owned())
}
