// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tour of README.md: what it shows happens on a real ib0.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::shown::compare;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The document, as it was when this program was built.
const README: &str = include_str!("../../../../README.md");

/// Time limit of one command.
const LIMIT: Duration = Duration::from_secs(30);

/// The tour and the table.
pub const TESTS: &[Task] = &[
    Task::new(
        "readme.tour",
        "commands of README.md print what it shows",
        tour,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "readme.table",
        "devices take the knobs that README.md says",
        table,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "readme.table_batch",
        "our driver takes the knobs that README.md says",
        table_batch,
    )
    .fabric(Fabric::Managed, 2),
];

fn tour(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    compare(guest, &pair.a.ns, "README.md", README, 5)
}

fn table(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    guest.load("veth")?;
    pair.a
        .ns
        .run("ip link add veth0 type veth peer name veth1")?;
    compare_columns(&pair, &[(1, "ib0"), (3, "veth0")])
}

fn table_batch(guest: &mut Guest) -> Result {
    guest.load("ipoib_batch")?;
    let pair = Pair::of_loaded(guest, Mode::Datagram)?;
    compare_columns(&pair, &[(2, "ib0")])
}

fn compare_columns(pair: &Pair, columns: &[(usize, &str)]) -> Result {
    let rows = rows(README);
    ensure!(
        rows.len() >= 15,
        "README.md has a table of {} knobs only",
        rows.len()
    );
    let mut differences = Vec::new();
    for (column, link) in columns {
        for row in &rows {
            let (Some(knob), Some(said)) = (row.first(), row.get(*column)) else {
                bail!("README.md has a row without a cell for {link}: {row:?}");
            };
            // Its exit status is that of an unsupported knob; what it prints is the answer.
            let output = pair
                .a
                .ns
                .attempt(&format!("ibctl get {link} {knob} -o json"), LIMIT)?;
            let answer: Value = serde_json::from_str(&output.stdout)
                .with_context(|| format!("{link}: {knob}: {}{}", output.stdout, output.stderr))?;
            let found = answer["knobs"][knob]["support"]
                .as_str()
                .unwrap_or("not listed");
            if found != said {
                differences.push(format!("{link}: {knob} is {found}, README.md says {said}"));
            }
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Returns the cells of the table of knobs, without their ticks.
fn rows(text: &str) -> Vec<Vec<String>> {
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with("| knob |"))
        .skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text =
            "| a |\n|---|\n| b |\n\n| knob | x |\n|---|---|\n| `mtu` | settable |\n\n| c |\n";
        assert_eq!(rows(text), [["mtu", "settable"]]);
    }
}
