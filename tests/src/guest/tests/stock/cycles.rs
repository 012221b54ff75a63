// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading and unloading, again and again.

use std::time::Duration;

use anyhow::ensure;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::memory;
use crate::guest::task::Task;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "stock.cycles",
    "load, talk, unload, again and again, without a leak",
    cycles,
)
.shape(Shape::CHECKED)
.limit(300)
.long_limit(3600)
.allow(KNOWN)];

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
            start = memory::used_kb(guest)?;
        }
    }
    let grown = memory::used_kb(guest)?.saturating_sub(start);
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
