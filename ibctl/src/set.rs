// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `set`: plan, apply, verify.

use std::io::Write;
use std::path::Path;

use ibmgr_api::{Assignment, Key, Link, LinkName, Outcome, Plan, Report, ReportLine, Value};
use ibmgrd_engine::{self as engine, Port, Query, Unplanned, keys_to_observe, run};

use crate::cli::Format;
use crate::error::Error;
use crate::report;
use crate::request::{Flaw, Request};
use crate::save;

/// Applies the request, and prints how each knob went.
pub(crate) fn set<P: Port>(
    port: &mut P,
    request: Request,
    save: Option<&Path>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (link, wants) = (request.link.clone(), request.wants.clone());
    let (plan, before) = match prepare(port, request) {
        Ok(prepared) => prepared,
        Err(refusal) => return Err(refusal.tell(format, out)),
    };
    let report = run(port, &plan, &before);
    let failure = report.failure().map(Error::from);
    // What did not come about is not declared either.
    let saved = match save.filter(|_| failure.is_none()) {
        Some(path) => save::into_file(port, &link, &wants, path).map(Some),
        None => Ok(None),
    };
    let (saved, unsaved) = match saved {
        Ok(saved) => (saved, None),
        Err(error) => (None, Some(error)),
    };
    let printed = report::print(&report, saved.as_ref(), format, out);
    // What went wrong with the interface weighs more than an output that broke.
    failure.or(unsaved).map_or(printed, Err)
}

/// Prints the steps of the request, in their order.
pub(crate) fn dry_run<P: Port>(
    port: &mut P,
    request: Request,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match prepare(port, request) {
        Ok((plan, _)) => report::print_plan(&plan, format, out),
        Err(refusal) => Err(refusal.tell(format, out)),
    }
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
            let _ = report::print(report, None, format, out);
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
