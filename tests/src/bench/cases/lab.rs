// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab itself: how fast is a machine ready?

use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};

/// Boots per figure.
const ROUNDS: usize = 3;

/// The case.
pub(super) const CASE: Case = Case {
    name: "lab",
    about: "from power-on to a ping over IPoIB",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let time = bench.time_to_figure("measure.first_ping", Duration::from_secs(120))?;
        times.push(time.as_secs_f64());
    }
    let middle = median(&times).context("no round was measured")?;
    bench.bar("lab.boot_to_ping_s", middle, None, Goal::AtMost(20.0), "s")
}
