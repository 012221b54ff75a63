// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `check`: what is wrong with configuration files. Nothing else is looked at, and no kernel asked.

use std::io::Write;
use std::path::PathBuf;

use ibmgrd_config::{Diagnostic, FileState, Loaded, State, load_paths};
use serde::Serialize;

use crate::cli::Format;
use crate::error::Error;
use crate::text::plain;
use crate::write_json;

#[derive(Serialize)]
struct Form<'a> {
    ok: bool,
    files: &'a [FileState],
    rules: usize,
    findings: &'a [Diagnostic],
}

/// Prints what is wrong with files, folders, or without any with the files of this host.
///
/// # Errors
///
/// A file cannot be used.
pub(crate) fn check(paths: &[PathBuf], format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let loaded = load_paths(paths);
    let is_broken = loaded.has_errors();
    match format {
        Format::Json => {
            let form = Form {
                ok: !is_broken,
                files: &loaded.files,
                rules: loaded.desired.rules.len(),
                findings: &loaded.diagnostics,
            };
            write_json(out, &form)?;
        }
        Format::Table => print(&loaded, out)?,
    }
    if is_broken {
        return Err(Error::Config(summary(&loaded)));
    }
    Ok(())
}

fn print(loaded: &Loaded, out: &mut dyn Write) -> Result<(), Error> {
    for found in &loaded.diagnostics {
        print_finding(found, out)?;
        writeln!(out)?;
    }
    if !loaded.has_errors() {
        let (files, rules) = (loaded.files.len(), loaded.desired.rules.len());
        writeln!(
            out,
            "{} and {}",
            counted(files, "file"),
            counted(rules, "rule")
        )?;
    }
    Ok(())
}

/// Prints a finding, safe for a terminal.
pub(crate) fn print_finding(found: &Diagnostic, out: &mut dyn Write) -> Result<(), Error> {
    for line in found.to_string().lines() {
        writeln!(out, "{}", plain(line))?;
    }
    Ok(())
}

/// Says how many files cannot be used.
pub(crate) fn summary(loaded: &Loaded) -> String {
    let is_unused = |file: &&FileState| file.state != State::Used;
    let unused: Vec<_> = loaded.files.iter().filter(is_unused).collect();
    match unused[..] {
        [] => "a folder can't be read".to_owned(),
        [one] => format!("{} can't be used", one.file),
        [first, ref rest @ ..] => {
            format!(
                "{} and {} more can't be used",
                first.file,
                counted(rest.len(), "file")
            )
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
