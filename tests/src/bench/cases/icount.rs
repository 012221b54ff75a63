// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions per packet of the whole machine, over the stock driver's: the cost of the processor, which a noisy host
//! does not change.

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median, pick};

/// The case.
pub(super) const CASE: Case = Case {
    name: "icount",
    about: "instructions per packet, ours over stock",
    run,
};

/// One seed gives the same run again; seeds differ by up to 16 %, and a change of code acts like another seed.
const SEEDS: u32 = 7;

fn run(bench: &mut Bench) -> Result<()> {
    let mut runs = Vec::new();
    for seed in 1..=SEEDS {
        runs.push(bench.measure("measure.batch_icount", &[&format!("seed={seed}")])?);
    }
    for (name, goal) in [
        ("stream", Goal::AtMost(0.80)),
        ("nodelay32", Goal::AtMost(0.92)),
        ("udpgso", Goal::AtMost(0.65)),
        ("udpgso_gro", Goal::Open),
    ] {
        let of = |driver: &str| -> Result<Vec<f64>> {
            let figure = format!("{name}.{driver}");
            runs.iter().map(|run| pick(run, &figure)).collect()
        };
        let (ours, adaptive, stock) = (of("on")?, of("adaptive")?, of("stock")?);
        let middle = |values: &[f64]| median(values).context("no seed was measured");
        let ratio = |ours: &[f64]| {
            let ratios: Vec<f64> = ours.iter().zip(&stock).map(|(a, b)| a / b).collect();
            middle(&ratios)
        };
        let bar = format!("icount.{name}");
        bench.bar(&bar, ratio(&ours)?, Some(1.0), goal, "ratio")?;
        let name_of = format!("{bar}.adaptive");
        bench.bar(&name_of, ratio(&adaptive)?, Some(1.0), Goal::Open, "ratio")?;
        let (ours, stock) = (middle(&ours)?, Some(middle(&stock)?));
        let wire = |driver: &str| middle(&of(&format!("wire.{driver}"))?);
        bench.bar(
            &format!("{bar}.wire_packets"),
            wire("on")?,
            Some(wire("stock")?),
            Goal::Open,
            "1/packet",
        )?;
        bench.bar(
            &format!("{bar}.instructions"),
            ours,
            stock,
            Goal::Open,
            "1/packet",
        )?;
    }
    Ok(())
}
