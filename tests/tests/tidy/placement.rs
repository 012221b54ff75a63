// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where files lie and what they are called.

use std::collections::BTreeSet;

use crate::problem::Problem;
use crate::tree::Tree;

/// What a visitor sees at the top, and the files of tools, which are hidden.
const TOP: [&str; 17] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "api",
    "docs",
    "driver",
    "ibctl",
    "ibmgrd",
    "packaging",
    "tests",
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".editorconfig",
    ".gitattributes",
    ".gitignore",
    ".rustfmt.toml",
];

/// Entries of [`TOP`] that may be missing: they wait for content.
const OPTIONAL: [&str; 1] = [".gitattributes"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = [
    "common", "helper", "helpers", "misc", "shared", "stuff", "util", "utils",
];

/// Where a name of [`EMPTY_NAMES`] is the kernel's own word: C functions for what bindgen can't reach.
const KERNEL_WORDS: [&str; 2] = ["driver/kernel/helpers.c", "driver/kernel/helpers.h"];

/// Says what is wrong with the name of a module, file or folder.
pub(crate) fn bad_name(name: &str) -> Option<String> {
    let stem = name.split('.').next().unwrap_or_default();
    EMPTY_NAMES
        .contains(&stem.to_ascii_lowercase().as_str())
        .then(|| format!("is called {stem}, which says nothing: name it after what it does"))
}

/// Checks the top of the repo and all names.
pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut top = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for file in &tree.files {
        top.insert(file.path.split('/').next().unwrap_or_default());
        let mut end = 0;
        for part in file.path.split('/') {
            end += part.len() + 1;
            let path = &file.path[..end - 1];
            if folders.insert(path)
                && !KERNEL_WORDS.contains(&path)
                && let Some(what) = bad_name(part)
            {
                problems.push(Problem::new(path, what));
            }
        }
    }
    for entry in top.iter().filter(|entry| !TOP.contains(entry)) {
        let what = "does not belong at the top: the layout is fixed, see docs/ARCHITECTURE.md";
        problems.push(Problem::new(*entry, what));
    }
    for entry in TOP
        .iter()
        .filter(|entry| !OPTIONAL.contains(entry) && !top.contains(*entry))
    {
        problems.push(Problem::new(
            *entry,
            "is missing at the top: the layout is fixed",
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    fn of(more: &[&str], less: &[&str]) -> Vec<Problem> {
        let files = TOP.iter().filter(|entry| !less.contains(entry)).chain(more);
        check(&Tree::sample(
            &files.map(|path| (*path, "")).collect::<Vec<_>>(),
        ))
    }

    #[test]
    fn the_layout_is_held() {
        assert_eq!(of(&["api/src/lib.rs"], &[".gitattributes"]), []);
        assert_one(&of(&["scripts/a.sh"], &[]), "does not belong");
        assert_one(&of(&[], &["packaging"]), "is missing");
    }

    #[test]
    fn empty_names_are_refused() {
        assert_one(&of(&["api/src/utils.rs"], &[]), "utils");
        assert_one(
            &of(&["api/src/common/mod.rs", "api/src/common/a.rs"], &[]),
            "common",
        );
        assert_one(&of(&["tests/vhca/helpers.c"], &[]), "helpers");
        assert_eq!(bad_name("utilisation.rs"), None);
    }
}
