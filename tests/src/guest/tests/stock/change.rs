// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mode changes while packets flow.

use std::thread;
use std::time::Duration;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Allowed, Fabric, Task};
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// What the stock driver also does when its mode changes under load.
pub const FLIP: &[Allowed] = &[
    KNOWN[0],
    Allowed {
        text: "sends not completed",
        because: "stock gives up on sends that a mode change caught (seen on 6.12)",
    },
];

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "stock.mode_flip",
    "the mode changes under traffic, and packets flow on",
    mode_flip,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::CHECKED)
.limit(180)
.long_limit(1800)
.allow(FLIP)];

fn mode_flip(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let rounds = if guest.long() { 50 } else { 3 };
    for round in 0..rounds {
        let mode = if round % 2 == 0 {
            Mode::Connected
        } else {
            Mode::Datagram
        };
        // UDP keeps coming, whatever happens to the link.
        let server = pair.b.ns.start("iperf3 --server --one-off --port 5302")?;
        guest.wait_for("iperf3 server", Duration::from_secs(20), || {
            Ok((!pair.b.ns.run("ss -Hltn sport = :5302")?.is_empty()).then_some(()))
        })?;
        let line = format!(
            "iperf3 --client {} --port 5302 --udp --bitrate 0 --time 60",
            pair.b.v4
        );
        let mut client = pair.a.ns.start(&line)?;
        thread::sleep(Duration::from_millis(1000));
        anyhow::ensure!(
            client.is_running()?,
            "iperf3 ended early:\n{}",
            client.printed()
        );
        for end in [&pair.a, &pair.b] {
            end.ns
                .run(&format!("ip link set {} type ipoib mode {mode}", end.dev))?;
            guest.same(
                "mode",
                end.detail("linkinfo/info_data/mode")?,
                mode.to_string(),
            )?;
        }
        thread::sleep(Duration::from_millis(500));
        drop((client, server));
        pair.wait_ready(guest)?;
        pair.ping(2, 1000)?;
    }
    guest.figure("stock.mode_flip.rounds", f64::from(rounds), "1");
    Ok(())
}
