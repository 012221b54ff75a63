// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What batching saves.

use anyhow::ensure;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "batch.doorbells",
    "a TCP stream shares doorbells and completions",
    doorbells,
)
.fabric(Fabric::Managed, 2)
.limit(120)];

fn doorbells(guest: &mut Guest) -> Result {
    guest.load("ipoib_batch")?;
    let pair = Pair::of_loaded(guest, Mode::Datagram)?;
    let hca = guest.vhca(0);
    let share = |mode: &str| -> Result<f64> {
        pair.a.ns.run(&format!("ibctl set ib0 batching={mode}"))?;
        let before = hca.stats()?;
        Pair::iperf(&pair.a, &pair.b, guest, "--time 2")?;
        let grown = hca.stats()?.since(&before);
        let wrs = grown.get("send_wrs")?;
        ensure!(wrs > 1000, "only {wrs} work requests");
        let (doorbells, cqes) = (grown.get("doorbells")?, grown.get("cqes_send")?);
        // One completion covers a chain; a few at the ends of the window belong to its neighbours.
        ensure!(
            cqes <= doorbells + 8,
            "{cqes} completions for {doorbells} doorbells"
        );
        Ok(f64::from(u32::try_from(doorbells)?) / f64::from(u32::try_from(wrs)?))
    };
    let off = share("off")?;
    guest.same("doorbells per packet, off", (off * 1000.0).round(), 1000.0)?;
    for mode in ["on", "adaptive"] {
        let share = share(mode)?;
        guest.figure(&format!("batch.doorbells_per_packet.{mode}"), share, "1");
        ensure!(
            share < 0.25,
            "{share} doorbells per packet with batching={mode}"
        );
    }
    Ok(())
}
