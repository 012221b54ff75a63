// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TuneD's profiles: the instances of its plugin `net`.

use std::collections::HashMap;

use ibmgr_api::Glob;

use super::{Intake, Source};
use crate::found::{Found, Taken, is_ipoib_name, note_match};
use crate::note::{Entry, Kept, Outcome, Place};
use crate::rows::{Group, Row, Table, To, row};
use crate::spelling::{self, Form};
use crate::syntax::ini::{self, Dialect, Item};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Options of `[net]`, or of a section with `type=net`",
    rows: ROWS,
}];

const ROWS: &[Row] = &[
    row("devices", To::Which("`match.name`"))
        .note("without it TuneD sets all network devices; carried to IPoIB interfaces only"),
    row("devices_udev_regex", To::Which("nothing"))
        .note("it takes udev to know: the section is not carried"),
    row(
        "type",
        To::Which("tells that the section is for network devices"),
    ),
    row("enabled", To::Which("a section with 0 is not carried")),
    row("features", To::EthtoolPairs(Group::Feature)),
    row("coalesce", To::EthtoolPairs(Group::Coalesce)),
    row("ring", To::EthtoolPairs(Group::Ring)),
    row("channels", To::EthtoolPairs(Group::Channels)),
    row("pause", To::EthtoolPairs(Group::Pause)),
    row("txqueuelen", To::Knob("txqueuelen", Form::Number)),
    row("mtu", To::Knob("mtu", Form::Mtu)),
    row(
        "dynamic",
        To::Nothing("nothing changes an interface by its load"),
    ),
    row("wake_on_lan", To::Nothing("InfiniBand has no wake-on-LAN")),
    row(
        "nf_conntrack_hashsize",
        To::Nothing("connection tracking is the host's"),
    ),
    row("priority", To::Kept(Kept::Profile)),
    row("replace", To::Kept(Kept::Profile)),
    row("drop", To::Kept(Kept::Profile)),
    row("script_pre", To::Nothing("nothing is run")),
    row("script_post", To::Nothing("nothing is run")),
];

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        one(source, intake);
    }
}

fn one(source: &Source, intake: &mut Intake) {
    let items = ini::parse(&source.text, Dialect::Tuned);
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut sections: Vec<(&str, Vec<&Item>)> = Vec::new();
    for item in &items {
        let at = *places.entry(&item.section).or_insert(sections.len());
        match sections.get_mut(at) {
            Some((_, of_section)) => of_section.push(item),
            None => sections.push((&item.section, vec![item])),
        }
    }
    for (section, of_section) in sections {
        let kind = of_section.iter().find(|item| item.key == "type");
        if kind.map_or(section, |kind| kind.value.as_str()) == "net" {
            instance(source, &of_section, intake);
            continue;
        }
        for item in of_section {
            let place = source.place(item.line);
            let key = format!("[{section}] {}", item.key);
            if section == "main" && item.key == "include" {
                let entry = Entry {
                    place: &place,
                    key: &key,
                    value: &item.value,
                };
                let why = "that profile is not read: import it, too";
                intake.notes.lose(entry, why);
            } else if item.key.is_empty() {
                let entry = Entry {
                    place: &place,
                    key: &item.value,
                    value: "",
                };
                intake
                    .notes
                    .lose(entry, "the line is no option with a value");
            } else {
                let kept = if matches!(section, "main" | "variables") {
                    Kept::Profile
                } else {
                    Kept::Rest
                };
                intake.notes.keep(&place, &key, kept);
            }
        }
    }
}

fn instance(source: &Source, items: &[&Item], intake: &mut Intake) {
    let Some(first) = items.first() else { return };
    let place = source.place(first.line);
    let get = |key: &str| items.iter().find(|item| item.key == key);
    let loses = |why: &str, intake: &mut Intake| {
        for item in items {
            let place = source.place(item.line);
            let key = if item.key.is_empty() {
                &item.value
            } else {
                &item.key
            };
            let value = if item.key.is_empty() { "" } else { &item.value };
            let entry = Entry {
                place: &place,
                key,
                value,
            };
            intake.notes.lose(entry, why);
        }
    };
    if get("enabled").is_some_and(|item| spelling::switch(&item.value) == Ok(false)) {
        return loses("the section is not enabled", intake);
    }
    if get("devices_udev_regex").is_some() {
        return loses(
            "devices_udev_regex takes udev to know which devices these are",
            intake,
        );
    }
    let mut found = Found::at(&place);
    let devices = get("devices").filter(|item| item.value != "*");
    match devices {
        Some(item) => match names(&item.value) {
            Ok(globs) => {
                let is_ib = globs.iter().all(|glob| is_ipoib_name(glob.as_str()));
                let place = source.place(item.line);
                if !is_ib && !intake.options.all_kinds {
                    let why = "the devices are not InfiniBand's by their names; --all-kinds takes \
                               them, too";
                    return loses(why, intake);
                }
                let shown = globs
                    .iter()
                    .map(Glob::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                let entry = Entry {
                    place: &place,
                    key: "devices",
                    value: &item.value,
                };
                note_match(entry, format!("name = {shown}"), None, &mut intake.notes);
                found.matches.name = globs;
            }
            Err(why) => return loses(&why, intake),
        },
        None => every_device(&mut found, &place, intake),
    }
    settle(&mut found, source, items, intake);
    intake.found.push(found);
}

fn every_device(found: &mut Found, place: &Place, intake: &mut Intake) {
    let entry = Entry {
        place,
        key: "devices",
        value: "*",
    };
    let why = "TuneD sets every network device; this is for IPoIB interfaces only";
    found.matches.kind = vec![Glob::literal("ipoib")];
    let into = Some("kind = ipoib".to_owned());
    intake
        .notes
        .add(entry, Outcome::Changed, into, Some(why.to_owned()));
}

fn settle(found: &mut Found, source: &Source, items: &[&Item], intake: &mut Intake) {
    let notes = &mut intake.notes;
    let lasts: HashMap<&str, &Item> = items
        .iter()
        .map(|item| (item.key.as_str(), *item))
        .collect();
    for item in items {
        let place = source.place(item.line);
        let entry = Entry {
            place: &place,
            key: &item.key,
            value: &item.value,
        };
        let last = lasts.get(item.key.as_str()).copied();
        let later = last.filter(|last| last.line != item.line);
        if item.key.is_empty() {
            let entry = Entry {
                key: &item.value,
                value: "",
                ..entry
            };
            notes.lose(entry, "the line is no option with a value");
        } else if let Some(later) = later {
            notes.lose(entry, format!("line {} sets it again", later.line));
        } else if item.value.contains("${") {
            notes.lose(entry, "it has a variable of TuneD's, and none is expanded");
        } else if item.key == "devices" && !found.matches.name.is_empty() {
            // Noted with the match.
        } else if let Taken::Which(what) = found.take(ROWS, entry, notes) {
            notes.tell(entry, what, true);
        }
    }
}

/// Reads a list of names and patterns.
fn names(list: &str) -> Result<Vec<Glob>, String> {
    let words = list.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err("'devices' names none".to_owned());
    }
    let glob = |word: &&str| {
        if word.starts_with('!') {
            return Err(format!("'{word}' leaves devices out, which no rule does"));
        }
        if word.contains("${") {
            return Err("it has a variable of TuneD's, and none is expanded".to_owned());
        }
        word.parse::<Glob>().map_err(|error| error.to_string())
    };
    words.iter().map(glob).collect()
}
