// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a set went: its table, and the error that sums up a failure.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

pub(crate) use ibmgr_api::show;
use ibmgr_api::{Outcome, Plan, Report, ReportLine};

use serde::Serialize;

use crate::cli::Format;
use crate::error::Error;
use crate::save::Saved;
use crate::text::Table;
use crate::write_json;

#[derive(Serialize)]
struct SavedForm<'a> {
    #[serde(flatten)]
    report: &'a Report,
    saved: &'a Path,
    #[serde(rename = "saved-but", skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// Prints a line for each knob, and where the values were saved.
pub(crate) fn print(
    report: &Report,
    saved: Option<&Saved>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        let Some(saved) = saved else {
            return write_json(out, report);
        };
        let form = SavedForm {
            report,
            saved: &saved.file,
            warning: saved.warning.as_deref(),
        };
        return write_json(out, &form);
    }
    let mut table = Table::default();
    table.row(["KNOB", "RESULT", "VALUE", "NOTE"].map(Cow::from));
    for line in &report.lines {
        table.row([
            Cow::from(line.key.to_string()),
            line.outcome.name().into(),
            values(line).into(),
            note(line),
        ]);
    }
    if let Some(saved) = saved {
        let but = saved
            .warning
            .as_ref()
            .map(|warning| format!(", but {warning}"));
        let file = saved.file.display();
        table.line(format!("saved in {file}{}", but.unwrap_or_default()));
    }
    Ok(table.write(out)?)
}

/// Prints the steps of a plan.
pub(crate) fn print_plan(plan: &Plan, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, plan);
    }
    let mut table = Table::default();
    table.row(["STEP", "KNOB", "VALUE", "VIA", "NOTE"].map(Cow::from));
    let no_effect = |why: &Option<String>| {
        why.as_ref().map_or_else(Cow::default, |why| {
            Cow::from(format!("will be stored without effect: {why}"))
        })
    };
    for (at, step) in plan.steps.iter().enumerate() {
        let from = show(&step.key, step.from.as_ref());
        let to = show(&step.key, Some(&step.to));
        table.row([
            Cow::from((at + 1).to_string()),
            step.key.to_string().into(),
            format!("{from} -> {to}").into(),
            step.carrier.channel().name().into(),
            no_effect(&step.no_effect),
        ]);
    }
    for skip in &plan.skips {
        table.row([
            Cow::default(),
            skip.key.to_string().into(),
            show(&skip.key, Some(&skip.value)).into(),
            Cow::default(),
            match &skip.no_effect {
                None => "already so".into(),
                Some(why) => format!("already so, without effect: {why}").into(),
            },
        ]);
    }
    Ok(table.write(out)?)
}

/// Returns `before -> now`, or the one value that did not change.
pub(crate) fn values(line: &ReportLine) -> String {
    if line.outcome == Outcome::Vanished || line.before == line.now {
        return show(&line.key, line.now.as_ref());
    }
    let before = show(&line.key, line.before.as_ref());
    let now = line
        .now
        .as_ref()
        .map_or_else(|| "?".to_owned(), |now| show(&line.key, Some(now)));
    format!("{before} -> {now}")
}

pub(crate) fn note(line: &ReportLine) -> Cow<'_, str> {
    match (line.outcome.why(), &line.asked) {
        (Some(why), Some(value)) if matches!(line.outcome, Outcome::Refused { .. }) => {
            let asked = show(&line.key, Some(value));
            format!("{asked}: {why}").into()
        }
        (Some(why), _) => why.into(),
        (None, None) => "the kernel changed it along".into(),
        (None, Some(_)) => Cow::default(),
    }
}
