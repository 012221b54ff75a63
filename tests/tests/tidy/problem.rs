// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a checker found, and the end of a check.

use std::fmt;

use anyhow::{Result, bail};

/// A place that breaks a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Problem {
    at: String,
    what: String,
}

impl Problem {
    /// Concerns a file, package or folder as a whole.
    pub(crate) fn new(at: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            what: what.into(),
        }
    }

    /// Concerns one line, counted from 1.
    pub(crate) fn line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// Fails with every problem, one a line.
///
/// # Errors
///
/// When there is one.
pub(crate) fn refuse(problems: Vec<Problem>) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("  {problem}"))
        .collect();
    bail!("{} to put right:\n{}", problems.len(), lines.join("\n"))
}

/// Asserts in a sample's test that exactly one problem was found, and that it says `word`.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_one(problems: &[Problem], word: &str) {
    assert_eq!(
        problems.len(),
        1,
        "expected one with '{word}': {problems:?}"
    );
    let text = problems[0].to_string();
    assert!(text.contains(word), "expected '{word}' in: {text}");
}

#[test]
fn problems_fail_a_check() {
    assert!(refuse(Vec::new()).is_ok());
    let error = refuse(vec![Problem::line("a.rs", 3, "too odd")]).unwrap_err();
    assert_eq!(error.to_string(), "1 to put right:\n  a.rs:3: too odd");
}
