// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and responses: batching must not make a lone packet wait.

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};

/// The case.
pub(super) const CASE: Case = Case {
    name: "rr",
    about: "requests and responses per second, on and adaptive against off",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let figures = bench.measure("measure.batch_rr", &["rounds=3", "seconds=1"])?;
    let middle = |name: String| -> Result<f64> {
        let named = figures.iter().filter(|figure| figure.name == name);
        let values: Vec<f64> = named.map(|figure| figure.value).collect();
        median(&values).with_context(|| format!("no figure {name}"))
    };
    for test in ["tcp", "udp"] {
        let (off, stock) = (
            middle(format!("{test}.off"))?,
            middle(format!("{test}.stock"))?,
        );
        let mut worst = 0.0_f64;
        for mode in ["on", "adaptive"] {
            let change = (middle(format!("{test}.{mode}"))? / off - 1.0) * 100.0;
            if change.abs() > worst.abs() {
                worst = change;
            }
        }
        let bar = format!("rr.{test}_pct");
        bench.bar(&bar, worst, Some(0.0), Goal::Near(0.0, 2.0), "%")?;
        bench.bar(
            &format!("rr.{test}_per_s"),
            off,
            Some(stock),
            Goal::Open,
            "1/s",
        )?;
    }
    Ok(())
}
