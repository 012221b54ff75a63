// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `import`: other tools' configuration to a file of ours, with a report of each setting.
//!
//! The rules go to standard output, or to a file; the report goes to standard error. With `-o json`
//! there is one document on standard output that holds both.

mod files;
mod target;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use ibmgr_api::{Desired, ErrorCode};
use ibmgrd_import::{Format as From, Import, Note, Options, Outcome};
use serde::Serialize;

use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain};
use crate::write_json;

/// Longest setting in the report's table; JSON has all of it.
const SETTING_MAX: usize = 88;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) from: From,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) to: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) options: Options,
}

/// The document of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    from: From,
    /// Where the rules were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// How many settings had each outcome.
    counts: BTreeMap<&'static str, usize>,
    settings: &'a [Note],
    /// The rules, when they were not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    toml: Option<&'a str>,
}

/// Imports files.
///
/// # Errors
///
/// A file can't be read, or is not of its format: nothing is written then. Nothing could be carried:
/// there is a report, and nothing is written.
pub(crate) fn import(
    request: &Request,
    format: Format,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<(), Error> {
    if let Some(to) = &request.to {
        target::check(to, request.force)?;
    }
    let sources = files::read(request.from, &request.paths)?;
    let import =
        ibmgrd_import::import(request.from, &sources, request.options).map_err(malformed)?;
    let is_empty = import.desired.rules.is_empty();
    let text = rules(request.from, &import.desired);
    if let Some(to) = request.to.as_ref().filter(|_| !is_empty) {
        target::write(to, &text, request.force)?;
    }
    match format {
        Format::Json => {
            let is_file = request.to.is_some();
            let to = request.to.as_ref().filter(|_| !is_empty);
            let document = Document {
                from: request.from,
                to: to.map(|to| to.to_string_lossy().into_owned()),
                counts: counts(&import),
                settings: &import.notes,
                toml: (!is_file && !is_empty).then_some(&text),
            };
            write_json(stdout, &document)?;
        }
        Format::Table => {
            if request.to.is_none() && !is_empty {
                stdout.write_all(text.as_bytes())?;
                // On a terminal the rules come first.
                stdout.flush()?;
            }
            report(&import, stderr)?;
        }
    }
    if is_empty {
        return Err(Error::Files {
            message: "nothing of these files could be carried over".to_owned(),
            hint: Some("the report tells why, setting by setting".to_owned()),
            code: ErrorCode::BadValue,
            source: None,
        });
    }
    Ok(())
}

/// Writes the rules as a file of ours, each with the files that it comes from.
fn rules(from: From, desired: &Desired) -> String {
    let mut text = format!("# Imported by 'ibctl import --from {from}'.\n");
    for rule in &desired.rules {
        let mut files = vec![&rule.origin.file];
        for child in &rule.children {
            if !files.contains(&&child.origin.file) {
                files.push(&child.origin.file);
            }
        }
        text.push('\n');
        for file in files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# {}", file.escape_debug());
        }
        text.push_str(&ibmgrd_config::rule_to_toml(rule));
    }
    text
}

fn counts(import: &Import) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = Outcome::ALL
        .iter()
        .map(|outcome| (outcome.name(), 0))
        .collect();
    for note in &import.notes {
        *counts.entry(note.outcome.name()).or_default() += 1;
    }
    counts
}

/// Writes what became of each setting, for people.
fn report(import: &Import, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default();
    table.row(["PLACE", "SETTING", "RESULT", "INTO", "NOTE"].map(Into::into));
    for note in &import.notes {
        table.row([
            note.place.to_string().into(),
            setting(note).into(),
            note.outcome.name().into(),
            note.into.as_deref().unwrap_or_default().into(),
            note.why.as_deref().unwrap_or_default().into(),
        ]);
    }
    table.write(out)?;
    let counts = counts(import);
    let part = |outcome: Outcome| {
        let count = counts.get(outcome.name()).copied().unwrap_or_default();
        format!("{count} {}", outcome.name())
    };
    let parts = Outcome::ALL.into_iter().map(part);
    writeln!(out, "ibctl: {}", parts.collect::<Vec<_>>().join(", "))
}

/// Returns a setting as its file has it, shortened where it is long.
fn setting(note: &Note) -> String {
    let text = match &note.value {
        Some(value) => format!("{}={value}", note.key),
        None => note.key.clone(),
    };
    if text.chars().count() <= SETTING_MAX {
        return text;
    }
    if note.outcome == Outcome::LeftToOwner {
        let keys: Vec<&str> = note.key.split(", ").collect();
        return format!("{} and {} more", keys[0], keys.len() - 1);
    }
    let kept: String = text.chars().take(SETTING_MAX - 3).collect();
    format!("{kept}...")
}

fn malformed(errors: Vec<ibmgrd_import::ImportError>) -> Error {
    let lines = errors
        .iter()
        .map(|error| plain(&error.to_string()).into_owned());
    Error::Files {
        message: lines.collect::<Vec<_>>().join("\n"),
        hint: Some("nothing is imported while a file can't be read".to_owned()),
        code: ErrorCode::BadValue,
        source: None,
    }
}
