// SPDX-License-Identifier: Apache-2.0 OR MIT
//! NetworkManager's keyfiles (nm-settings-keyfile(5)).

use std::collections::HashMap;

use ibmgr_api::{Glob, LinkName, Pkey};

use super::{Intake, Kin, Source};
use crate::found::{Found, Taken, child_name, note_match};
use crate::note::{Entry, Kept, Notes, Outcome, Place};
use crate::rows::{Group, Row, Table, To, row};
use crate::spelling::{self, Form};
use crate::syntax::ini::{self, Dialect};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Sections and keys",
    rows: ROWS,
}];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);

const ROWS: &[Row] = &[
    row("[infiniband] transport-mode", To::Knob("mode", Form::Mode)),
    row("[infiniband] mtu", To::Knob("mtu", Form::Mtu)),
    row("[infiniband] mac-address", To::Which("`match.guid`"))
        .note("the last 8 bytes of the 20 alone"),
    row("[infiniband] p-key", To::Which("`child.pkey`")).note(
        "the name has the number as it stands; the kernel sets 0x8000 all the same; -1 is none",
    ),
    row("[infiniband] parent", To::Which("the child's parent")),
    row("[connection] interface-name", To::Which("`match.name`")),
    row("[connection] type", To::Which(KIND)),
    row("[match] interface-name", To::Which("`match.name`"))
        .note("patterns with `!`, `&` or `|` in front are not carried, nor is the profile then"),
    row("[match] driver", To::Which("`match.driver`")),
    row("[match] path", To::Which("`match.path`")).note("udev's `pci-…` becomes the PCI address"),
    row("[match] kernel-command-line", To::Nothing(NO_COMMAND_LINE)),
    row("[ethtool] feature-*", To::Ethtool(Group::Feature)),
    row("[ethtool] coalesce-*", To::Ethtool(Group::Coalesce)),
    row("[ethtool] ring-*", To::Ethtool(Group::Ring)),
    row("[ethtool] channels-*", To::Ethtool(Group::Channels)),
    row("[ethtool] pause-*", To::Ethtool(Group::Pause)),
    row("[ethtool] fec-mode", To::Nothing("no knob is for FEC")),
    row(
        "[ethtool] eee-enabled",
        To::Nothing("InfiniBand has no EEE"),
    ),
    row(
        "[link] tx-queue-length",
        To::Knob("txqueuelen", Form::Number),
    )
    .note("-1 is the default, and not carried"),
    row(
        "[link] gso-max-size",
        To::Knob("gso-max-size", Form::Number),
    ),
    row(
        "[link] gro-max-size",
        To::Knob("gro-max-size", Form::Number),
    ),
    row("[link] gso-max-segments", To::Nothing("no knob is for it")),
    row("[ethernet] mtu", To::Knob("mtu", Form::Mtu)).note("with `--all-kinds`"),
    row(
        "[ethernet] mac-address",
        To::Nothing("rules match other interfaces than IPoIB by name"),
    ),
    row("[ethernet] *", To::Nothing("it is Ethernet's")),
    row("[sriov] *", To::Nothing("virtual functions are not ours")),
    row("[tc] *", To::Nothing("queueing disciplines are not ours")),
    row(
        "[bridge-port] *",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row(
        "[bond-port] *",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row(
        "[connection] master",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row(
        "[connection] slave-type",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row(
        "[connection] controller",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row(
        "[connection] port-type",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row("[connection] *", PROFILE),
    row("[ipv4] *", ADDRESSES),
    row("[ipv6] *", ADDRESSES),
    row("[hostname] *", ADDRESSES),
    row("[proxy] *", ADDRESSES),
    row("[user] *", PROFILE),
];

const KIND: &str = "tells that the file is for InfiniBand";
pub(super) const NO_COMMAND_LINE: &str = "rules do not look at the kernel's command line";

/// One key, the last of its name.
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

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        one(source, intake);
    }
}

fn one(source: &Source, intake: &mut Intake) {
    let settings = settings(source, &mut intake.notes);
    let get = |key: &str| settings.iter().find(|setting| setting.key == key);
    let place = source.place(1);
    let name = get("[connection] interface-name").map(|name| name.value.as_str());
    let kin = kin(&settings);
    if !intake.is_wanted(&kin, name, &place) {
        return;
    }
    let notes = &mut intake.notes;
    let mark = notes.mark();
    let mut found = Found::at(&place);
    child(&mut found, &settings, notes);
    let is_child = found.child.is_some();
    let mut lacks = None;
    for setting in &settings {
        let entry = setting.entry();
        if matches!(setting.value.as_str(), "-1") && setting.key == "[link] tx-queue-length" {
            notes.lose(entry, "it stands for the default");
            continue;
        }
        let Taken::Which(what) = found.take(ROWS, entry, notes) else {
            continue;
        };
        let is_carried = match entry.key {
            "[infiniband] p-key" if entry.value.trim() == "-1" => {
                notes.tell(entry, "-1 is none: the interface itself", true);
                true
            }
            "[infiniband] p-key" | "[infiniband] parent" => {
                notes.tell(entry, what, is_child);
                true
            }
            "[connection] interface-name" if is_child => {
                notes.tell(entry, "`child.name`", true);
                true
            }
            "[connection] interface-name" => found.name(entry, notes).is_some(),
            "[infiniband] mac-address" if is_child => {
                notes.lose(entry, "a child is told by its parent and its P_Key");
                true
            }
            "[infiniband] mac-address" => {
                matches!(found.address(entry, notes), Some(8 | 20))
            }
            "[connection] type" => {
                notes.tell(entry, what, true);
                true
            }
            _ => condition(&mut found, entry, notes),
        };
        if !is_carried {
            lacks.get_or_insert(setting);
        }
    }
    if let Some(setting) = lacks {
        let why = "the profile is not carried without this condition: it would be for too much";
        return notes.lose_since(mark, setting.entry(), why);
    }
    if found.matches.is_empty() && !is_child {
        let entry = Entry {
            place: &place,
            key: "[connection] interface-name",
            value: "",
        };
        if !matches!(kin, Kin::InfiniBand) {
            return notes.lose_since(mark, entry, "nothing tells which interface this is");
        }
        let why = "no name and no address: the profile is for any interface of its type, and is \
                   carried to every IPoIB interface";
        found.matches.kind = vec![Glob::literal("ipoib")];
        let into = Some("kind = ipoib".to_owned());
        notes.add(entry, Outcome::Changed, into, Some(why.to_owned()));
    }
    intake.found.push(found);
}

/// Reads the keys; of several with one name, the last counts.
fn settings(source: &Source, notes: &mut Notes) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in ini::parse(&source.text, Dialect::Keyfile) {
        let new = Setting {
            place: source.place(item.line),
            key: format!("[{}] {}", item.section, item.key),
            value: item.value,
        };
        if item.key.is_empty() {
            let entry = Entry {
                key: &new.value,
                value: "",
                ..new.entry()
            };
            notes.lose(entry, "the line is no key with a value");
            continue;
        }
        let Some(at) = places.insert(new.key.clone(), settings.len()) else {
            settings.push(new);
            continue;
        };
        places.insert(new.key.clone(), at);
        if let Some(known) = settings.get_mut(at) {
            let entry = Entry {
                value: "",
                ..known.entry()
            };
            notes.lose(entry, format!("line {} sets it again", new.place.line));
            *known = new;
        }
    }
    settings
}

fn kin(settings: &[Setting]) -> Kin {
    let get = |key: &str| settings.iter().find(|setting| setting.key == key);
    match get("[connection] type") {
        Some(kind) if kind.value == "infiniband" => Kin::InfiniBand,
        Some(kind) => Kin::Other(format!("type {}", kind.value)),
        None if settings
            .iter()
            .any(|setting| setting.key.starts_with("[infiniband]")) =>
        {
            Kin::InfiniBand
        }
        None => Kin::Untold,
    }
}

fn child(found: &mut Found, settings: &[Setting], notes: &mut Notes) {
    let get = |key: &str| settings.iter().find(|setting| setting.key == key);
    let Some(p_key) = get("[infiniband] p-key").filter(|p_key| p_key.value.trim() != "-1") else {
        return;
    };
    let name = get("[connection] interface-name");
    let read = || -> Result<(LinkName, Pkey, LinkName), String> {
        let pkey = spelling::pkey(&p_key.value, 10)?;
        let parent = get("[infiniband] parent").ok_or("a child takes [infiniband] parent, too")?;
        let parent: LinkName = parent.value.parse().map_err(|error| format!("{error}"))?;
        let name = child_name(&parent, pkey)?;
        Ok((parent, pkey, name))
    };
    match read() {
        Ok((parent, pkey, computed)) => {
            if let Some(name) = name.filter(|name| name.value != computed.as_str()) {
                let why =
                    format!("NetworkManager takes no other name than {computed} for this P_Key");
                let into = Some(format!("name = {computed}"));
                notes.add(name.entry(), Outcome::Changed, into, Some(why));
            }
            found.below(parent, pkey, computed, p_key.entry(), notes);
        }
        Err(why) => notes.lose(p_key.entry(), why),
    }
}

/// Reads a condition of `[match]`: a list of patterns, one of which must hold.
fn condition(found: &mut Found, entry: Entry<'_>, notes: &mut Notes) -> bool {
    let patterns = entry.value.split(';').map(str::trim);
    let patterns: Vec<&str> = patterns.filter(|pattern| !pattern.is_empty()).collect();
    let is_plain = |pattern: &&str| !pattern.starts_with(['!', '&', '|', '\\']);
    if patterns.is_empty() || !patterns.iter().all(is_plain) {
        return false;
    }
    let read = |pattern: &&str| match entry.key {
        "[match] path" => id_path(pattern),
        _ => pattern.parse::<Glob>().ok(),
    };
    let Some(globs) = patterns.iter().map(read).collect::<Option<Vec<Glob>>>() else {
        return false;
    };
    let shown = globs
        .iter()
        .map(Glob::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let (word, why) = match entry.key {
        "[match] driver" => {
            found.matches.driver = globs;
            ("driver", None)
        }
        "[match] path" => {
            found.matches.path = globs;
            (
                "path",
                Some("udev's path became that of the device below /sys"),
            )
        }
        _ => {
            found.matches.name = globs;
            ("name", None)
        }
    };
    note_match(entry, format!("{word} = {shown}"), why, notes);
    true
}

/// Turns udev's `ID_PATH` of a PCI device into a pattern for the device's path below `/sys`.
pub(super) fn id_path(pattern: &str) -> Option<Glob> {
    let rest = pattern.strip_prefix("pci-")?;
    let address = rest.trim_end_matches(['*', '-']);
    let is_address = address.len() == 12
        && address
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'?'));
    is_address.then(|| format!("*/{address}").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_udev_become_pci_addresses() {
        for path in [
            "pci-0000:03:00.0",
            "pci-0000:03:00.0-*",
            "pci-0000:03:00.0*",
        ] {
            assert_eq!(id_path(path).unwrap().as_str(), "*/0000:03:00.0", "{path}");
        }
        for other in ["platform-x", "pci-0000:03:*", "pci-0000:03:00.0-usb-0"] {
            assert!(id_path(other).is_none(), "{other}");
        }
    }
}
