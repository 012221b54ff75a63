// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings change while packets flow.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::ours;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "batch.switch",
    "knobs change under a TCP stream: each packet is posted",
    switch,
)
.fabric(Fabric::Managed, 2)
.limit(120)];

fn switch(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    // What the stack handed to the driver, and what the driver posted: equal, or something is lost.
    let sent = || -> Result<(u64, u64)> {
        let text = pair
            .a
            .ns
            .run("cat /sys/class/net/ib0/statistics/tx_packets")?;
        Ok((
            text.trim().parse()?,
            guest.vhca(0).stats()?.get("send_wrs")?,
        ))
    };
    let before = sent()?;
    let server = pair.b.ns.start("iperf3 --server --one-off --port 5305")?;
    guest.wait_for("iperf3 server", Duration::from_secs(20), || {
        Ok((!pair.b.ns.run("ss -Hltn sport = :5305")?.is_empty()).then_some(()))
    })?;
    let line = format!("iperf3 --client {} --port 5305 --time 60", pair.b.v4);
    let mut client = pair.a.ns.start(&line)?;
    thread::sleep(Duration::from_millis(1500));
    for round in 0..5 {
        for (mode, limit) in [
            ("off", 64),
            ("adaptive", 3),
            ("on", 1),
            ("adaptive", 64),
            ("on", 17),
        ] {
            let set = format!("ibctl set ib0 batching={mode} batch-limit={limit}");
            pair.a.ns.run(&set)?;
            ensure!(client.is_running()?, "round {round}: {}", client.printed());
        }
    }
    drop((client, server));
    pair.ping(2, 56)?;
    guest.wait_for("posted packets", Duration::from_secs(10), || {
        let now = sent()?;
        let (handed, posted) = (now.0 - before.0, now.1 - before.1);
        ensure!(
            handed > 1000 && handed == posted,
            "{handed} packets, {posted} posted"
        );
        Ok(Some(()))
    })?;
    let drops = pair
        .a
        .ns
        .run("cat /sys/class/net/ib0/statistics/tx_dropped")?;
    guest.same("dropped", drops.trim(), "0")
}
