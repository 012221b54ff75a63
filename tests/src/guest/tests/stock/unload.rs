// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Modules that go while packets flow, and come back.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Allowed, Fabric, Task};
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// What the stock driver also does when it is removed under load in connected mode; its WARNs are
/// known to the log's reader.
const REMOVAL: &[Allowed] = &[
    KNOWN[0],
    Allowed {
        text: "drivers/infiniband/core/",
        because: "stock destroys a CQ before its deferred connections are gone; the core warns",
    },
    Allowed {
        text: "sends not completed",
        because: "stock waits 5 s for sends of connections that are gone",
    },
];

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "stock.unload_datagram",
        "the driver goes under traffic, datagram mode",
        datagram,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(120)
    .allow(KNOWN),
    Task::new(
        "stock.unload_connected",
        "the driver goes under traffic, connected mode",
        connected,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(120)
    .allow(REMOVAL),
    Task::new(
        "stock.unload_hca",
        "the HCA's module goes under traffic",
        unload_hca,
    )
    .shape(Shape::CHECKED)
    .limit(120)
    .allow(KNOWN),
    Task::new(
        "stock.cycles",
        "load, talk, unload, again and again, without a leak",
        cycles,
    )
    .shape(Shape::CHECKED)
    .limit(300)
    .long_limit(3600)
    .allow(KNOWN),
];

fn datagram(guest: &mut Guest) -> Result {
    unload_under_traffic(guest, Mode::Datagram)
}

fn connected(guest: &mut Guest) -> Result {
    unload_under_traffic(guest, Mode::Connected)
}

fn unload_under_traffic(guest: &Guest, mode: Mode) -> Result {
    for _ in 0..2 {
        let pair = Pair::stock(guest, mode)?;
        let traffic = start_traffic(guest, &pair)?;
        guest.unload("ib_ipoib")?;
        ensure!(!guest.is_loaded("ib_ipoib")?, "ib_ipoib is still loaded");
        drop(traffic);
        for end in [&pair.a, &pair.b] {
            let links = end.ns.run("ip -br link")?;
            ensure!(
                !links.contains(&end.dev),
                "{} outlived its driver:\n{links}",
                end.dev
            );
            guest.run(&format!("ip netns del {}", end.ns.name()))?;
        }
    }
    Ok(())
}

/// Commands that send and receive; dropped, they end.
pub type Traffic = Vec<crate::guest::process::Running>;

/// TCP one way, a UDP flood the other; returns with packets on their way.
pub fn start_traffic(guest: &Guest, pair: &Pair) -> Result<Traffic> {
    let mut running = Vec::new();
    for (from, to, port, options) in [
        (&pair.a, &pair.b, 5303, ""),
        (&pair.b, &pair.a, 5304, "--udp --bitrate 0 --length 1400"),
    ] {
        running.push(
            to.ns
                .start(&format!("iperf3 --server --one-off --port {port}"))?,
        );
        guest.wait_for("iperf3 server", Duration::from_secs(20), || {
            let sockets = to.ns.run(&format!("ss -Hltn sport = :{port}"))?;
            Ok((!sockets.is_empty()).then_some(()))
        })?;
        let line = format!(
            "iperf3 --client {} --port {port} --time 60 {options}",
            to.v4
        );
        running.push(from.ns.start(&line)?);
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

fn unload_hca(guest: &mut Guest) -> Result {
    guest.load("vhca hcas=2 managed=1")?;
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let traffic = start_traffic(guest, &pair)?;
    guest.unload("vhca")?;
    drop(traffic);
    let links = pair.a.ns.run("ip -br link")?;
    ensure!(!links.contains("ib0"), "ib0 outlived its HCA:\n{links}");
    Ok(())
}

fn cycles(guest: &mut Guest) -> Result {
    let rounds: u32 = if guest.long() { 200 } else { 10 };
    // Slabs and per-CPU lists fill up during the first rounds.
    let warm_up = 3;
    let mut start = 0;
    for round in 0..rounds {
        let mode = if round % 2 == 0 {
            Mode::Datagram
        } else {
            Mode::Connected
        };
        guest.load("vhca hcas=2 managed=1")?;
        let pair = Pair::stock(guest, mode)?;
        pair.ping(3, 8000)?;
        guest.run("ip netns del a")?;
        guest.run("ip netns del b")?;
        // Either may go first.
        let order = if round % 4 < 2 {
            ["ib_ipoib", "vhca"]
        } else {
            ["vhca", "ib_ipoib"]
        };
        for module in order {
            guest.wait_for(
                &format!("unloading of {module}"),
                Duration::from_secs(30),
                || {
                    guest.unload(module)?;
                    Ok(Some(()))
                },
            )?;
        }
        if round + 1 == warm_up {
            start = used_kb(guest)?;
        }
    }
    let grown = used_kb(guest)?.saturating_sub(start);
    let per_round = f64::from(u32::try_from(grown)?) / f64::from(rounds - warm_up);
    guest.figure("stock.cycles.rounds", f64::from(rounds), "1");
    guest.figure("stock.cycles.growth_per_round", per_round, "kB");
    // One HCA's queues alone are megabytes: a leak of them would show at once.
    ensure!(
        per_round < 256.0,
        "memory grew by {grown} kB over {} rounds",
        rounds - warm_up
    );
    Ok(())
}

/// Memory that the kernel can't free, in kB.
fn used_kb(guest: &Guest) -> Result<u64> {
    thread::sleep(Duration::from_millis(500));
    guest.write("/proc/sys/vm/drop_caches", "3")?;
    let text = guest.read("/proc/meminfo")?;
    let field = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        let Some(number) = number else {
            anyhow::bail!("/proc/meminfo has no {name}")
        };
        Ok(number.parse()?)
    };
    Ok(field("SUnreclaim:")? + field("VmallocUsed:")? + field("Percpu:")?)
}
