// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes figures of full runs into `docs/measurements.md`.
//!
//! Each command owns one section and replaces only that one.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::place;
use super::progress::say;
use crate::wire::Figure;

/// The document, from the repo's top.
const DOCUMENT: &str = "docs/measurements.md";

/// First lines of a fresh document.
const HEAD: &str = "# Measurements\n\n\
    The figures of the last full runs.\n\
    Each section is written by the command that it names; don't edit by hand.\n";

/// Replaces the section `title` by these figures, with date, commit and machine.
///
/// # Errors
///
/// When the document can't be written.
pub fn record(title: &str, command: &str, figures: &[Figure]) -> Result<()> {
    let path = place::repo().join(DOCUMENT);
    let old = fs::read_to_string(&path).unwrap_or_else(|_| HEAD.to_owned());
    let section = section(title, command, figures, &circumstances()?);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    fs::write(&path, replace(&old, title, &section))
        .with_context(|| format!("can't write {}", path.display()))?;
    say(&format!("wrote {} figures to {DOCUMENT}", figures.len()));
    Ok(())
}

/// Says when, on which commit and on what machine.
fn circumstances() -> Result<String> {
    let commit = commit();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|rest| rest.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(format!(
        "{}, commit {commit}, {cpus} × {model}, QEMU TCG",
        place::utc("%Y-%m-%d")?
    ))
}

/// Names the commit, with `-dirty` when anything but the document itself differs from it.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(place::repo())
            .args(args)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let besides = format!(":(exclude){DOCUMENT}");
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".into();
    };
    match git(&["status", "--porcelain", "--", ".", &besides]) {
        Some(changes) if changes.is_empty() => commit,
        _ => commit + "-dirty",
    }
}

fn section(title: &str, command: &str, figures: &[Figure], circumstances: &str) -> String {
    let mut text = format!("## {title}\n\n`{command}`: {circumstances}.\n\n");
    text.push_str("| figure | value | unit |\n|---|---:|---|\n");
    for figure in figures {
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            figure.name,
            number(figure.value),
            figure.unit
        ));
    }
    text
}

/// Prints a number with about three digits that count.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Puts `section` in the place of the old one of that title, or at the end.
fn replace(document: &str, title: &str, section: &str) -> String {
    let heading = format!("## {title}\n");
    let Some(start) = document.find(&heading) else {
        return format!("{}\n\n{section}", document.trim_end());
    };
    let (before, old) = document.split_at(start);
    let rest = old
        .get(heading.len()..)
        .and_then(|body| body.find("\n## ").map(|at| &body[at..]));
    format!("{before}{section}{}", rest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_section_changes() {
        let figure = Figure {
            name: "a.b".into(),
            value: 1.5,
            unit: "s".into(),
        };
        let one = section("One", "cmd", std::slice::from_ref(&figure), "today");
        let two = section("Two", "cmd", &[figure], "today");
        let both = replace(&replace(HEAD, "One", &one), "Two", &two);
        assert!(both.starts_with("# Measurements") && both.contains("| `a.b` | 1.50 | s |"));
        let newer = one.replace("today", "later");
        let after = replace(&both, "One", &newer);
        assert!(
            after.contains("later") && after.contains("## Two\n\n`cmd`: today"),
            "{after}"
        );
        assert_eq!(after.matches("## One").count(), 1);
        assert_eq!(replace(&after, "One", &one), both);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.031), "0.0310");
        assert_eq!(number(5.678), "5.68");
        assert_eq!(number(1234.5), "1234");
        assert_eq!(number(0.0), "0");
    }
}
