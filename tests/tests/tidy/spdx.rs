// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Licences: one SPDX line in each file, and the same licence in the package's manifest.

use crate::problem::Problem;
use crate::tree::Source;

const TAG: &str = concat!("SPDX-License-", "Identifier: ");

/// Licence per folder; the longest prefix that fits decides.
const LICENCES: [(&str, &str); 4] = [
    ("", "Apache-2.0 OR MIT"),
    ("driver/", "GPL-2.0-only"),
    ("driver/core/", "GPL-2.0-only OR MIT"),
    ("tests/vhca/", "GPL-2.0-only"),
];

/// Prose, data and what tools write: the repo's licence holds without a line of their own.
const WITHOUT_LINE: [&str; 7] = ["md", "json", "lock", "hex", "txt", "svg", "csv"];

/// Returns the licence of the folder that `path` lies in.
pub(crate) fn licence_of(path: &str) -> &'static str {
    let fits = LICENCES
        .iter()
        .filter(|(folder, _)| path.starts_with(folder));
    let longest = fits.max_by_key(|(folder, _)| folder.len());
    longest.map_or("", |(_, licence)| licence)
}

/// Wants the folder's licence in the first line, or in the second after `#!`, or after the words that
/// zsh wants first in a file of completions.
pub(crate) fn check(file: &Source) -> Vec<Problem> {
    if WITHOUT_LINE.contains(&file.extension()) || file.path.starts_with("docs/LICENSES/") {
        return Vec::new();
    }
    let Some(text) = &file.text else {
        let what = "is not text: keep what it holds as hex or build it in a test";
        return vec![Problem::new(&file.path, what)];
    };
    let wanted = licence_of(&file.path);
    let after_interpreter = usize::from(
        text.starts_with("#!") && !text.starts_with("#![") || text.starts_with("#compdef "),
    );
    let line = text.lines().nth(after_interpreter).unwrap_or_default();
    let found = line.split_once(TAG).map(|(_, licence)| {
        let licence = licence.trim_end();
        licence
            .trim_end_matches("*/")
            .trim_end_matches("-->")
            .trim_end()
    });
    let what = match found {
        Some(licence) if licence == wanted => return Vec::new(),
        Some(licence) => format!("has '{licence}', but its folder is '{wanted}'"),
        None => format!("needs '{TAG}{wanted}' in a comment on its first line"),
    };
    vec![Problem::line(&file.path, after_interpreter + 1, what)]
}

/// Wants the folder's licence in `package.license`.
pub(crate) fn check_manifest(file: &Source) -> Vec<Problem> {
    if file.name() != "Cargo.toml" {
        return Vec::new();
    }
    let manifest: toml::Table = match toml::from_str(file.text()) {
        Ok(manifest) => manifest,
        Err(error) => return vec![Problem::new(&file.path, error.to_string())],
    };
    let Some(package) = manifest.get("package") else {
        return Vec::new();
    };
    let wanted = licence_of(&file.path);
    if package.get("license").and_then(toml::Value::as_str) == Some(wanted) {
        return Vec::new();
    }
    let what = format!("needs 'license = \"{wanted}\"' in [package]");
    vec![Problem::new(&file.path, what)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    fn line(licence: &str) -> String {
        format!("{TAG}{licence}")
    }

    #[test]
    fn good_lines_pass() {
        for (path, text) in [
            (
                "api/src/a.rs",
                format!("// {}\n//! A.", line("Apache-2.0 OR MIT")),
            ),
            (
                ".ci/run",
                format!("#!/bin/sh\n# {}\n", line("Apache-2.0 OR MIT")),
            ),
            (
                "tests/vhca/a.h",
                format!("/* {} */\n", line("GPL-2.0-only")),
            ),
            (
                "driver/core/src/a.rs",
                format!("// {}\n", line("GPL-2.0-only OR MIT")),
            ),
            ("driver/Kbuild", format!("# {}\n", line("GPL-2.0-only"))),
            ("README.md", String::new()),
        ] {
            assert_eq!(check(&Source::sample(path, &text)), [], "{path}");
        }
    }

    #[test]
    fn missing_late_and_wrong_lines_are_refused() {
        assert_one(&check(&Source::sample("a.rs", "//! A.")), "needs");
        let late = format!("//! A.\n// {}", line("Apache-2.0 OR MIT"));
        assert_one(&check(&Source::sample("a.rs", &late)), "needs");
        let wrong = format!("// {}", line("MIT"));
        assert_one(&check(&Source::sample("api/a.rs", &wrong)), "has 'MIT'");
        let wrong = format!("// {}", line("Apache-2.0 OR MIT"));
        assert_one(
            &check(&Source::sample("tests/vhca/a.c", &wrong)),
            "GPL-2.0-only",
        );
        assert_one(
            &check(&Source::sample("packaging/unknown.kind", "x")),
            "needs",
        );
        let binary = Source {
            path: "a.bin".to_owned(),
            text: None,
        };
        assert_one(&check(&binary), "not text");
    }

    #[test]
    fn manifests_are_held_to_the_folder() {
        let sample = |licence: &str| {
            let text = format!("[package]\nlicense = \"{licence}\"\n");
            check_manifest(&Source::sample("driver/core/Cargo.toml", &text))
        };
        assert_eq!(sample("GPL-2.0-only OR MIT"), []);
        assert_one(&sample("MIT"), "license");
        let none = Source::sample("api/Cargo.toml", "[package]\nname = \"a\"\n");
        assert_one(&check_manifest(&none), "license");
    }
}
