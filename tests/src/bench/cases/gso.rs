// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Doorbells, completions and receive posts per packet of a TCP stream, MTU 2044: our driver, batching `on`, beside
//! the stock one in the same boot.

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};

/// The case.
pub(super) const CASE: Case = Case {
    name: "gso",
    about: "what the HCA sees of a TCP stream, ours beside stock",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let figures = bench.measure("measure.batch_gso", &["rounds=3", "seconds=2"])?;
    let middle = |name: String| -> Result<f64> {
        let named = figures.iter().filter(|figure| figure.name == name);
        let values: Vec<f64> = named.map(|figure| figure.value).collect();
        median(&values).with_context(|| format!("no figure {name}"))
    };
    for (name, goal) in [("doorbells", 0.04), ("cqes", 0.04), ("rx_posts", 0.10)] {
        let stock = middle(format!("{name}.stock"))?;
        bench.bar(
            &format!("gso.{name}_per_packet"),
            middle(format!("{name}.on"))?,
            Some(stock),
            Goal::AtMost(goal),
            "1",
        )?;
        bench.bar(
            &format!("gso.{name}_per_packet.off"),
            middle(format!("{name}.off"))?,
            Some(stock),
            Goal::Open,
            "1",
        )?;
    }
    Ok(())
}
