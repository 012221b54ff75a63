// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a set went: its table, and the error that sums up a failure.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use ibmgr_api::{ErrorCode, Key, Outcome, Plan, Report, ReportLine, Value};

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

/// Returns the error that sums up a set which did not go as asked.
pub(crate) fn failure(report: &Report) -> Option<Error> {
    let code = report.code()?;
    let line = report
        .lines
        .iter()
        .find(|line| line.outcome.code() == Some(code))?;
    let what = what(report, line);
    let state = state(report, code);
    Some(Error::Set {
        message: format!("{}: {what}{state}", report.link),
        code,
        link: report.link.clone(),
        key: line.key.clone(),
    })
}

pub(crate) fn what(report: &Report, line: &ReportLine) -> String {
    let key = &line.key;
    let asked = match &line.asked {
        Some(value) => format!("{key}={}", show(key, Some(value))),
        None => key.to_string(),
    };
    match &line.outcome {
        Outcome::Refused { why, code } => match code {
            ErrorCode::Permission => format!("no permission to set {key}: {why}"),
            ErrorCode::Unsupported => format!("{key} is not supported here: {why}"),
            ErrorCode::Refused => format!("the kernel refused {asked}: {why}"),
            _ => format!("{asked} could not be set: {why}"),
        },
        Outcome::NoEffect { why } => format!("{asked} is stored, but has no effect: {why}"),
        Outcome::NotVerified { why } => format!("{asked} did not come about: {why}"),
        Outcome::NotPutBack { why } => {
            let before = show(key, line.before.as_ref());
            let cause = cause(report).map_or_else(String::new, |cause| format!("{cause}, and "));
            let now = show(key, line.now.as_ref());
            format!("{cause}{key} could not be put back to {before}: {why}; it is {now} now")
        }
        Outcome::Vanished => "the interface disappeared while it was being set".to_owned(),
        Outcome::Changed | Outcome::AlreadySo | Outcome::PutBack | Outcome::NotTried => asked,
    }
}

/// Returns what made the set fail before something could not be put back.
fn cause(report: &Report) -> Option<String> {
    let is_cause = |line: &&ReportLine| {
        matches!(
            line.outcome,
            Outcome::Refused { .. } | Outcome::NotVerified { .. }
        )
    };
    let line = report.lines.iter().find(is_cause)?;
    Some(what(report, line))
}

fn state(report: &Report, code: ErrorCode) -> &'static str {
    let is_put_back = |line: &ReportLine| line.outcome == Outcome::PutBack;
    let is_gone = |line: &ReportLine| line.outcome == Outcome::Vanished;
    match code {
        // The message says it: it is stored, gone, or not put back.
        ErrorCode::NoEffect | ErrorCode::NotPutBack => "",
        ErrorCode::Vanished if report.lines.iter().any(is_gone) => "",
        _ if report.lines.iter().any(is_put_back) => "; what was changed before it was put back",
        ErrorCode::NotVerified => "; the value of before was put back",
        _ => "; nothing was changed",
    }
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

pub(crate) fn show(key: &Key, value: Option<&Value>) -> String {
    match value.map(|value| value.show(&key.knob().domain)) {
        Some(text) if text.is_empty() => "''".to_owned(),
        Some(text) => text,
        None => "-".to_owned(),
    }
}
