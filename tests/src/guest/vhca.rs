// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A virtual HCA: its counters and its faults, through debugfs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::Result;

/// Virtual HCA number N: RDMA device `vhcaN`.
#[derive(Clone, Copy, Debug)]
pub struct Vhca {
    index: u32,
}

/// Counters at one moment, by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stats(BTreeMap<String, u64>);

impl Vhca {
    /// Names HCA `index`, counted from 0.
    #[must_use]
    pub fn new(index: u32) -> Self {
        Self { index }
    }

    /// Returns its RDMA device name.
    #[must_use]
    pub fn name(self) -> String {
        format!("vhca{}", self.index)
    }

    /// Reads its counters.
    ///
    /// # Errors
    ///
    /// When the HCA isn't there.
    pub fn stats(self) -> Result<Stats> {
        let path = self.debug_dir().join("stats");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Stats::parse(&text)
    }

    /// Sets a fault, e.g. `fault("loss_ppm", "10000")`.
    ///
    /// # Errors
    ///
    /// When there is no such fault, or it refuses the value.
    pub fn fault(self, name: &str, value: &str) -> Result {
        let path = self.debug_dir().join("fault").join(name);
        fs::write(&path, value).with_context(|| format!("writing {value} to {}", path.display()))
    }

    /// Returns port 1's state as sysfs prints it, e.g. `4: ACTIVE`.
    ///
    /// # Errors
    ///
    /// When the HCA isn't there.
    pub fn port_state(self) -> Result<String> {
        let path = format!("/sys/class/infiniband/{}/ports/1/state", self.name());
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        Ok(text.trim_end().to_owned())
    }

    /// Returns the path of one of its files in debugfs.
    pub(super) fn file(self, name: &str) -> PathBuf {
        self.debug_dir().join(name)
    }

    fn debug_dir(self) -> PathBuf {
        Path::new("/sys/kernel/debug/vhca").join(self.name())
    }
}

impl Stats {
    /// Understands `name value` lines.
    ///
    /// # Errors
    ///
    /// When a line is something else.
    pub fn parse(text: &str) -> Result<Self> {
        let mut values = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let (name, value) = (words.next().unwrap_or_default(), words.next());
            let Some(value) = value.and_then(|word| word.parse().ok()) else {
                bail!("not a counter: {line:?}");
            };
            values.insert(name.to_owned(), value);
        }
        Ok(Self(values))
    }

    /// Returns one counter.
    ///
    /// # Errors
    ///
    /// When there is none of that name.
    pub fn get(&self, name: &str) -> Result<u64> {
        let known = || self.0.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = self.0.get(name).copied();
        found.with_context(|| format!("no counter {name}; there are {}", known()))
    }

    /// Returns how much each counter grew since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let grown = |(name, value): (&String, &u64)| {
            let old = before.0.get(name).copied().unwrap_or_default();
            (name.clone(), value.saturating_sub(old))
        };
        Self(self.0.iter().map(grown).collect())
    }

    /// Returns all counters, by name.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, u64> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_subtracted() {
        let before = Stats::parse("doorbells 10\nwrs 10\n").unwrap();
        let after = Stats::parse("doorbells 12\nwrs   30\nrnr_naks 1\n\n").unwrap();
        let grown = after.since(&before);
        assert_eq!(grown.get("doorbells").unwrap(), 2);
        assert_eq!(grown.get("wrs").unwrap(), 20);
        assert_eq!(grown.get("rnr_naks").unwrap(), 1);
        let error = grown.get("doorbell").unwrap_err().to_string();
        assert!(
            error.contains("there are doorbells, rnr_naks, wrs"),
            "{error}"
        );
    }

    #[test]
    fn other_lines_are_errors() {
        assert!(Stats::parse("doorbells many").is_err());
        assert!(Stats::parse("doorbells").is_err());
    }
}
