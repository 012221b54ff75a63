// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What became of each setting of a file.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A line of a file.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.file, self.line))
    }
}

/// What became of a setting.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It means the same in the rules.
    Carried,
    /// It stands in the rules, and means something else there than in the file.
    Changed,
    /// It does not stand in the rules.
    NotCarried,
    /// It is no business of ours: the tool that the file is for keeps it.
    LeftToOwner,
}

impl Outcome {
    /// Every outcome, in the order of reports.
    pub const ALL: [Self; 4] = [
        Self::Carried,
        Self::Changed,
        Self::NotCarried,
        Self::LeftToOwner,
    ];

    /// Returns the word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carried => "carried",
            Self::Changed => "changed",
            Self::NotCarried => "not-carried",
            Self::LeftToOwner => "left-to-owner",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Note {
    /// Where the setting stands.
    #[serde(flatten)]
    pub place: Place,
    /// The key, as the file's format names it; of what is left to its owner, all the keys of the file.
    pub key: String,
    /// The value as written. Left out where it could be a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// What stands in the rules for it, such as `mode = connected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Why it was changed or not carried, or what to know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a tool keeps for itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kept {
    /// Addresses, routes and name service.
    Addresses,
    /// Names, identity and activation of the profile.
    Profile,
    /// What is for no interface at all.
    Rest,
}

impl Kept {
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Addresses => {
                "addresses, routes and name service stay with the tool that sets them"
            }
            Self::Profile => "how the profile is called and when it is active stays with its tool",
            Self::Rest => "it is no setting of an interface, and stays with its tool",
        }
    }
}

/// The report while it is written.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Vec<Note>,
    /// Places and keys that have a note.
    told: HashSet<(Place, String)>,
    /// What a file's tool keeps: the note, and the keys in it.
    kept: HashMap<(Arc<str>, Kept), (usize, HashSet<String>)>,
}

/// Names a note that may still change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoteId(usize);

/// A moment in the writing of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize);

/// A key with its value, where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) place: &'a Place,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

impl Notes {
    pub(crate) fn add(
        &mut self,
        entry: Entry<'_>,
        outcome: Outcome,
        into: Option<String>,
        why: Option<String>,
    ) -> NoteId {
        self.told
            .insert((entry.place.clone(), entry.key.to_owned()));
        self.notes.push(Note {
            place: entry.place.clone(),
            key: entry.key.to_owned(),
            value: (!entry.value.is_empty()).then(|| entry.value.to_owned()),
            outcome,
            into,
            why,
        });
        NoteId(self.notes.len() - 1)
    }

    /// Notes that something does not stand in the rules.
    pub(crate) fn lose(&mut self, entry: Entry<'_>, why: impl Into<String>) {
        self.add(entry, Outcome::NotCarried, None, Some(why.into()));
    }

    /// Notes what a key was for that tells of the interface itself, unless a note says so already.
    pub(crate) fn tell(&mut self, entry: Entry<'_>, what: &str, is_carried: bool) {
        let told = (entry.place.clone(), entry.key.to_owned());
        if self.told.contains(&told) {
            return;
        }
        if is_carried {
            self.add(entry, Outcome::Carried, None, Some(what.to_owned()));
        } else {
            self.lose(
                entry,
                "nothing came of it: see what is said of the keys beside it",
            );
        }
    }

    /// Notes what the tool keeps, once a file.
    pub(crate) fn keep(&mut self, place: &Place, key: &str, kept: Kept) {
        let of_file = (Arc::clone(&place.file), kept);
        if let Some((at, keys)) = self.kept.get_mut(&of_file) {
            if let Some(note) = self.notes.get_mut(*at)
                && keys.insert(key.to_owned())
            {
                note.key.push_str(", ");
                note.key.push_str(key);
            }
            return;
        }
        let keys = HashSet::from([key.to_owned()]);
        self.kept.insert(of_file, (self.notes.len(), keys));
        self.notes.push(Note {
            place: place.clone(),
            key: key.to_owned(),
            value: None,
            outcome: Outcome::LeftToOwner,
            into: None,
            why: Some(kept.why().to_owned()),
        });
    }

    /// Takes a setting that was noted as carried back.
    pub(crate) fn take_back(&mut self, id: NoteId, why: String) {
        if let Some(note) = self.notes.get_mut(id.0) {
            note.outcome = Outcome::NotCarried;
            note.into = None;
            note.why = Some(why);
        }
    }

    /// Returns how many notes there are.
    pub(crate) const fn mark(&self) -> Mark {
        Mark(self.notes.len())
    }

    /// Takes all back that was noted as carried since `mark`, and says what could not be.
    pub(crate) fn lose_since(&mut self, mark: Mark, entry: Entry<'_>, why: &str) {
        for note in self.notes.iter_mut().skip(mark.0) {
            if matches!(note.outcome, Outcome::Carried | Outcome::Changed) {
                note.outcome = Outcome::NotCarried;
                note.into = None;
                note.why = Some(format!("'{}' can't be carried", entry.key));
            }
        }
        let is_it = |note: &&mut Note| {
            note.key == entry.key && note.place == *entry.place && !entry.value.is_empty()
        };
        match self.notes.iter_mut().skip(mark.0).find(is_it) {
            Some(note) => note.why = Some(why.to_owned()),
            None => self.lose(entry, why),
        }
    }

    /// Adds something to know about a setting.
    pub(crate) fn remark(&mut self, id: NoteId, outcome: Outcome, why: &str) {
        if let Some(note) = self.notes.get_mut(id.0) {
            note.outcome = note.outcome.max(outcome);
            let why = match note.why.take() {
                Some(before) => format!("{before}; {why}"),
                None => why.to_owned(),
            };
            note.why = Some(why);
        }
    }

    /// Returns all notes, file by file in the order of the files, line by line.
    pub(crate) fn into_sorted(mut self, files: &[Arc<str>]) -> Vec<Note> {
        let order: HashMap<&str, usize> = files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.as_ref(), at))
            .collect();
        self.notes.sort_by_cached_key(|note| {
            let file = order.get(note.place.file.as_ref()).copied();
            (file, note.place.line)
        });
        self.notes
    }
}
