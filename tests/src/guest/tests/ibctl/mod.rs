// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl` on a real `ib0`, with `ip`, `ethtool` and sysfs as independent readers.

mod apply;
mod change;
mod children;
mod guide;
mod knobs;
mod trouble;

use std::time::Duration;

use crate::guest::Result;
use crate::guest::ipoib::End;
use crate::guest::process::Output;
use crate::guest::task::Task;

/// All tests of `ibctl`.
pub const TABLES: &[&[Task]] = &[
    knobs::TESTS,
    apply::TESTS,
    change::TESTS,
    children::TESTS,
    trouble::TESTS,
    guide::TESTS,
];

/// Time limit of one command.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs `ibctl` beside an interface and checks its exit status.
fn ibctl(end: &End, line: &str, status: i32) -> Result<Output> {
    let output = end.ns.attempt(&format!("ibctl {line}"), LIMIT)?;
    anyhow::ensure!(
        output.status.code() == Some(status),
        "wanted exit status {status}:\n{output}"
    );
    Ok(output)
}

/// Returns what `ibctl get` prints as the value of one knob.
fn value(end: &End, knob: &str) -> Result<String> {
    let output = ibctl(end, &format!("-o json get {} {knob}", end.dev), 0)?;
    let json: serde_json::Value = serde_json::from_str(&output.stdout)?;
    let value = json.pointer(&format!("/knobs/{knob}/value"));
    match value.and_then(|value| value.as_str()) {
        Some(value) => Ok(value.to_owned()),
        None => anyhow::bail!("no value of {knob}:\n{output}"),
    }
}
