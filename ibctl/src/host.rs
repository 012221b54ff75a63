// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Printing plans, reports and the state of changes of whole hosts.

use std::borrow::Cow;
use std::io::Write;

use ibmgr_api::form::{
    ChangeForm, CheckpointDeed, CheckpointForm, HostReportForm, InterruptedForm,
};
use ibmgr_api::status::Status;
use ibmgrd_engine::Host;
use ibmgrd_state::change;
use serde::Serialize;

use crate::cli::{At, Format};
use crate::daemon;
use crate::error::Error;
use crate::report;
use crate::text::Table;
use crate::{Kernel, write_json};

/// Keeps the last change for good.
pub(crate) fn confirm<P: Host>(kernel: &Kernel<'_, P>, at: &At) -> Result<(), Error> {
    if let Some(daemon) = kernel.daemon(at)? {
        let confirmed = daemon.end(CheckpointDeed::Confirm)?;
        return confirmed
            .map(drop)
            .map_err(|problem| problem.failure.into());
    }
    let _turn = kernel.turn()?;
    let (_, store) = kernel.open()?;
    change::confirm(&store)?;
    Ok(())
}

/// Takes the last change back, and prints how that went.
pub(crate) fn rollback<P: Host>(
    kernel: &Kernel<'_, P>,
    at: &At,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (ended, failure) = if let Some(daemon) = kernel.daemon(at)? {
        let what = daemon.checkpoint()?.what.unwrap_or_default();
        match daemon.end(CheckpointDeed::Rollback)? {
            Ok(now) => (
                now.report.map(|report| InterruptedForm { what, report }),
                None,
            ),
            Err(problem) => {
                let change = problem.change.map(|change| InterruptedForm {
                    what,
                    report: change.report,
                });
                (change, Some(problem.failure))
            }
        }
    } else {
        let _turn = kernel.turn()?;
        let (mut port, store) = kernel.open()?;
        let ended = change::take_back(&mut port, &store)?;
        (Some(ended.form()), ended.report.failure())
    };
    let printed = match &ended {
        Some(ended) => print_rollback(ended, format, out),
        None => Ok(()),
    };
    failure.map_or(printed, |failure| Err(failure.into()))
}

/// Prints how things stand.
pub(crate) fn status<P: Host>(
    kernel: &Kernel<'_, P>,
    at: &At,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (change, daemon) = match kernel.daemon(at)? {
        Some(daemon) => (daemon.checkpoint()?, Some(daemon.status()?)),
        None => (change::checkpoint(&kernel.open()?.1)?.form(), None),
    };
    print_status(&change, daemon.as_ref(), format, out)
}

/// Prints how an `apply` went, and what it found interrupted.
pub(crate) fn print_applied(
    applied: &ChangeForm,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, applied);
    }
    if let Some(it) = &applied.interrupted {
        write_ended(&it.what, &it.report, "an interrupted apply of", out)?;
        writeln!(out)?;
    }
    write_report(&applied.report, out)?;
    if let Some(seconds) = applied.confirm_within_seconds {
        writeln!(
            out,
            "\nto keep it, run 'ibctl confirm' within {seconds} s; otherwise all is put back"
        )?;
    }
    Ok(())
}

/// Prints how taking back went.
fn print_rollback(
    ended: &InterruptedForm,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, ended);
    }
    write_ended(&ended.what, &ended.report, "the apply of", out)
}

fn write_ended(
    what: &str,
    report: &HostReportForm,
    which: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let how = match report.end.as_str() {
        "applied" => "was finished",
        "rolled-back-in-part" => "could be taken back in part only",
        _ => "was taken back",
    };
    let mut table = Table::default();
    table.wrapped(format!("{which} {what} {how}"));
    table.write(out)?;
    write_report(report, out)
}

fn write_report(report: &HostReportForm, out: &mut dyn Write) -> Result<(), Error> {
    let mut table = Table::default();
    table.row(["LINK", "KNOB", "RESULT", "VALUE", "NOTE"].map(Cow::from));
    for child in &report.children {
        let result = match (child.outcome.as_str(), child.change.as_str()) {
            ("changed", "make") => "made",
            ("changed", "remove") => "removed",
            (outcome, _) => outcome,
        };
        table.row([
            Cow::from(&child.child),
            "child".into(),
            result.into(),
            format!("{} on {}", child.pkey, child.parent).into(),
            child.why.as_deref().unwrap_or_default().into(),
        ]);
    }
    for link in &report.links {
        for (knob, line) in link.knobs.iter() {
            table.row([
                Cow::from(&link.link),
                knob.into(),
                line.outcome.as_str().into(),
                report::values(line).into(),
                report::note(line),
            ]);
        }
    }
    if report.links.is_empty() && report.children.is_empty() {
        writeln!(out, "nothing is declared for the interfaces that are there")?;
        return Ok(());
    }
    Ok(table.write(out)?)
}

#[derive(Serialize)]
struct StatusForm<'a> {
    #[serde(flatten)]
    change: &'a CheckpointForm,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<&'a Status>,
}

/// Prints how things stand, and what the daemon says when there is one.
fn print_status(
    change: &CheckpointForm,
    daemon: Option<&Status>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, &StatusForm { change, daemon });
    }
    let mut table = Table::default();
    table.row([Cow::from("state"), change.state.as_str().into()]);
    if let Some(what) = &change.what {
        add_change(&mut table, what, change);
    }
    table.write(out)?;
    daemon.map_or(Ok(()), |status| daemon::print(status, out))
}

fn add_change<'a>(table: &mut Table<'a>, what: &'a str, change: &'a CheckpointForm) {
    table.row([Cow::from("last apply"), what.into()]);
    let (done, steps) = (
        change.done.unwrap_or_default(),
        change.steps.unwrap_or_default(),
    );
    table.row([Cow::from("steps"), format!("{done} of {steps} done").into()]);
    if let Some(why) = &change.why {
        table.row([Cow::from("taken back"), format!("because {why}").into()]);
    }
    if let Some(report) = change
        .report
        .as_ref()
        .filter(|_| change.state == "rolled-back")
    {
        table.row([Cow::from("result"), report.end.as_str().into()]);
    }
    let next = match change.state.as_str() {
        "pending" => format!(
            "'ibctl confirm' within {} s keeps it, 'ibctl rollback' takes it back now",
            change.confirm_within_seconds.unwrap_or_default()
        ),
        "overdue" | "interrupted" => {
            "'ibctl rollback', or the next 'ibctl apply', brings it to an end".to_owned()
        }
        _ => return,
    };
    table.row([Cow::from("next"), next.into()]);
}
