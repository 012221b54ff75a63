// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables of what can run in a machine.

pub mod batch;
pub mod daemon;
pub mod demo;
pub mod host;
pub mod hw;
pub mod ibctl;
pub mod lab;
pub mod mad;
pub mod readme;
pub mod scenario;
pub mod stock;
pub mod vhca;

use super::measures::MEASURES;
use super::task::Task;

/// Areas of tests, each a list of tables. A new area adds its line here.
const AREAS: &[&[&[Task]]] = &[
    &[lab::TESTS, host::TESTS, hw::TESTS, readme::TESTS],
    mad::TABLES,
    scenario::TABLES,
    stock::TABLES,
    ibctl::TABLES,
    daemon::TABLES,
    batch::TABLES,
    vhca::TABLES,
];

/// Lists every test.
pub fn all() -> impl Iterator<Item = &'static Task> {
    AREAS.iter().copied().flatten().copied().flatten()
}

/// Finds any task by its name: a test, a measure, the demo or the shell.
#[must_use]
pub fn find(name: &str) -> Option<&'static Task> {
    let measures = MEASURES.iter().copied().flatten();
    all()
        .chain(measures)
        .chain(demo::TASKS)
        .find(|task| task.name == name)
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_dotted() {
        let mut seen = BTreeSet::new();
        for task in all().chain(MEASURES.iter().copied().flatten()) {
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
