// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables of what can run in a machine.

pub mod demo;
pub mod hw;
pub mod lab;

use super::task::Task;

/// Tables of tests, one per area. A new area adds its table here.
const TESTS: &[&[Task]] = &[lab::TESTS, hw::TESTS];

/// Tables of measures for `cargo lab bench`, one per area.
const MEASURES: &[&[Task]] = &[];

/// Tasks that are neither.
const OTHERS: &[&[Task]] = &[demo::TASKS];

/// Lists every test.
pub fn all() -> impl Iterator<Item = &'static Task> {
    TESTS.iter().copied().flatten()
}

/// Finds any task by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Task> {
    let tables = TESTS.iter().chain(MEASURES).chain(OTHERS);
    tables.copied().flatten().find(|task| task.name == name)
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_dotted() {
        let mut seen = BTreeSet::new();
        for task in TESTS.iter().chain(MEASURES).copied().flatten() {
            assert!(seen.insert(task.name), "{} is there twice", task.name);
            let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
            assert!(
                task.name.contains('.') && task.name.chars().all(legal),
                "{}",
                task.name
            );
            assert!(
                !task.about.is_empty(),
                "{} says nothing about itself",
                task.name
            );
        }
        assert!(!seen.is_empty());
    }

    #[test]
    fn every_exception_has_a_reason() {
        for task in all() {
            for allowed in task.allowed {
                assert!(
                    allowed.text.len() > 8 && allowed.because.len() > 8,
                    "{}",
                    task.name
                );
            }
        }
    }
}
