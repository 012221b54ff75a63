// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Imports of files that look like those of real hosts, all of them written for these tests.
//!
//! `tests/samples/FORMAT/CASE/` holds files, `tests/golden/FORMAT-CASE.txt` what comes of them.
//! `UPDATE=1 cargo test -p ibmgrd-import` writes the golden files anew; read the difference.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod fuzz;
mod golden;
mod samples;
mod traps;

use ibmgr_api::{Desired, Rule};
use ibmgrd_import::{Format, Import, Note, Options, Source, import};

/// Imports one text.
#[track_caller]
pub(crate) fn one(format: Format, name: &str, text: &str) -> Import {
    many(format, &[(name, text)])
}

/// Imports several texts.
#[track_caller]
pub(crate) fn many(format: Format, files: &[(&str, &str)]) -> Import {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source::new(name, text.as_bytes().to_vec()).expect("UTF-8"))
        .collect();
    import(format, &sources, Options::default()).expect("the files can be read")
}

/// Returns the only rule.
#[track_caller]
pub(crate) fn only(import: &Import) -> &Rule {
    let [rule] = &import.desired.rules[..] else {
        panic!("{}\n{:#?}", shown(&import.desired), import.notes);
    };
    rule
}

/// Returns what a rule sets, as `knob = value`.
pub(crate) fn settings(rule: &Rule) -> Vec<String> {
    let show = |(key, declared): (&ibmgr_api::Key, &ibmgr_api::Declared)| {
        format!("{key} = {}", declared.value.show(&key.knob().domain))
    };
    rule.settings.iter().map(show).collect()
}

/// Returns the note on a key.
#[track_caller]
pub(crate) fn note<'a>(import: &'a Import, key: &str) -> &'a Note {
    let mut notes = import.notes.iter();
    notes
        .find(|note| note.key == key)
        .unwrap_or_else(|| panic!("no note on {key}: {:#?}", import.notes))
}

/// Writes rules for people.
pub(crate) fn shown(desired: &Desired) -> String {
    let mut lines = Vec::new();
    for rule in &desired.rules {
        let matches = &rule.matches;
        let mut conditions = Vec::new();
        let globs = [
            ("name", &matches.name),
            ("driver", &matches.driver),
            ("path", &matches.path),
            ("parent", &matches.parent),
            ("kind", &matches.kind),
        ];
        for (word, globs) in globs {
            conditions.extend(globs.iter().map(|glob| format!("{word} {glob}")));
        }
        conditions.extend(matches.guid.iter().map(|guid| format!("guid {guid}")));
        lines.push(format!("rule {} ({})", conditions.join(", "), rule.origin));
        lines.extend(settings(rule).iter().map(|line| format!("  {line}")));
        for child in &rule.children {
            let name = child.name.as_ref().map_or("-", |name| name.as_str());
            lines.push(format!("  child {} {name} ({})", child.pkey, child.origin));
            for (key, declared) in &child.settings {
                let value = declared.value.show(&key.knob().domain);
                lines.push(format!("    {key} = {value}"));
            }
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
