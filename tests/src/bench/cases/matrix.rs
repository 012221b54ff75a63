// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Throughput by size and processes, as batching was measured in 2007: columns stock, off, on, adaptive.
//!
//! The machine counts its time in instructions, so that a figure is what the processor can do, and not the host's load.
//! Twice: with a doorbell that costs nothing, and with one that costs a quarter of what the stock driver's packet does.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};
use crate::lab::progress::say;

/// The case.
pub(super) const CASE: Case = Case {
    name: "matrix",
    about: "throughput by size and processes, over stock, off, on and adaptive",
    run,
};

/// A quarter of a stock packet of 32 bytes without delay: 18 000 instructions (`icount.nodelay32.instructions`), 4 ns each.
const DOORBELL_NS: u32 = 18_000;

const SHORT: [&str; 3] = ["rounds=3", "sizes=32,4096", "processes=1,4"];
const FULL: [&str; 3] = [
    "rounds=3",
    "sizes=32,128,512,4096,16384",
    "processes=1,4,8,32",
];

/// Median and half of the spread, in Mbit/s, by cell and driver.
type Cells = BTreeMap<String, BTreeMap<String, (f64, f64)>>;

fn run(bench: &mut Bench) -> Result<()> {
    let form = if bench.long() { FULL } else { SHORT };
    for (percent, nanoseconds) in [(0, 0), (25, DOORBELL_NS)] {
        let doorbell = format!("doorbell_ns={nanoseconds}");
        let mut args = form.to_vec();
        args.push(&doorbell);
        let mut taken: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
        for figure in bench.measure("measure.batch_matrix", &args)? {
            let (cell, driver) = figure
                .name
                .rsplit_once('.')
                .context("a cell has a driver")?;
            let cell = taken.entry(cell.to_owned()).or_default();
            cell.entry(driver.to_owned())
                .or_default()
                .push(figure.value);
        }
        let mut cells = Cells::new();
        for (cell, drivers) in taken {
            for (driver, values) in drivers {
                let middle = median(&values).context("no round was measured")?;
                let most = values.iter().copied().fold(f64::MIN, f64::max);
                let least = values.iter().copied().fold(f64::MAX, f64::min);
                let cell = cells.entry(cell.clone()).or_default();
                cell.insert(driver, (middle, (most - least) / 2.0));
            }
        }
        say(&format!(
            "doorbell at {percent} % of a stock packet:\n{}",
            table(&cells)?
        ));
        report(bench, &cells, percent)?;
    }
    Ok(())
}

fn change(cell: &BTreeMap<String, (f64, f64)>, of: &str, over: &str) -> Result<(f64, f64)> {
    let get = |name: &str| cell.get(name).with_context(|| format!("no column {name}"));
    let ((ours, spread), (base, other)) = (get(of)?, get(over)?);
    Ok((
        (ours / base - 1.0) * 100.0,
        spread.max(*other) / base * 100.0,
    ))
}

/// One line per cell: Mbit/s of each column, and % over stock.
fn table(cells: &Cells) -> Result<String> {
    let mut text = format!(
        "{:22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}\n",
        "test.size.processes", "stock", "off", "on", "adaptive", "on %", "adaptive %"
    );
    for (name, cell) in cells {
        text.push_str(&format!("{name:22}"));
        for column in ["stock", "off", "on", "adaptive"] {
            let (middle, _) = cell.get(column).with_context(|| format!("no {column}"))?;
            text.push_str(&format!("{middle:>9.1}"));
        }
        let (on, _) = change(cell, "on", "stock")?;
        let (adaptive, _) = change(cell, "adaptive", "stock")?;
        text.push_str(&format!("{on:>9.1}{adaptive:>10.1}\n"));
    }
    Ok(text)
}

fn report(bench: &mut Bench, cells: &Cells, percent: u32) -> Result<()> {
    let suffix = if percent == 0 {
        String::new()
    } else {
        format!(".doorbell{percent}")
    };
    // What is worse than `off` by more than the rounds differ among themselves.
    let mut worst = f64::MAX;
    let mut four = Vec::new();
    for (name, cell) in cells {
        for mode in ["on", "adaptive"] {
            let (change, spread) = change(cell, mode, "off")?;
            worst = worst.min(if change < 0.0 {
                (change + spread).min(0.0)
            } else {
                change
            });
        }
        if name.starts_with("nodelay.") && name.ends_with(".4") {
            four.push(change(cell, "on", "stock")?.0);
        }
    }
    if let (Some(eight), Some(all)) = (cells.get("tcp.16384.8"), cells.get("tcp.16384.32")) {
        for (count, cell) in [(8, eight), (32, all)] {
            bench.bar(
                &format!("matrix.16384x{count}_pct{suffix}"),
                change(cell, "on", "stock")?.0,
                Some(0.0),
                Goal::AtLeast(20.0),
                "%",
            )?;
        }
    }
    let average = four.iter().sum::<f64>() / four.len() as f64;
    let best = four.iter().copied().fold(f64::MIN, f64::max);
    let goal = |aim| {
        if percent == 25 {
            Goal::AtLeast(aim)
        } else {
            Goal::Open
        }
    };
    for (name, value, goal) in [
        ("worst_cell_pct", worst, Goal::AtLeast(-2.0)),
        ("nodelay4_avg_pct", average, goal(33.0)),
        ("nodelay4_best_pct", best, goal(108.0)),
    ] {
        bench.bar(
            &format!("matrix.{name}{suffix}"),
            value,
            Some(0.0),
            goal,
            "%",
        )?;
    }
    Ok(())
}
