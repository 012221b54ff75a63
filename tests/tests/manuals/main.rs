// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manual pages and completions are written from the command lines that the programs have, from the
//! registry and from the documents, and equal to them.
//!
//! `UPDATE=1 cargo test -p ib-tests --test manuals` rewrites them.

mod completions;
mod page;
mod prose;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use clap::{Command, CommandFactory as _};
use ib_tests::committed;
use ib_tests::lab::place;

/// Where manual pages lie.
const MANUALS: &str = "packaging/man";

/// Where completions lie.
const COMPLETIONS: &str = "packaging/completions";

/// First line of the pages.
const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0 OR MIT";

/// Compares all files of a folder, and refuses others in it.
fn compare(folder: &str, wanted: &BTreeMap<String, String>) -> Result<()> {
    ensure!(!wanted.is_empty(), "nothing was written for {folder}");
    for (name, text) in wanted {
        committed::compare(&format!("{folder}/{name}"), text, "manuals")?;
    }
    for entry in fs::read_dir(place::repo().join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !wanted.contains_key(&name) {
            bail!("{folder}/{name} is written by nothing any more: remove it");
        }
    }
    Ok(())
}

fn document(path: &str) -> Result<String> {
    fs::read_to_string(place::repo().join(path)).with_context(|| format!("can't read {path}"))
}

fn manuals() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut ibctl = ibctl::Cli::command();
    ibctl.build();
    pages.insert("ibctl.1".to_owned(), page::of_program(&ibctl)?);
    for verb in ibctl.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages.insert(
            format!("ibctl-{}.1", verb.get_name()),
            page::of_verb(verb, &ibctl)?,
        );
    }
    let daemon: Command = ibmgrd::options::Options::command();
    pages.insert(
        "ibmgrd.8".to_owned(),
        page::of_daemon(&daemon, &document("docs/ibmgrd.md")?)?,
    );
    pages.insert(
        "ibmgr.conf.5".to_owned(),
        page::of_files(&document("docs/configuration.md")?)?,
    );
    Ok(pages)
}

#[test]
fn manual_pages_are_the_command_lines_and_the_documents() -> Result<()> {
    let pages = manuals()?;
    ensure!(pages.len() > 12, "only {} pages", pages.len());
    compare(MANUALS, &pages)
}

#[test]
fn completions_are_the_command_line() -> Result<()> {
    compare(COMPLETIONS, &completions::all(ibctl::Cli::command())?)
}
