// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes of each sample, and that nothing of it is lost in silence.

use std::fmt::Write as _;
use std::path::Path;

use ibmgrd_import::{Format, Import, Options, Outcome, import};

use crate::samples::{self, Sample};
use crate::shown;

fn imported(sample: &Sample) -> Import {
    import(sample.format, &sample.sources, Options::default()).expect(&sample.name)
}

fn transcript(import: &Import) -> String {
    let mut text = shown(&import.desired);
    for note in &import.notes {
        let value = note
            .value
            .as_deref()
            .map_or_else(String::new, |value| format!("={value}"));
        let _ = write!(
            text,
            "\n{}: {}{}: {}",
            note.place,
            note.key,
            value.escape_debug(),
            note.outcome.name()
        );
        for (mark, part) in [(" -> ", &note.into), ("; ", &note.why)] {
            if let Some(part) = part {
                let _ = write!(text, "{mark}{part}");
            }
        }
    }
    text.push('\n');
    text
}

#[test]
fn every_sample_becomes_what_its_golden_file_says() {
    let mut differences = Vec::new();
    for sample in samples::all() {
        let transcript = transcript(&imported(&sample));
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(format!("{}.txt", sample.name));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &transcript).expect("the golden file can be written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if transcript != expected {
            let mut pairs = transcript.lines().zip(expected.lines());
            let first = pairs.find(|(ours, theirs)| ours != theirs);
            differences.push(format!("{}: {first:?}", path.display()));
        }
    }
    assert!(
        differences.is_empty(),
        "UPDATE=1 rewrites: {differences:#?}"
    );
}

#[test]
fn every_format_has_three_samples() {
    let samples = samples::all();
    for format in Format::ALL {
        let count = samples
            .iter()
            .filter(|sample| sample.format == format)
            .count();
        assert!(count >= 3, "{format}: {count}");
    }
}

#[test]
fn every_setting_of_a_file_is_told_of() {
    for sample in samples::all() {
        let import = imported(&sample);
        if matches!(
            sample.format,
            Format::Nmstate | Format::Netplan | Format::Wicked
        ) {
            continue;
        }
        for source in &sample.sources {
            let notes = import
                .notes
                .iter()
                .filter(|note| note.place.file == source.name);
            let notes: Vec<_> = notes.collect();
            // A file that is for another kind of interface is told of as a whole.
            if let [only] = notes[..]
                && only.outcome == Outcome::NotCarried
            {
                continue;
            }
            for (at, line) in source.text.lines().enumerate() {
                let key = line.split('=').next().unwrap_or_default().trim();
                if key.starts_with(['#', '[', '<']) || !line.contains('=') {
                    continue;
                }
                let is_told = notes.iter().any(|note| {
                    usize::try_from(note.place.line) == Ok(at + 1)
                        || note.outcome == Outcome::LeftToOwner && note.key.contains(key)
                });
                assert!(
                    is_told,
                    "{} {}:{}: {line}",
                    sample.name,
                    source.name,
                    at + 1
                );
            }
        }
    }
}

#[test]
fn what_is_carried_says_where_it_went_and_the_rest_why() {
    for sample in samples::all() {
        for note in imported(&sample).notes {
            match note.outcome {
                Outcome::Carried => assert!(note.into.is_some() || note.why.is_some(), "{note:?}"),
                Outcome::Changed => assert!(note.into.is_some() || note.why.is_some(), "{note:?}"),
                Outcome::NotCarried | Outcome::LeftToOwner => {
                    assert!(note.into.is_none() && note.why.is_some(), "{note:?}");
                }
            }
        }
    }
}

#[test]
fn addresses_are_told_of_once_a_file() {
    for sample in samples::all() {
        let import = imported(&sample);
        for source in &sample.sources {
            let kept = import.notes.iter().filter(|note| {
                note.place.file == source.name
                    && note.outcome == Outcome::LeftToOwner
                    && note
                        .why
                        .as_deref()
                        .is_some_and(|why| why.contains("addresses"))
            });
            assert!(kept.count() <= 1, "{} {}", sample.name, source.name);
        }
    }
}
