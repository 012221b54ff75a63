// SPDX-License-Identifier: Apache-2.0 OR MIT
//! systemd's `.netdev`, `.network` and `.link` files with their drop-ins.
//!
//! A child is told in two files: its `.netdev` has the P_Key, and a `.network` of the parent names it.

mod rows;

use std::collections::HashMap;

use ibmgr_api::{Glob, LinkName, Match, Pkey};

use super::keyfile::id_path;
use super::{Intake, Kin, Source};
use crate::found::{Found, Taken, note_match};
use crate::note::{Entry, Kept, Notes, Place};
use crate::rows::{Row, To, find};
use crate::spelling::{self, Address};
use crate::syntax::ini::{self, Dialect};

pub(super) use rows::TABLES;

/// What a file is, by its ending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sort {
    Netdev,
    Network,
    Link,
}

impl Sort {
    const ALL: [(&'static str, Self); 3] = [
        (".netdev", Self::Netdev),
        (".network", Self::Network),
        (".link", Self::Link),
    ];

    fn of(name: &str) -> Option<Self> {
        let ending = Self::ALL.iter().find(|(ending, _)| name.ends_with(ending));
        ending.map(|(_, sort)| *sort)
    }

    const fn rows(self) -> &'static [Row] {
        match self {
            Self::Netdev => rows::NETDEV,
            Self::Network => rows::NETWORK,
            Self::Link => rows::LINK,
        }
    }
}

/// Most different conditions of one file; systemd knows about twenty.
const CONDITIONS_MAX: usize = 64;

/// A file with its drop-ins.
struct Unit {
    sort: Sort,
    name: String,
    place: Place,
    settings: Vec<Setting>,
}

struct Setting {
    place: Place,
    key: String,
    value: String,
}

impl Setting {
    fn entry(&self) -> Entry<'_> {
        Entry {
            place: &self.place,
            key: &self.key,
            value: &self.value,
        }
    }
}

impl Unit {
    /// Returns the setting that counts: the last, unless it is empty.
    fn get(&self, key: &str) -> Option<&Setting> {
        let last = self.settings.iter().rfind(|setting| setting.key == key);
        last.filter(|setting| !setting.value.is_empty())
    }

    /// Returns the words of a list that may stand in several lines; an empty line starts it anew.
    fn words(&self, key: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for setting in self.settings.iter().filter(|setting| setting.key == key) {
            if setting.value.is_empty() {
                words.clear();
            }
            words.extend(setting.value.split_whitespace());
        }
        words
    }
}

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    let mut units = units(sources, intake);
    // systemd goes by the names of the files, whatever their folders.
    units.sort_by(|a, b| a.name.cmp(&b.name));
    let mut seen: Vec<(Sort, Match, String)> = Vec::new();
    for unit in &units {
        match unit.sort {
            Sort::Netdev => netdev(unit, &units, intake),
            Sort::Network | Sort::Link => of_match(unit, &mut seen, intake),
        }
    }
}

/// Puts files and drop-ins together.
fn units(sources: &[Source], intake: &mut Intake) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for source in sources {
        let Some(sort) = Sort::of(source.file_name()) else {
            continue;
        };
        let unit = Unit {
            sort,
            name: source.file_name().to_owned(),
            place: source.place(1),
            settings: settings(source, &mut intake.notes),
        };
        if let Some(same) = units.iter_mut().find(|known| known.name == unit.name) {
            let entry = Entry {
                place: &same.place,
                key: "file",
                value: &same.name,
            };
            let why = format!("{} has the same name, and replaces it", unit.place.file);
            intake.notes.lose(entry, why);
            *same = unit;
        } else {
            units.push(unit);
        }
    }
    let mut drop_ins: Vec<&Source> = sources
        .iter()
        .filter(|source| Sort::of(source.file_name()).is_none())
        .collect();
    drop_ins.sort_by_key(|source| source.file_name());
    for source in drop_ins {
        let base = source.folder_name().strip_suffix(".d");
        let unit = units
            .iter_mut()
            .find(|unit| base == Some(unit.name.as_str()));
        if let Some(unit) = unit {
            unit.settings.extend(settings(source, &mut intake.notes));
            continue;
        }
        let place = source.place(1);
        let entry = Entry {
            place: &place,
            key: "file",
            value: source.file_name(),
        };
        let why = "it is no .netdev, .network or .link, nor a drop-in of one of these files";
        intake.notes.lose(entry, why);
    }
    units
}

fn settings(source: &Source, notes: &mut Notes) -> Vec<Setting> {
    let mut settings = Vec::new();
    for item in ini::parse(&source.text, Dialect::Systemd) {
        let place = source.place(item.line);
        if item.key.is_empty() {
            let entry = Entry {
                place: &place,
                key: &item.value,
                value: "",
            };
            notes.lose(entry, "the line is no key with a value");
            continue;
        }
        settings.push(Setting {
            place,
            key: format!("[{}] {}", item.section, item.key),
            value: item.value,
        });
    }
    settings
}

/// Reads a `.netdev`: a child, if its kind is ipoib.
fn netdev(unit: &Unit, units: &[Unit], intake: &mut Intake) {
    let kin = match unit.get("[NetDev] Kind") {
        Some(kind) if kind.value == "ipoib" => Kin::InfiniBand,
        Some(kind) => Kin::Other(format!("kind {}", kind.value)),
        None => Kin::Untold,
    };
    let name = unit.get("[NetDev] Name");
    let shown = name.map(|name| name.value.as_str());
    if !intake.is_wanted(&kin, shown, &unit.place) {
        return;
    }
    let notes = &mut intake.notes;
    let mark = notes.mark();
    let mut found = Found::at(&unit.place);
    let own: Option<LinkName> = match name {
        Some(name) => found.name(name.entry(), notes),
        None => None,
    };
    if let (Kin::InfiniBand, Some(own)) = (&kin, &own) {
        child(&mut found, unit, units, own, notes);
    }
    settle(&mut found, unit, notes);
    if matches!(kin, Kin::InfiniBand) && found.child.is_none() || found.matches.is_empty() {
        let entry = Entry {
            place: &unit.place,
            key: "[NetDev]",
            value: "",
        };
        let why = "the interface is not carried without its parent";
        return notes.lose_since(mark, entry, why);
    }
    intake.found.push(found);
}

fn child(found: &mut Found, unit: &Unit, units: &[Unit], own: &LinkName, notes: &mut Notes) {
    let Some(key) = unit.get("[IPoIB] PartitionKey") else {
        let entry = Entry {
            place: &unit.place,
            key: "[IPoIB] PartitionKey",
            value: "",
        };
        let why = "it is absent, and the kernel takes the parent's P_Key then: no rule does";
        return notes.lose(entry, why);
    };
    let names_it = |parent: &&Unit| {
        parent.sort == Sort::Network && parent.words("[Network] IPoIB").contains(&own.as_str())
    };
    let read = || -> Result<(LinkName, Pkey), String> {
        let pkey = spelling::pkey(&key.value, 10)?;
        let parent = units
            .iter()
            .find(names_it)
            .ok_or("no .network of these files names it with IPoIB=, so its parent is not known")?;
        let names = parent.words("[Match] Name");
        let [name] = names[..] else {
            return Err(format!(
                "{} does not tell its parent by one name",
                parent.name
            ));
        };
        let name = name.parse().map_err(|error| format!("{error}"))?;
        Ok((name, pkey))
    };
    match read() {
        Ok((parent, pkey)) => found.below(parent, pkey, own.clone(), key.entry(), notes),
        Err(why) => notes.lose(key.entry(), why),
    }
}

/// Reads a `.network` or `.link`: what its `[Match]` is for.
fn of_match(unit: &Unit, seen: &mut Vec<(Sort, Match, String)>, intake: &mut Intake) {
    let names: Vec<&str> = ["[Match] Name", "[Match] OriginalName"]
        .iter()
        .flat_map(|key| unit.words(key))
        .collect();
    if !intake.is_wanted(&kin(unit), names.first().copied(), &unit.place) {
        return;
    }
    let notes = &mut intake.notes;
    let mark = notes.mark();
    let mut found = Found::at(&unit.place);
    let is_whole = conditions(&mut found, unit, notes);
    settle(&mut found, unit, notes);
    let entry = Entry {
        place: &unit.place,
        key: "[Match]",
        value: "",
    };
    if !is_whole || found.matches.is_empty() {
        let why = "the file is not carried without all its conditions: it would be for too much";
        return notes.lose_since(mark, entry, why);
    }
    let before = seen
        .iter()
        .find(|(sort, matches, _)| *sort == unit.sort && *matches == found.matches);
    if let Some((.., first)) = before {
        let why = format!("{first} matches the same, and systemd takes the first only");
        return notes.lose_since(mark, entry, &why);
    }
    seen.push((unit.sort, found.matches.clone(), unit.name.clone()));
    intake.found.push(found);
}

fn kin(unit: &Unit) -> Kin {
    let types = unit.words("[Match] Type");
    let drivers = unit.words("[Match] Driver");
    let addresses = ["[Match] MACAddress", "[Match] PermanentMACAddress"];
    let mut addresses = addresses.iter().flat_map(|key| unit.words(key));
    let is_ours = |driver: &&str| matches!(*driver, "ib_ipoib" | "ipoib_batch");
    if types == ["infiniband"]
        || drivers.iter().any(is_ours)
        || unit
            .settings
            .iter()
            .any(|setting| setting.key.starts_with("[IPoIB]") || setting.key == "[Network] IPoIB")
        || addresses.any(|text| matches!(spelling::address(text), Ok(Address::Port(_))))
    {
        return Kin::InfiniBand;
    }
    match types.first() {
        Some(other) => Kin::Other(format!("type {other}")),
        None => Kin::Untold,
    }
}

/// Reads `[Match]`; says whether all of it could be carried.
fn conditions(found: &mut Found, unit: &Unit, notes: &mut Notes) -> bool {
    let mut is_whole = true;
    let mut keys: Vec<&str> = Vec::new();
    for setting in &unit.settings {
        let is_condition = setting.key.starts_with("[Match] ");
        if is_condition && !keys.contains(&setting.key.as_str()) {
            if keys.len() == CONDITIONS_MAX {
                notes.lose(setting.entry(), "there are more conditions than are read");
                is_whole = false;
                break;
            }
            keys.push(&setting.key);
        }
    }
    let renamed = unit.get("[Link] Name").filter(|_| unit.sort == Sort::Link);
    for key in keys {
        let words = unit.words(key);
        let Some(setting) = unit.settings.iter().rfind(|setting| setting.key == key) else {
            continue;
        };
        let joined = words.join(" ");
        let entry = Entry {
            value: &joined,
            ..setting.entry()
        };
        if words.is_empty() {
            notes.keep(&setting.place, key, Kept::Profile);
            continue;
        }
        is_whole &= match key {
            "[Match] OriginalName" if renamed.is_some() => {
                let why = "udev renames it: the rule goes by the name that it gets";
                notes.add(
                    entry,
                    crate::note::Outcome::Changed,
                    None,
                    Some(why.to_owned()),
                );
                true
            }
            _ => condition(found, entry, &words, notes),
        };
    }
    if let Some(name) = renamed {
        found
            .matches
            .guid
            .is_empty()
            .then(|| found.name(name.entry(), notes));
    }
    is_whole
}

fn condition(found: &mut Found, entry: Entry<'_>, words: &[&str], notes: &mut Notes) -> bool {
    let globs = || -> Option<Vec<Glob>> { words.iter().map(|word| word.parse().ok()).collect() };
    let globs = globs().filter(|_| !words.iter().any(|word| word.starts_with('!')));
    let shown = words.join(", ");
    let carried = match entry.key {
        "[Match] Name" | "[Match] OriginalName" => globs.map(|globs| {
            found.matches.name = globs;
            let why = "the name before udev's renaming; the rule goes by the present one";
            let why = (entry.key == "[Match] OriginalName").then_some(why);
            (format!("name = {shown}"), why)
        }),
        "[Match] Driver" => globs.map(|globs| {
            found.matches.driver = globs;
            (format!("driver = {shown}"), None)
        }),
        "[Match] Kind" => globs.map(|globs| {
            found.matches.kind = globs;
            (format!("kind = {shown}"), None)
        }),
        "[Match] Type" if words == ["infiniband"] => {
            found.matches.kind = vec![Glob::literal("ipoib")];
            Some(("kind = ipoib".to_owned(), None))
        }
        "[Match] Path" => {
            let paths: Option<Vec<Glob>> = words.iter().map(|word| id_path(word)).collect();
            paths.map(|paths| {
                let shown = paths
                    .iter()
                    .map(Glob::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                found.matches.path = paths;
                let why = "udev's path became that of the device below /sys";
                (format!("path = {shown}"), Some(why))
            })
        }
        "[Match] MACAddress" | "[Match] PermanentMACAddress" => {
            let guid = |word: &&str| match spelling::address(word) {
                Ok(Address::Port(guid) | Address::Guid(guid)) => Some(guid),
                Ok(Address::Other(_)) | Err(_) => None,
            };
            words
                .iter()
                .map(guid)
                .collect::<Option<Vec<_>>>()
                .map(|guids| {
                    let shown = guids.iter().map(ToString::to_string).collect::<Vec<_>>();
                    found.matches.guid = guids;
                    let why = "the last 8 bytes alone: the first 12 hold the QPN, which changes";
                    (format!("guid = {}", shown.join(", ")), Some(why))
                })
        }
        _ => None,
    };
    match carried {
        Some((into, why)) => {
            note_match(entry, into, why, notes);
            true
        }
        None => {
            notes.lose(entry, "rules have no such condition");
            false
        }
    }
}

/// Takes what stands outside of `[Match]`.
fn settle(found: &mut Found, unit: &Unit, notes: &mut Notes) {
    let lasts: HashMap<&str, usize> = unit
        .settings
        .iter()
        .enumerate()
        .map(|(at, setting)| (setting.key.as_str(), at))
        .collect();
    for (at, setting) in unit.settings.iter().enumerate() {
        let entry = setting.entry();
        if unit.sort != Sort::Netdev && setting.key.starts_with("[Match] ") {
            continue;
        }
        let last = lasts.get(setting.key.as_str()).copied();
        let later = last
            .filter(|last| *last != at)
            .and_then(|last| unit.settings.get(last));
        let row = find(unit.sort.rows(), entry.key).map(|(row, _)| row.to);
        let is_single = matches!(row, Some(To::Knob(..)));
        match later {
            Some(later) if is_single => {
                notes.lose(entry, format!("{} sets it again", later.place));
            }
            _ if is_single && setting.value.is_empty() => {
                notes.lose(entry, "empty stands for the default");
            }
            _ => {
                if entry.key == "[Link] Name" && !found.matches.guid.is_empty() {
                    notes.keep(entry.place, entry.key, Kept::Profile);
                } else if let Taken::Which(what) = found.take(unit.sort.rows(), entry, notes) {
                    let is_for_child = entry.key == "[IPoIB] PartitionKey";
                    notes.tell(entry, what, !is_for_child || found.child.is_some());
                }
            }
        }
    }
}
