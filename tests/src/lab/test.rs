// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `cargo lab test`: host tests, then tests in machines.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::cache::Cache;
use super::host_tests;
use super::jobs::{self, Job};
use super::place::RunDir;
use super::progress::{Step, say};
use super::report::{Report, Verdict};
use super::session::{Outcome, Session, Wish, build_program};
use super::{host, measurements, roots};
use crate::guest::{Kernel, Task, tests};
use crate::wire::Figure;

/// Runs the tests whose name matches one of `names` (all, when there are none).
///
/// Those of the machines run `repeat` times each. Returns whether all passed. What stops the run before its end counts as one failed test, so that
/// the closing line is always there and tells the truth.
///
/// # Errors
///
/// When no test matches.
pub fn run(names: &[String], long: bool, repeat: usize) -> Result<bool> {
    let picked: Vec<&'static Task> = tests::all()
        .filter(|task| matches(names, task.name))
        .filter(|task| long || !task.long_only || names.iter().any(|name| name == task.name))
        .flat_map(|task| std::iter::repeat_n(task, repeat))
        .collect();
    // Only names of VM tests have dots: who asks for those needs no host tests built.
    let vm_only = |name: &String| name.contains('.');
    let on_host = names.is_empty() || !names.iter().all(vm_only);
    let jobs: Vec<&Job> = jobs::ALL
        .iter()
        .filter(|job| matches(names, job.name) && job.is_wanted(names, long))
        .collect();
    if picked.is_empty() && jobs.is_empty() && !on_host {
        bail!("no test matches {}; {}", names.join(" "), see_list());
    }
    let mut report = Report::new();
    let run_dir = match preflight(&picked, &jobs) {
        Ok(run_dir) => run_dir,
        Err(error) => {
            report.add(stopped("the lab's set-up", &error));
            return Ok(report.close(None));
        }
    };
    if on_host && let Err(error) = run_host_tests(names, long, run_dir.path(), &mut report) {
        report.add(stopped("the workspace's tests", &error));
    }
    if picked.is_empty() && jobs.is_empty() && report.count() == 0 {
        bail!("no test matches {}; {}", names.join(" "), see_list());
    }
    if !picked.is_empty()
        && let Err(error) = run_vm_tests(&picked, long, &run_dir, &mut report)
    {
        report.add(stopped("the machines", &error));
    }
    for job in jobs {
        report.add(job.verdict(run_dir.path()));
    }
    Ok(report.close(Some(run_dir.path())))
}

fn see_list() -> &'static str {
    "cargo lab list shows them all (those marked --long need that option, or their full name)"
}

/// Looks for what the run will lack, before an hour of work ends with it.
fn preflight(picked: &[&Task], jobs: &[&Job]) -> Result<RunDir> {
    host::check_powers()?;
    let cache = Cache::open()?;
    if !picked.is_empty() {
        roots::TRIXIE.preflight(&cache)?;
    }
    if picked.iter().any(|task| task.kernel == Kernel::Sid) {
        roots::SID.preflight(&cache)?;
    }
    if !jobs.is_empty() {
        roots::WORKSHOP.preflight(&cache)?;
    }
    RunDir::create()
}

fn stopped(what: &str, error: &anyhow::Error) -> Verdict {
    Verdict {
        name: what.to_owned(),
        time: Duration::ZERO,
        failure: Some(format!("{error:#}")),
        logs: Vec::new(),
    }
}

fn run_host_tests(names: &[String], long: bool, logs: &Path, report: &mut Report) -> Result<()> {
    host::install_test_tools()?;
    let tests: Vec<_> = host_tests::build()?
        .into_iter()
        .filter(|test| matches(names, &test.name))
        .collect();
    if !tests.is_empty() {
        let step = Step::begin(format!("running {} host tests", tests.len()));
        host_tests::run(&tests, long, logs, &mut |verdict| report.add(verdict))?;
        step.done();
    }
    if names.is_empty() {
        host_tests::run_doc_tests(logs, &mut |verdict| report.add(verdict))?;
    }
    Ok(())
}

fn run_vm_tests(
    picked: &[&'static Task],
    long: bool,
    run_dir: &RunDir,
    report: &mut Report,
) -> Result<()> {
    let mut session = Session::prepare(run_dir.path())?;
    session.add_program(build_program("ibctl", false)?, "/usr/bin/ibctl");
    session.add_program(build_program("ibmgrd", false)?, "/usr/sbin/ibmgrd");
    let step = Step::begin(format!("running {} tests in machines", picked.len()));
    let mut measured: Vec<(String, Vec<Figure>)> = Vec::new();
    let wish = Wish {
        long,
        ..Wish::default()
    };
    session.run_tasks(picked, &wish, &mut |outcome| {
        if long && has_long_form(picked, &outcome) {
            measured.push((outcome.task.clone(), long_figures(&outcome)));
        }
        report.add(verdict(outcome));
    })?;
    step.done();
    // Each long form has a section of its own, so that it can be run again alone.
    for (name, figures) in measured {
        let command = format!("cargo lab test --long {name}");
        measurements::record(&format!("Long form of {name}"), &command, &figures)?;
    }
    Ok(())
}

/// Says whether an outcome is one to keep: that of a long form, passed.
fn has_long_form(picked: &[&Task], outcome: &Outcome) -> bool {
    let mut tasks = picked.iter().filter(|task| task.name == outcome.task);
    outcome.failures.is_empty() && tasks.any(|task| task.long_timeout.is_some())
}

fn long_figures(outcome: &Outcome) -> Vec<Figure> {
    let time = Figure {
        name: format!("{}.time", outcome.task),
        value: outcome.time.as_secs_f64(),
        unit: "s".to_owned(),
    };
    let mut figures = outcome.figures.clone();
    figures.push(time);
    figures
}

fn verdict(outcome: Outcome) -> Verdict {
    let failure = (!outcome.failures.is_empty()).then(|| outcome.failures.join("\n"));
    Verdict {
        name: outcome.task,
        time: outcome.time,
        failure,
        logs: outcome.artefacts,
    }
}

/// Prints every test's name and what it shows.
///
/// # Errors
///
/// When the host tests don't build.
pub fn list() -> Result<()> {
    for test in host_tests::build()? {
        super::report::line(&test.name);
    }
    for task in tests::all() {
        let mark = if task.long_only { " (--long)" } else { "" };
        super::report::line(&format!("{:40} {}{mark}", task.name, task.about));
    }
    for job in jobs::ALL {
        let mark = if job.long_only { " (--long)" } else { "" };
        super::report::line(&format!("{:40} {}{mark}", job.name, job.about));
    }
    say("(those with a dot run in machines, and in the lab's roots)");
    Ok(())
}

/// Says whether one of the patterns fits: a part of the name, or a glob with `*` and `?`.
fn matches(patterns: &[String], name: &str) -> bool {
    let fits = |pattern: &String| {
        if pattern.contains(['*', '?']) {
            glob(pattern.as_bytes(), name.as_bytes())
        } else {
            name.contains(pattern.as_str())
        }
    };
    patterns.is_empty() || patterns.iter().any(fits)
}

fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            (0..=name.len()).any(|skip| glob(rest, name.get(skip..).unwrap_or_default()))
        }
        (Some((b'?', rest)), Some((_, name))) => glob(rest, name),
        (Some((want, rest)), Some((have, name))) => want == have && glob(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, fits: bool) {
        assert_eq!(
            matches(&[pattern.to_owned()], name),
            fits,
            "{pattern} on {name}"
        );
    }

    #[test]
    fn names_are_picked() {
        check("ping", "stock.datagram_ping", true);
        check("stock.*", "stock.datagram_ping", true);
        check("stock.*", "lab.stock.x", false);
        check("stock.?x", "stock.ax", true);
        check("*", "", true);
        check("pong", "stock.datagram_ping", false);
        assert!(matches(&[], "anything"));
    }
}
