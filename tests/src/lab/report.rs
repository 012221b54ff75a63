// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints results: a line per test, a summary, and the closing line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::chroot::tail;
use super::progress::seconds;

/// Prints one line of results on standard output.
///
/// A reader that went away (a closed pipe) must not turn results into a crash.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// One test's result.
#[derive(Debug)]
pub struct Verdict {
    /// Full name.
    pub name: String,
    /// Run time.
    pub time: Duration,
    /// Why it failed, with the end of its output; none when it passed.
    pub failure: Option<String>,
    /// Where more can be read.
    pub logs: Vec<PathBuf>,
}

/// Collects verdicts of a run.
#[derive(Debug)]
pub struct Report {
    started: Instant,
    passed: usize,
    failed: Vec<Verdict>,
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl Report {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            passed: 0,
            failed: Vec::new(),
        }
    }

    /// Takes in one verdict and prints its line.
    pub fn add(&mut self, verdict: Verdict) {
        let word = if verdict.failure.is_some() {
            "FAIL"
        } else {
            "pass"
        };
        line(&format!(
            "{word}  {:>12}  {}",
            seconds(verdict.time),
            verdict.name
        ));
        if verdict.failure.is_some() {
            self.failed.push(verdict);
        } else {
            self.passed += 1;
        }
    }

    /// Returns how many were taken in.
    #[must_use]
    pub fn count(&self) -> usize {
        self.passed + self.failed.len()
    }

    /// Prints the failures, the summary and the closing line; true when all passed.
    #[must_use]
    pub fn close(self, logs: Option<&Path>) -> bool {
        line(&self.summary(logs));
        self.passed()
    }

    /// Says whether there were tests and all of them passed.
    fn passed(&self) -> bool {
        self.failed.is_empty() && self.passed > 0
    }

    fn summary(&self, logs: Option<&Path>) -> String {
        let mut lines = Vec::new();
        for verdict in &self.failed {
            lines.push(format!("\n---- {} failed:", verdict.name));
            lines.push(tail(verdict.failure.as_deref().unwrap_or_default(), 70));
            lines.extend(
                verdict
                    .logs
                    .iter()
                    .map(|log| format!("more: {}", log.display())),
            );
        }
        let took = seconds(self.started.elapsed());
        let place = logs
            .map(|dir| format!("; logs in {}", dir.display()))
            .unwrap_or_default();
        lines.push(format!("\n{} tests in {took}{place}", self.count()));
        lines.extend(
            self.failed
                .iter()
                .map(|verdict| format!("failed: {}", verdict.name)),
        );
        lines.push(closing(self.passed, self.failed.len()));
        lines.join("\n")
    }
}

/// The closing line, whose form machines read.
#[must_use]
pub fn closing(passed: usize, failed: usize) -> String {
    format!("{passed} passed, {failed} failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_fixed() {
        assert_eq!(closing(12, 0), "12 passed, 0 failed");
    }

    #[test]
    fn nothing_at_all_is_no_success() {
        assert!(!Report::new().passed());
    }

    #[test]
    fn a_summary_ends_with_the_closing_line() {
        let mut report = Report::new();
        let failure = Some("why\nnot".to_owned());
        report.failed.push(Verdict {
            name: "a.b".into(),
            time: Duration::ZERO,
            failure,
            logs: vec!["x.log".into()],
        });
        report.passed = 2;
        let text = report.summary(None);
        assert!(
            text.contains("---- a.b failed:\nwhy\nnot\nmore: x.log\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\nfailed: a.b\n2 passed, 1 failed"),
            "{text}"
        );
        assert!(!report.passed());
    }
}
