// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connected mode beside the stock driver: small datagrams that all arrive, and what a stream costs.

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};
use crate::wire::Figure;

/// The case.
pub(super) const CASE: Case = Case {
    name: "cm",
    about: "connected mode: a flood of small datagrams, with the copy and without, and a stream",
    run,
};

/// Median of all figures of a name.
fn middle(figures: &[Figure], name: &str) -> Result<f64> {
    let found = figures.iter().filter(|figure| figure.name == name);
    let values: Vec<f64> = found.map(|figure| figure.value).collect();
    median(&values).with_context(|| format!("no figure {name}"))
}

fn run(bench: &mut Bench) -> Result<()> {
    flood(bench, &[], "")?;
    // The queues and the wire that drivers and HCAs have by themselves.
    flood(bench, &["queue=256", "wire_batch=16"], ".usual")?;
    let figures = bench.measure("measure.batch_cm_stream", &[])?;
    let of = |name: &str| middle(&figures, name);
    bench.bar(
        "cm.stream_vs_stock",
        of("mbps.on")? / of("mbps.stock")?,
        Some(1.0),
        Goal::AtLeast(1.10),
        "ratio",
    )?;
    bench.bar(
        "cm.stream_mbps",
        of("mbps.on")?,
        Some(of("mbps.stock")?),
        Goal::Open,
        "Mbit/s",
    )?;
    bench.bar(
        "cm.instr_per_byte",
        of("instr_per_byte.on")? / of("instr_per_byte.stock")?,
        Some(1.0),
        Goal::AtMost(0.85),
        "ratio",
    )
}

fn flood(bench: &mut Bench, args: &[&str], suffix: &str) -> Result<()> {
    let figures = bench.measure("measure.batch_cm_flood", args)?;
    let of = |name: &str| middle(&figures, name);
    let lost = |name: &str| -> Result<f64> {
        let (sent, received) = (
            of(&format!("sent.{name}"))?,
            of(&format!("received.{name}"))?,
        );
        Ok((sent - received) / sent * 100.0)
    };
    let goal = |goal| if suffix.is_empty() { goal } else { Goal::Open };
    bench.bar(
        &format!("cm.sent_minus_received_pct{suffix}"),
        lost("copy")?,
        Some(lost("stock")?),
        Goal::AtMost(0.1),
        "%",
    )?;
    bench.bar(
        &format!("cm.sent_minus_received_pct.nocopy{suffix}"),
        lost("nocopy")?,
        Some(lost("stock")?),
        Goal::Open,
        "%",
    )?;
    bench.bar(
        &format!("cm.received_ratio{suffix}"),
        of("mbps.copy")? / of("mbps.nocopy")?,
        Some(of("mbps.stock")? / of("mbps.nocopy")?),
        goal(Goal::AtLeast(2.4)),
        "ratio",
    )?;
    for (bar, figure, unit) in [
        ("received_mbps", "mbps", "Mbit/s"),
        ("rnr_naks", "rnr_naks", "1"),
        ("resets", "resets", "1"),
    ] {
        for (form, name) in [("", "copy"), (".nocopy", "nocopy")] {
            bench.bar(
                &format!("cm.{bar}{form}{suffix}"),
                of(&format!("{figure}.{name}"))?,
                Some(of(&format!("{figure}.stock"))?),
                Goal::Open,
                unit,
            )?;
        }
    }
    Ok(())
}
