// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that tests write from the programs' tables: they are committed, and compared.
//!
//! `UPDATE=1` rewrites them, and nothing else does.

use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::lab::place;

/// Compares the file at `path`, from the repo's top, with what it should be, or rewrites it when `UPDATE` is set.
///
/// # Errors
///
/// The first line that differs, and how `target`, a test target of this package, mends it.
pub fn compare(path: &str, wanted: &str, target: &str) -> Result<()> {
    let file = place::repo().join(path);
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        return fs::write(&file, wanted).with_context(|| format!("can't write {path}"));
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    match first_difference(&found, wanted) {
        None => Ok(()),
        Some(what) => bail!(
            "{path} is not what the tables say: {what}\n\
             run 'UPDATE=1 cargo test -p ib-tests --test {target}' and commit the file"
        ),
    }
}

/// Names the first line in which two texts differ.
#[must_use]
pub fn first_difference(found: &str, wanted: &str) -> Option<String> {
    let (mut found, mut wanted) = (found.lines(), wanted.lines());
    let mut number = 1;
    loop {
        match (found.next(), wanted.next()) {
            (None, None) => return None,
            (found, wanted) if found == wanted => number += 1,
            (found, wanted) => {
                let show = |line: Option<&str>| line.unwrap_or("(no more lines)").to_owned();
                return Some(format!(
                    "line {number} is\n  {}\nand should be\n  {}",
                    show(found),
                    show(wanted)
                ));
            }
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_difference_is_found_and_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let changed = first_difference("a\nb\n", "a\nc\n").unwrap_or_default();
        assert!(
            changed.starts_with("line 2 is\n  b\nand should be\n  c"),
            "{changed}"
        );
        assert!(first_difference("a\n", "a\nb\n").is_some());
        assert!(first_difference("a\nb\n", "a\n").is_some());
    }
}
