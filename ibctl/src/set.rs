// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `set`: plan, apply, verify.

use std::io::Write;
use std::path::Path;

use ibmgr_api::form::{KnobsBody, ReportForm};
use ibmgr_api::{Assignment, Key, Link, LinkName, Outcome, Plan, Report, ReportLine, Value};
use ibmgrd_engine::{self as engine, Host, Port, Query, Unplanned, keys_to_observe, run};
use ibmgrd_state::change;

use crate::Kernel;
use crate::cli::{At, Format};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::report;
use crate::request::{Flaw, Request};
use crate::save;

/// A set, and how to do it.
pub(crate) struct Set<'a> {
    /// What is asked for.
    pub(crate) request: Request,
    /// File to declare the values in, too.
    pub(crate) save: Option<&'a Path>,
    /// Only plan.
    pub(crate) dry_run: bool,
    /// Where the daemon is.
    pub(crate) at: At,
}

impl Set<'_> {
    /// Does it, and prints how each knob went, or the steps of its plan.
    pub(crate) fn run<P: Host>(
        self,
        kernel: &Kernel<'_, P>,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        // What is wrong in itself is told with the values at present, which the kernel has.
        let is_sound = self.request.flaws.is_empty()
            && keys_to_observe(&self.request.wants, self.request.via).is_ok();
        if is_sound && let Some(daemon) = kernel.daemon(&self.at)? {
            return self.by_daemon(kernel, &daemon, format, out);
        }
        let _turn = (!self.dry_run).then(|| kernel.turn()).transpose()?;
        let (mut port, store) = kernel.open()?;
        let (link, wants) = (self.request.link.clone(), self.request.wants.clone());
        let (plan, before) = match prepare(&mut port, self.request) {
            Ok(prepared) => prepared,
            Err(refusal) => return Err(refusal.tell(format, out)),
        };
        if self.dry_run {
            return report::print_plan(&(&plan).into(), format, out);
        }
        let keys = plan.steps.iter().map(|step| &step.key);
        change::check_set(&store, before.index, keys)?;
        let report = run(&mut port, &plan, &before);
        let failure = report.failure().map(Error::from);
        let save = self.save.map(|path| (path, &link, wants.as_slice()));
        finish(&mut port, &(&report).into(), failure, save, format, out)
    }

    fn by_daemon<P: Host>(
        self,
        kernel: &Kernel<'_, P>,
        daemon: &Daemon,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let Request {
            link, wants, via, ..
        } = self.request;
        let value = |want: &Assignment| want.value.show(&want.key.knob().domain);
        let knobs = wants.iter().map(|want| (want.key.to_string(), value(want)));
        let body = KnobsBody {
            knobs: knobs.collect(),
            via: via.map(|via| via.name().to_owned()),
            dry_run: self.dry_run,
            why: None,
        };
        if self.dry_run {
            let plan = daemon.plan_set(&link, &body)?;
            let plan = plan.map_err(|problem| problem.failure)?;
            return report::print_plan(&plan, format, out);
        }
        let (report, failure) = match daemon.set(&link, &body)? {
            Ok(report) => (report, None),
            Err(problem) => match problem.report {
                Some(report) => (report, Some(Error::from(problem.failure))),
                None => return Err(problem.failure.into()),
            },
        };
        let save = self.save.map(|path| (path, &link, wants.as_slice()));
        finish(&mut (kernel.open)()?, &report, failure, save, format, out)
    }
}

/// Saves the values where that was asked for, and prints how it went.
fn finish<P: Port>(
    port: &mut P,
    report: &ReportForm,
    failure: Option<Error>,
    save: Option<(&Path, &LinkName, &[Assignment])>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    // What did not come about is not declared either.
    let saved = match save.filter(|_| failure.is_none()) {
        Some((path, link, wants)) => save::into_file(port, link, wants, path).map(Some),
        None => Ok(None),
    };
    let (saved, unsaved) = match saved {
        Ok(saved) => (saved, None),
        Err(error) => (None, Some(error)),
    };
    let printed = report::print(report, saved.as_ref(), format, out);
    // What went wrong with the interface weighs more than an output that broke.
    failure.or(unsaved).map_or(printed, Err)
}

/// A request without a plan.
struct Refusal {
    error: Error,
    /// The present values, when they could be read.
    report: Option<Report>,
}

impl Refusal {
    fn tell(self, format: Format, out: &mut dyn Write) -> Error {
        // The refusal weighs more than an output that broke.
        if let Some(report) = &self.report {
            let _ = report::print(&report.into(), None, format, out);
        }
        self.error
    }
}

fn prepare<P: Port>(port: &mut P, request: Request) -> Result<(Plan, Link), Box<Refusal>> {
    let Request {
        link,
        wants,
        mut flaws,
        via,
    } = request;
    if let Err(error) = keys_to_observe(&wants, via) {
        flaws.push(error.into());
    }
    if let Some(refusal) = refuse(port, &link, &wants, flaws) {
        return Err(Box::new(refusal));
    }
    engine::prepare(port, &link, &wants, via).map_err(|unplanned| {
        let (error, report) = match unplanned {
            Unplanned::Port(error) => (Error::Port(error), None),
            Unplanned::Plan { error, report } => (error.into(), report),
        };
        Box::new(Refusal { error, report })
    })
}

/// Refuses a request that is wrong in itself, and reads what its knobs are at present.
///
/// The first flaw is the error; the report has them all. `None` without a flaw.
fn refuse<P: Port>(
    port: &mut P,
    link: &LinkName,
    wants: &[Assignment],
    flaws: Vec<Flaw>,
) -> Option<Refusal> {
    if flaws.is_empty() {
        return None;
    }
    let mut lines: Vec<ReportLine> = Vec::new();
    let mut add = |key: &Key, asked: Option<Value>, outcome| {
        if !lines.iter().any(|line| line.key == *key) {
            lines.push(ReportLine {
                key: key.clone(),
                asked,
                before: None,
                now: None,
                outcome,
            });
        }
    };
    for flaw in &flaws {
        if let Some(key) = &flaw.key {
            let (why, code) = (flaw.why(), flaw.error.code());
            add(key, None, Outcome::Refused { why, code });
        }
    }
    for want in wants {
        add(&want.key, Some(want.value.clone()), Outcome::NotTried);
    }
    let report = read_into(port, link, lines);
    let error = flaws.into_iter().next()?.error;
    Some(Refusal { error, report })
}

/// Completes lines with the present values; `None` when there are none, or they cannot be read.
fn read_into<P: Port>(port: &mut P, link: &LinkName, mut lines: Vec<ReportLine>) -> Option<Report> {
    if lines.is_empty() {
        return None;
    }
    let keys = lines.iter().map(|line| line.key.clone()).collect();
    let mut present = port.observe(link, &Query::named(keys)).ok()?;
    for line in &mut lines {
        line.now = present
            .readings
            .remove(&line.key)
            .and_then(|reading| reading.value);
        line.before = line.now.clone();
    }
    Some(Report {
        link: present.name,
        lines,
    })
}
