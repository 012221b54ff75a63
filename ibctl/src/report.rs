// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a set went: its table, and the error that sums up a failure.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use ibmgr_api::form::{LineForm, ReportForm, SetPlanForm};
use serde::Serialize;

use crate::cli::Format;
use crate::error::Error;
use crate::plan::shown;
use crate::save::Saved;
use crate::text::Table;
use crate::write_json;

#[derive(Serialize)]
struct SavedForm<'a> {
    #[serde(flatten)]
    report: &'a ReportForm,
    saved: &'a Path,
    #[serde(rename = "saved-but", skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// Prints a line for each knob, and where the values were saved.
pub(crate) fn print(
    report: &ReportForm,
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
    for (knob, line) in report.knobs.iter() {
        table.row([
            Cow::from(knob),
            line.outcome.as_str().into(),
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
pub(crate) fn print_plan(
    plan: &SetPlanForm,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, plan);
    }
    let mut table = Table::default();
    table.row(["STEP", "KNOB", "VALUE", "VIA", "NOTE"].map(Cow::from));
    for (at, step) in plan.steps.iter().enumerate() {
        let no_effect = step.no_effect.as_ref();
        let no_effect = no_effect.map(|why| format!("will be stored without effect: {why}"));
        table.row([
            Cow::from((at + 1).to_string()),
            step.knob.as_str().into(),
            format!(
                "{} -> {}",
                shown(step.from.as_deref()),
                shown(Some(&step.to))
            )
            .into(),
            step.via.as_str().into(),
            no_effect.unwrap_or_default().into(),
        ]);
    }
    for skip in &plan.already_so {
        table.row([
            Cow::default(),
            skip.knob.as_str().into(),
            shown(Some(&skip.value)).into(),
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
pub(crate) fn values(line: &LineForm) -> String {
    let (before, now) = (line.before.as_deref(), line.now.value.as_deref());
    if line.outcome == "vanished" || before == now {
        return shown(now).to_owned();
    }
    let now = now.map_or("?", |now| shown(Some(now)));
    format!("{} -> {now}", shown(before))
}

pub(crate) fn note(line: &LineForm) -> Cow<'_, str> {
    let is_refused = matches!(line.outcome.as_str(), "refused" | "unsupported");
    match (&line.why, &line.asked) {
        (Some(why), Some(asked)) if is_refused => format!("{}: {why}", shown(Some(asked))).into(),
        (Some(why), _) => why.into(),
        (None, None) => "the kernel changed it along".into(),
        (None, Some(_)) => Cow::default(),
    }
}
