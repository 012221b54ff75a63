// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of the repo, as they lie on disk.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ignore::WalkBuilder;

use crate::problem::Problem;

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the top of the repo, with `/` between its parts.
    pub(crate) path: String,
    /// Content; `None` when it is not UTF-8.
    pub(crate) text: Option<String>,
}

impl Source {
    /// Makes a sample.
    #[cfg(test)]
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: Some(text.to_owned()),
        }
    }

    /// Returns the last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns what follows the last dot of the name.
    pub(crate) fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, last)| last)
    }

    /// Returns the content of a text file.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns the text when this is a Rust file.
    pub(crate) fn rust(&self) -> Option<&str> {
        (self.extension() == "rs").then(|| self.text())
    }

    /// Returns its lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text()
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }
}

/// All files that `.gitignore` does not name.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<Source>,
}

impl Tree {
    /// Reads them all.
    ///
    /// # Errors
    ///
    /// When one can't be read, or there are suspiciously few.
    pub(crate) fn read() -> Result<Self> {
        let top = top();
        let mut files = Vec::new();
        let walk = WalkBuilder::new(&top)
            .hidden(false)
            .parents(false)
            .ignore(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk {
            let entry = entry?;
            if entry.file_type().is_none_or(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().strip_prefix(&top)?;
            let path = path.to_str().context("a file's name is not UTF-8")?;
            let bytes = fs::read(entry.path()).with_context(|| format!("can't read {path}"))?;
            files.push(Source {
                path: path.to_owned(),
                text: String::from_utf8(bytes).ok(),
            });
        }
        if files.len() < 20 {
            bail!(
                "only {} files found: the checks would prove nothing",
                files.len()
            );
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// Runs a checker over each file.
    pub(crate) fn each(&self, check: fn(&Source) -> Vec<Problem>) -> Vec<Problem> {
        self.files.iter().flat_map(check).collect()
    }

    /// Returns the file at `path`.
    pub(crate) fn find(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Says whether a file or folder is at `path`.
    pub(crate) fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.files
            .iter()
            .any(|file| file.path == path || file.path.starts_with(&below))
    }

    /// Makes a sample from paths and texts.
    #[cfg(test)]
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| Source::sample(path, text));
        Self {
            files: files.collect(),
        }
    }
}

/// Returns the top folder of the repo.
pub(crate) fn top() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

#[test]
fn the_tree_has_the_hidden_files_but_not_the_built_ones() {
    let tree = Tree::read().unwrap();
    assert!(tree.find(".cargo/config.toml").is_some());
    assert!(tree.has("api/src"));
    assert!(!tree.has("target"));
    assert!(!tree.has(".git"));
}
