// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `cargo lab bench`: figures against their goals.
//!
//! A [`Case`] is a function on the host. It boots machines that run measures
//! (`guest/measures/`), or measures on the host itself, and turns figures into bars.

pub mod bar;
mod cases;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub use bar::{Bar, Goal, median};

use crate::guest::tests;
use crate::lab::host;
use crate::lab::machine::{Heard, Shape};
use crate::lab::measurements;
use crate::lab::place::RunDir;
use crate::lab::progress::{Step, say};
use crate::lab::report::line;
use crate::lab::session::{Session, Wish, build_program};
use crate::wire::{Event, Figure, Job};

/// One case: all bars whose names begin with its name.
#[derive(Debug)]
pub struct Case {
    /// First word of its bars' names.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Measures, and reports each bar.
    pub run: fn(&mut Bench) -> Result<()>,
}

/// What a case measures with.
pub struct Bench {
    run_dir: RunDir,
    session: Option<Session>,
    json: bool,
    long: bool,
    case: &'static str,
    bars: Vec<Bar>,
}

impl Bench {
    /// Reports a bar.
    ///
    /// # Errors
    ///
    /// When its name doesn't begin with the case's, or a figure is no number.
    pub fn bar(
        &mut self,
        name: &str,
        ours: f64,
        peer: Option<f64>,
        goal: Goal,
        unit: &str,
    ) -> Result<()> {
        if name.split('.').next() != Some(self.case) {
            bail!("bar {name} is not of case {}", self.case);
        }
        if !ours.is_finite() || peer.is_some_and(|value| !value.is_finite()) {
            bail!("bar {name} is no number: {ours}, peer {peer:?}");
        }
        let bar = Bar {
            name: name.to_owned(),
            ours,
            peer,
            goal,
            unit: unit.to_owned(),
        };
        line(&if self.json { bar.json() } else { bar.line() });
        say(&format!(
            "    {name}: goal {}",
            if goal.met(ours) { "met" } else { "MISSED" }
        ));
        self.bars.push(bar);
        Ok(())
    }

    /// Says whether long forms are wanted.
    #[must_use]
    pub fn long(&self) -> bool {
        self.long
    }

    /// Boots a machine, runs one measure in it and returns its figures.
    ///
    /// # Errors
    ///
    /// When the machine can't be made, or the measure fails.
    pub fn measure(&mut self, measure: &str, args: &[&str]) -> Result<Vec<Figure>> {
        let task = tests::find(measure).with_context(|| format!("no measure {measure}"))?;
        let args = args.iter().map(|&word| word.to_owned()).collect();
        let mut result = None;
        let wish = Wish {
            args,
            ..Wish::default()
        };
        self.session()?
            .run_tasks(&[task], &wish, &mut |outcome| result = Some(outcome))?;
        let outcome = result.with_context(|| format!("{measure} has no outcome"))?;
        if !outcome.failures.is_empty() {
            bail!("{measure} failed:\n{}", outcome.failures.join("\n"));
        }
        Ok(outcome.figures)
    }

    /// Boots a machine for one measure and returns the time from the start of QEMU to its first
    /// figure.
    ///
    /// # Errors
    ///
    /// When the machine can't be made, or the measure fails first.
    pub fn time_to_figure(&mut self, measure: &str, limit: Duration) -> Result<Duration> {
        let task = tests::find(measure).with_context(|| format!("no measure {measure}"))?;
        let job = Job {
            tasks: vec![measure.to_owned()],
            ..Job::default()
        };
        let machine = self.session()?.boot(task.kernel, Shape::USUAL, &job)?;
        loop {
            match machine.hear(limit.saturating_sub(machine.age())) {
                Heard::Event(Event::Figure(_)) => return Ok(machine.age()),
                Heard::Event(Event::Failure { message }) => bail!("{measure} failed: {message}"),
                Heard::Event(_) => {}
                Heard::Silence | Heard::Gone => {
                    bail!(
                        "{measure} gave no figure in {limit:?}:\n{}",
                        machine.last_words()
                    )
                }
            }
        }
    }

    /// Returns a folder for files of the run.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.run_dir.path()
    }

    /// Returns the path of `ibctl`, built as it is shipped.
    ///
    /// # Errors
    ///
    /// When it doesn't build.
    pub fn ibctl(&self) -> Result<PathBuf> {
        build_program("ibctl", true)
    }

    fn session(&mut self) -> Result<&mut Session> {
        if self.session.is_none() {
            let mut session = Session::prepare(self.run_dir.path())?;
            session.add_program(self.ibctl()?, "/usr/bin/ibctl");
            self.session = Some(session);
        }
        self.session.as_mut().context("the session was just made")
    }
}

/// Picks the figure called `name`.
///
/// # Errors
///
/// When there is none.
pub fn pick(figures: &[Figure], name: &str) -> Result<f64> {
    let found = figures.iter().find(|figure| figure.name == name);
    found.map(|figure| figure.value).with_context(|| {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        format!("no figure {name}; there are {}", names.join(", "))
    })
}

/// Measures one case, or all; true when everything could be measured.
///
/// A full run is recorded in `docs/measurements.md`.
///
/// # Errors
///
/// When there is no such case, or the lab can't be set up.
pub fn run(wanted: Option<&str>, json: bool, long: bool) -> Result<bool> {
    let cases: Vec<&Case> = cases::ALL
        .iter()
        .filter(|case| wanted.is_none_or(|name| name == case.name))
        .collect();
    if cases.is_empty() {
        let known: Vec<&str> = cases::ALL.iter().map(|case| case.name).collect();
        bail!(
            "no case {}; there are {}",
            wanted.unwrap_or_default(),
            known.join(", ")
        );
    }
    host::check_powers()?;
    let mut bench = Bench {
        run_dir: RunDir::create()?,
        session: None,
        json,
        long,
        case: "",
        bars: Vec::new(),
    };
    let mut failed = Vec::new();
    for case in cases {
        bench.case = case.name;
        let step = Step::begin(format!("measuring {}: {}", case.name, case.about));
        match (case.run)(&mut bench) {
            Ok(()) => step.done(),
            Err(error) => {
                drop(step);
                say(&format!("{} can't be measured: {error:#}", case.name));
                failed.push(case.name);
            }
        }
    }
    if !failed.is_empty() {
        say(&format!("not measured: {}", failed.join(", ")));
        return Ok(false);
    }
    let figures: Vec<Figure> = bench.bars.iter().flat_map(Bar::figures).collect();
    match wanted {
        None => measurements::record("Bars", "cargo lab bench", &figures)?,
        Some(case) => {
            let (title, command) = (format!("Bars of {case}"), format!("cargo lab bench {case}"));
            measurements::record(&title, &command, &figures)?;
        }
    }
    Ok(true)
}

/// Returns the size of a file in bytes.
///
/// # Errors
///
/// When it isn't there.
pub fn file_size(path: &std::path::Path) -> Result<u64> {
    Ok(fs::metadata(path)
        .with_context(|| format!("no {}", path.display()))?
        .len())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn figures_are_picked_by_name() {
        let figures = [Figure {
            name: "a".into(),
            value: 2.0,
            unit: "s".into(),
        }];
        assert_eq!(pick(&figures, "a").unwrap(), 2.0);
        assert_eq!(
            pick(&figures, "b").unwrap_err().to_string(),
            "no figure b; there are a"
        );
    }

    #[test]
    fn an_unknown_case_names_the_known() {
        let error = run(Some("nonsense"), false, false).unwrap_err().to_string();
        assert!(error.contains("lab"), "{error}");
    }
}
