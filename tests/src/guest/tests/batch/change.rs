// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batching changes under full traffic.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::numbered::Streams;
use crate::guest::process::Running;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result, traffic};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "batch.switch",
    "batching changes under numbered datagrams and TCP: none lost, none out of order",
    switch,
)
.fabric(Fabric::Managed, 2)
.limit(180)
.long_limit(1800)];

/// Mode and limit in turn: each pair of modes meets both ways.
const STEPS: [(&str, u32); 6] = [
    ("off", 64),
    ("on", 1),
    ("adaptive", 3),
    ("off", 17),
    ("adaptive", 64),
    ("on", 64),
];

fn switch(guest: &mut Guest) -> Result {
    // Nobody but the driver loses packets: receive rings that no burst overruns, a queue that holds all.
    guest.load("ipoib_batch recv_queue_size=4096")?;
    let pair = Pair::of_loaded(guest, Mode::Datagram)?;
    for end in [&pair.a, &pair.b] {
        // fq_codel, the default, drops what waits for 5 ms.
        end.ns.run(&format!(
            "tc qdisc replace dev {} root pfifo limit 10000",
            end.dev
        ))?;
    }
    pair.wait_ready(guest)?;
    let before = [pair.a.counters()?, pair.b.counters()?];
    let hcas = [guest.vhca(0).stats()?, guest.vhca(1).stats()?];
    let streams = Streams::start(&pair, 2)?;
    let tcp = traffic::iperf(guest, &pair.a, &pair.b, 5305, "")?;
    thread::sleep(Duration::from_millis(500));
    let rounds = if guest.long() { 50 } else { 2 };
    for round in 0..rounds {
        for (step, (mode, limit)) in STEPS.into_iter().enumerate() {
            let via = ["ethtool", "rtnetlink", "sysfs"][(step + round) % 3];
            let line = format!("ibctl set ib0 batching={mode} batch-limit={limit} --via {via}");
            pair.a.ns.run(&line)?;
        }
    }
    // All three at once, at both ends, as fast as they go.
    let mut storm = Vec::new();
    for end in [&pair.a, &pair.b] {
        storm.extend(storm_of(guest, end)?);
    }
    thread::sleep(Duration::from_secs(if guest.long() { 60 } else { 4 }));
    for program in &mut storm {
        ensure!(
            program.is_running()?,
            "a loop ended:\n{}",
            program.printed()
        );
    }
    drop((storm, tcp));
    let arrived = streams.finish()?;
    let figure = f64::from(u32::try_from(arrived)?);
    guest.figure("batch.switch.datagrams", figure, "1");
    ensure!(arrived > 1000, "only {arrived} datagrams");
    for (index, (end, hca)) in [&pair.a, &pair.b].into_iter().zip(0..).enumerate() {
        quiet(guest, end)?;
        let grown = end.counters()?.since(&before[index]);
        // Each mode was in use, and chains were there to be lost.
        for reason in ["flush_single", "flush_last", "flush_completion"] {
            ensure!(grown.get(reason)? > 0, "{}: no {reason}", end.dev);
        }
        let chained = grown.get("tx_wrs")? - grown.get("tx_doorbells")?;
        ensure!(
            chained > 100,
            "{}: {chained} doorbells were shared",
            end.dev
        );
        let name = format!("batch.switch.changes_met_a_chain.{}", end.dev);
        let met = f64::from(u32::try_from(grown.get("flush_quiesce")?)?);
        guest.figure(&name, met, "1");
        let hca = guest.vhca(hca).stats()?.since(&hcas[index]);
        for (name, value) in hca.all().iter().chain(grown.all()) {
            let bad =
                name.starts_with("drop_") || name.contains("x_drop_") || name.ends_with("x_errors");
            ensure!(
                !bad || *value == 0 || name == "rx_drop_own",
                "{}: {name} grew by {value}",
                end.dev
            );
        }
    }
    pair.ping(2, 56)
}

/// Three loops, each of which sets mode and limit through one interface of the kernel.
fn storm_of(guest: &Guest, end: &End) -> Result<Vec<Running>> {
    let dev = &end.dev;
    let files = format!("/sys/class/net/{dev}/ipoib");
    let bodies = [
        (
            "sysfs",
            format!(
                "for mode in off on adaptive; do echo $mode > {files}/batching; done\n\
                 echo $((RANDOM % 64 + 1)) > {files}/batch_limit"
            ),
        ),
        (
            "ethtool",
            format!(
                "ethtool --set-priv-flags {dev} tx-batching on tx-batching-adaptive on\n\
                 ethtool --set-priv-flags {dev} tx-batching off\n\
                 ethtool -C {dev} tx-frames $((RANDOM % 64 + 1))"
            ),
        ),
        (
            // It reads back what it wrote, which another loop may have changed meanwhile.
            "rtnetlink",
            format!(
                "ibctl set {dev} batching=adaptive batch-limit=$((RANDOM % 64 + 1)) --via rtnetlink || :\n\
                 ibctl set {dev} batching=on --via rtnetlink || :"
            ),
        ),
    ];
    let mut running = Vec::new();
    for (name, body) in bodies {
        let script = format!("/tmp/{dev}-{name}.sh");
        guest.write(&script, &format!("while :; do\n{body}\nsleep 0.01\ndone\n"))?;
        running.push(end.ns.start(&format!("bash {script}"))?);
    }
    Ok(running)
}

/// Waits until every request has completed.
fn quiet(guest: &Guest, end: &End) -> Result {
    guest.wait_for("completion of all sends", Duration::from_secs(10), || {
        let counters = end.counters()?;
        guest.same(
            "completed",
            counters.get("tx_packets")?,
            counters.get("tx_wrs")?,
        )?;
        Ok(Some(()))
    })
}
