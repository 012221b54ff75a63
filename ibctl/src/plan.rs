// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `plan`: the steps from what is to what files declare, each with the place that wants it.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use ibmgr_api::Origin;
use ibmgr_api::form::{FindingForm, PlanForm, SourceForm, StepForm};
use ibmgrd_config::{Loaded, Source, load_read, read_paths};
use ibmgrd_engine::{Host, plan_declared};

use crate::check;
use crate::cli::{At, Format};
use crate::error::Error;
use crate::text::Table;
use crate::{Kernel, write_json};

/// Declarations of files.
pub(crate) struct Declarations {
    /// What they are, and what is worth knowing of them.
    pub(crate) loaded: Loaded,
    /// Their texts, for the daemon.
    pub(crate) sources: Vec<SourceForm>,
}

/// Reads declarations that shall be planned or applied: all files must be right.
///
/// # Errors
///
/// What is wrong with them.
pub(crate) fn load(paths: &[PathBuf]) -> Result<Declarations, Error> {
    let listing = read_paths(paths);
    let text = |source: &Source| {
        let bytes = source.content.as_ref().map_or(&[][..], Vec::as_slice);
        SourceForm {
            file: source.file.to_string(),
            // What is no text is wrong, and told below.
            text: String::from_utf8_lossy(bytes).into_owned(),
        }
    };
    let sources = listing.sources.iter().map(text).collect();
    let loaded = load_read(listing);
    if loaded.has_errors() {
        let errors = loaded.diagnostics.iter().filter(|found| found.is_error());
        let texts: Vec<String> = errors.map(ToString::to_string).collect();
        return Err(Error::Config(format!(
            "{}\n{}",
            check::summary(&loaded),
            texts.join("\n")
        )));
    }
    Ok(Declarations { loaded, sources })
}

/// Prints what an `apply` of these files would do. Nothing is changed.
///
/// # Errors
///
/// A file is wrong, or something that it declares cannot be done; the rest is printed all the same.
pub(crate) fn run<P: Host>(
    kernel: &Kernel<'_, P>,
    files: &[PathBuf],
    at: &At,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Declarations { loaded, sources } = load(files)?;
    let plan = match kernel.daemon(at)? {
        Some(daemon) => daemon.plan(sources)?.map_err(|problem| problem.failure)?,
        None => {
            let (wants, plan) = plan_declared(&mut (kernel.open)()?, &loaded.desired)?;
            let findings = loaded.diagnostics.iter().map(FindingForm::from);
            PlanForm::new(&plan, &wants, findings.collect())
        }
    };
    print(&plan, &loaded, format, out)
}

/// Prints a plan, after what is worth knowing of its files.
///
/// # Errors
///
/// Something cannot be done; the rest is printed all the same.
fn print(
    plan: &PlanForm,
    loaded: &Loaded,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format {
        Format::Json => write_json(out, plan)?,
        Format::Table => {
            for found in &loaded.diagnostics {
                check::print_finding(found, out)?;
            }
            table(plan, out)?;
        }
    }
    plan.failure().map_or(Ok(()), |failure| Err(failure.into()))
}

/// Prints a plan as a table.
///
/// # Errors
///
/// `out` does not take it.
pub(crate) fn table(plan: &PlanForm, out: &mut dyn Write) -> Result<(), Error> {
    if plan.is_empty() {
        return Ok(writeln!(out, "nothing to do")?);
    }
    let mut table = Table::default();
    table.row(["STEP", "LINK", "WHAT", "VALUE", "VIA", "FROM", "NOTE"].map(Cow::from));
    for (at, step) in plan.steps.iter().enumerate() {
        let number = Cow::from((at + 1).to_string());
        table.row([vec![number], cells(step)].concat());
    }
    for refusal in &plan.refused {
        let what = match (&refusal.knob, &refusal.pkey) {
            (Some(knob), _) => knob.clone(),
            (None, Some(pkey)) => format!("child {pkey}"),
            (None, None) => String::new(),
        };
        table.row([
            Cow::default(),
            refusal.link.as_deref().unwrap_or_default().into(),
            what.into(),
            Cow::default(),
            Cow::default(),
            place(refusal.origin.as_ref()),
            format!("can't be done: {}", refusal.why).into(),
        ]);
    }
    table.drop_empty_columns();
    Ok(table.write(out)?)
}

fn cells(step: &StepForm) -> Vec<Cow<'_, str>> {
    match step {
        StepForm::Set {
            link,
            knob,
            from,
            to,
            via,
            origin,
            ..
        } => vec![
            link.into(),
            knob.into(),
            format!("{} -> {}", shown(from.as_deref()), shown(Some(to))).into(),
            via.into(),
            place(origin.as_ref()),
            note(step).into(),
        ],
        StepForm::Make {
            child,
            parent,
            pkey,
            kind,
            knobs,
            origin,
        } => {
            let values: Vec<String> = knobs
                .iter()
                .map(|(k, value)| format!("{k}={value}"))
                .collect();
            vec![
                child.into(),
                "make child".into(),
                format!("{pkey} on {parent}").into(),
                kind.into(),
                place(origin.as_ref()),
                values.join(" ").into(),
            ]
        }
        StepForm::Remove {
            child,
            parent,
            pkey,
            via,
            origin,
            ..
        } => vec![
            child.into(),
            "remove child".into(),
            format!("{pkey} on {parent}").into(),
            via.into(),
            place(origin.as_ref()),
            Cow::default(),
        ],
    }
}

fn place(origin: Option<&Origin>) -> Cow<'static, str> {
    origin.map(ToString::to_string).unwrap_or_default().into()
}

/// Returns a value as tables show it.
pub(crate) fn shown(value: Option<&str>) -> &str {
    match value {
        Some("") => "''",
        Some(text) => text,
        None => "-",
    }
}

/// Says what is worth knowing of a step: that it has no effect, and what it overrides.
fn note(step: &StepForm) -> String {
    let StepForm::Set {
        to,
        no_effect,
        overrides,
        ..
    } = step
    else {
        return String::new();
    };
    let mut notes: Vec<String> = Vec::new();
    if let Some(why) = no_effect {
        notes.push(format!("will be stored without effect: {why}"));
    }
    for other in overrides.iter().filter(|other| other.value != *to) {
        notes.push(format!(
            "overrides {} of {}",
            shown(Some(&other.value)),
            other.origin
        ));
    }
    notes.join("; ")
}
