// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Printing plans, reports and the state of changes of whole hosts.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use ibmgr_api::{Action, Assignment, ChildReport, End, HostPlan, HostRefusal, HostReport};
use ibmgrd_state::Kept;
use ibmgrd_state::change::{Applied, Checkpoint, Ended, Word};
use serde::Serialize;

use crate::cli::Format;
use crate::daemon;
use crate::error::Error;
use crate::report;
use crate::text::Table;
use crate::write_json;

/// Prints the actions of a plan, in their order, and what cannot be done.
pub(crate) fn print_plan(
    plan: &HostPlan,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, plan);
    }
    let mut table = Table::default();
    table.row(["STEP", "LINK", "WHAT", "VALUE", "VIA", "NOTE"].map(Cow::from));
    for (at, action) in plan.actions.iter().enumerate() {
        let step = Cow::from((at + 1).to_string());
        match action {
            Action::Set { link, step: write } => {
                let link = plan
                    .links
                    .get(*link)
                    .map(|link| link.target.name.to_string());
                let from = report::show(&write.key, write.from.as_ref());
                let to = report::show(&write.key, Some(&write.to));
                let note = write.no_effect.as_ref().map_or_else(String::new, |why| {
                    format!("will be stored without effect: {why}")
                });
                table.row([
                    step,
                    link.unwrap_or_default().into(),
                    write.key.to_string().into(),
                    format!("{from} -> {to}").into(),
                    write.carrier.channel().name().into(),
                    note.into(),
                ]);
            }
            Action::Make { child, wants } => {
                let wants: Vec<String> = wants.iter().map(Assignment::to_string).collect();
                table.row([
                    step,
                    child.name.to_string().into(),
                    "make child".into(),
                    format!("{} on {}", child.pkey, child.parent.name).into(),
                    child.kind.name().into(),
                    wants.join(" ").into(),
                ]);
            }
            Action::Remove { child, .. } => table.row([
                step,
                child.child.name.to_string().into(),
                "remove child".into(),
                format!("{} on {}", child.pkey, child.parent.name).into(),
                child.via.name().into(),
                Cow::default(),
            ]),
        }
    }
    for refusal in &plan.refused {
        let (link, what, why) = refused(refusal);
        table.row([
            Cow::default(),
            link.into(),
            what.into(),
            Cow::default(),
            Cow::default(),
            format!("cannot be done: {why}").into(),
        ]);
    }
    if plan.actions.is_empty() && plan.refused.is_empty() {
        writeln!(out, "nothing to do")?;
        return Ok(());
    }
    table.drop_empty_columns();
    Ok(table.write(out)?)
}

fn refused(refusal: &HostRefusal) -> (String, String, String) {
    match refusal {
        HostRefusal::Knob(error) => (
            error.link().map(ToString::to_string).unwrap_or_default(),
            error.key().to_string(),
            error.why(),
        ),
        HostRefusal::Child { parent, pkey, why } => {
            (parent.to_string(), format!("child {pkey}"), why.clone())
        }
        other => (String::new(), String::new(), other.to_string()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct AppliedForm<'a> {
    #[serde(flatten)]
    report: &'a HostReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_within_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<InterruptedForm<'a>>,
}

#[derive(Serialize)]
struct InterruptedForm<'a> {
    what: &'a str,
    #[serde(flatten)]
    report: &'a HostReport,
}

/// Prints how an `apply` went, and what it found interrupted.
pub(crate) fn print_applied(
    applied: &Applied,
    interrupted: Option<&Ended>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        let form = AppliedForm {
            report: &applied.report,
            confirm_within_seconds: applied.confirm_within.map(whole_seconds),
            interrupted: interrupted.map(|it| InterruptedForm {
                what: &it.what,
                report: &it.report,
            }),
        };
        return write_json(out, &form);
    }
    if let Some(recovered) = interrupted {
        write_recovered(recovered, "an interrupted apply of", out)?;
        writeln!(out)?;
    }
    write_report(&applied.report, out)?;
    if let Some(left) = applied.confirm_within {
        let seconds = whole_seconds(left);
        writeln!(
            out,
            "\nto keep it, run 'ibctl confirm' within {seconds} s; otherwise all is put back"
        )?;
    }
    Ok(())
}

/// Prints how taking back went.
pub(crate) fn print_rollback(
    recovered: &Ended,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, &recovered.report);
    }
    write_recovered(recovered, "the apply of", out)
}

fn write_recovered(recovered: &Ended, which: &str, out: &mut dyn Write) -> Result<(), Error> {
    let how = match recovered.report.end {
        End::Applied => "was finished",
        End::InPart => "could be taken back in part only",
        End::Nothing | End::NotStarted | End::RolledBack => "was taken back",
    };
    let mut table = Table::default();
    table.wrapped(format!("{which} {} {how}", recovered.what));
    table.write(out)?;
    write_report(&recovered.report, out)
}

fn write_report(report: &HostReport, out: &mut dyn Write) -> Result<(), Error> {
    let mut table = Table::default();
    table.row(["LINK", "KNOB", "RESULT", "VALUE", "NOTE"].map(Cow::from));
    for child in &report.children {
        table.row([
            Cow::from(child.name.to_string()),
            "child".into(),
            child_result(child).into(),
            format!("{} on {}", child.pkey, child.parent).into(),
            child.outcome.why().unwrap_or_default().into(),
        ]);
    }
    for link in &report.links {
        for line in &link.lines {
            table.row([
                Cow::from(link.link.to_string()),
                line.key.to_string().into(),
                line.outcome.name().into(),
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

fn child_result(child: &ChildReport) -> String {
    use ibmgr_api::{ChildChange, Outcome};
    match (&child.outcome, child.change) {
        (Outcome::Changed, ChildChange::Make) => "made".to_owned(),
        (Outcome::Changed, ChildChange::Remove) => "removed".to_owned(),
        (outcome, _) => outcome.name().to_owned(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct StatusForm<'a> {
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_within_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<&'a ibmgr_api::status::Status>,
}

/// Prints how things stand, and what the daemon says when there is one.
pub(crate) fn print_status(
    status: &Checkpoint,
    daemon: Option<&ibmgr_api::status::Status>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let kept = status.kept.as_ref();
    let left = status.word.left().map(whole_seconds);
    if format == Format::Json {
        let form = StatusForm {
            state: status.word.name().to_owned(),
            what: kept.map(|kept| kept.about.what.as_str()),
            confirm_within_seconds: left,
            steps: kept.map(|kept| kept.story.plan.actions.len()),
            why: kept.and_then(|kept| kept.why.as_deref()),
            report: kept.and_then(|kept| kept.report.as_ref()),
            daemon,
        };
        return write_json(out, &form);
    }
    let mut table = Table::default();
    table.row([Cow::from("state"), status.word.name().into()]);
    if let Some(kept) = kept {
        add_change(&mut table, status.word, kept, left);
    }
    table.write(out)?;
    daemon.map_or(Ok(()), |status| daemon::print(status, out))
}

fn add_change<'a>(table: &mut Table<'a>, word: Word, kept: &'a Kept, left: Option<u64>) {
    table.row([Cow::from("last apply"), kept.about.what.as_str().into()]);
    table.row([
        Cow::from("steps"),
        format!(
            "{} of {} done",
            kept.story.done.len(),
            kept.story.plan.actions.len()
        )
        .into(),
    ]);
    if let Some(why) = &kept.why {
        table.row([Cow::from("taken back"), format!("because {why}").into()]);
    }
    let end = kept
        .report
        .as_ref()
        .and_then(|report| report["end"].as_str());
    if let Some(end) = end.filter(|_| word == Word::RolledBack) {
        table.row([Cow::from("result"), end.to_owned().into()]);
    }
    let next = match word {
        Word::Pending(_) => format!(
            "'ibctl confirm' within {} s keeps it, 'ibctl rollback' takes it back now",
            left.unwrap_or_default()
        ),
        Word::Overdue | Word::Interrupted => {
            "'ibctl rollback', or the next 'ibctl apply', brings it to an end".to_owned()
        }
        Word::Idle | Word::Applied | Word::RolledBack => return,
    };
    table.row([Cow::from("next"), next.into()]);
}

/// Returns the time in seconds, rounded up.
const fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + (time.subsec_nanos() > 0) as u64
}
