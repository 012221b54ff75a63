// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ethtool's names and command lines, in whichever file they stand.

use ibmgr_api::{Carrier, Domain, registry};

use crate::found::Found;
use crate::note::{Entry, Notes};
use crate::rows::{Group, NO_PAUSE};
use crate::spelling::Form;

/// Feature names of ethtool's command line that are not the kernel's, and whether one name stands for
/// several features of the kernel (ethtool.c, `off_flag_def`).
const FEATURES: [(&str, &str, &str); 23] = [
    ("rx", "rx-checksum", ""),
    ("rx-checksumming", "rx-checksum", ""),
    ("tx", "tx-checksum-ipv4", ALL_CHECKSUMS),
    ("tx-checksumming", "tx-checksum-ipv4", ALL_CHECKSUMS),
    ("sg", "tx-scatter-gather", ALL_SCATTER),
    ("scatter-gather", "tx-scatter-gather", ALL_SCATTER),
    ("tso", "tx-tcp-segmentation", ALL_TSO),
    ("tcp-segmentation-offload", "tx-tcp-segmentation", ALL_TSO),
    ("ufo", "tx-udp-fragmentation", ""),
    ("udp-fragmentation-offload", "tx-udp-fragmentation", ""),
    ("gso", "tx-generic-segmentation", ""),
    (
        "generic-segmentation-offload",
        "tx-generic-segmentation",
        "",
    ),
    ("gro", "rx-gro", ""),
    ("generic-receive-offload", "rx-gro", ""),
    ("lro", "rx-lro", ""),
    ("large-receive-offload", "rx-lro", ""),
    ("rxvlan", "rx-vlan-hw-parse", ""),
    ("rx-vlan-offload", "rx-vlan-hw-parse", ""),
    ("txvlan", "tx-vlan-hw-insert", ""),
    ("tx-vlan-offload", "tx-vlan-hw-insert", ""),
    ("ntuple", "rx-ntuple-filter", ""),
    ("ntuple-filters", "rx-ntuple-filter", ""),
    ("rxhash", "rx-hashing", ""),
];

pub(crate) const ALL_CHECKSUMS: &str =
    "the name stands for every tx-checksum feature of the device, of which IPoIB has this one";
const ALL_SCATTER: &str = "the name stands for the fragment lists, too, which IPoIB does not have";
const ALL_TSO: &str =
    "the name stands for every TCP segmentation feature of the device, of which IPoIB has this one";

/// Sets one value of a group.
pub(crate) fn set(
    found: &mut Found,
    group: Group,
    name: &str,
    entry: Entry<'_>,
    notes: &mut Notes,
) {
    let (knob, remark) = match group {
        Group::Feature => {
            let known = FEATURES.iter().find(|(alias, ..)| *alias == name);
            let (name, remark) = known.map_or((name, ""), |(_, name, remark)| (name, remark));
            (format!("feature.{name}"), remark)
        }
        Group::Coalesce => {
            let is_coalescing = |knob: &&ibmgr_api::Knob| {
                matches!(knob.carriers.first(), Some(Carrier::Coalesce(_)))
            };
            if registry::find(name).filter(is_coalescing).is_none() {
                return notes.lose(entry, "no knob is for this coalescing parameter");
            }
            (name.to_owned(), "")
        }
        Group::Ring => (format!("ring.{name}"), ""),
        Group::Channels => (format!("channels.{name}"), ""),
        Group::Pause => return notes.lose(entry, NO_PAUSE),
    };
    let key: ibmgr_api::Key = match knob.parse() {
        Ok(key) => key,
        Err(_) => return notes.lose(entry, format!("no knob is for '{name}'")),
    };
    let form = match key.knob().domain {
        Domain::Choice(_) => Form::Switch,
        Domain::Duration { .. } => Form::Usecs,
        Domain::Number { .. } => Form::Number,
        Domain::Text { .. } | Domain::Cpus => Form::Text,
    };
    let before = found.settings.len();
    found.set(&knob, form, entry, None, notes);
    if let Some(setting) = found.settings.get(before)
        && !remark.is_empty()
    {
        notes.remark(setting.note, crate::note::Outcome::Changed, remark);
    }
}

/// Sets values that stand as `name value name value`, with any of tuned's separators.
pub(crate) fn pairs(found: &mut Found, group: Group, entry: Entry<'_>, notes: &mut Notes) {
    let words = entry
        .value
        .split(|c: char| c.is_whitespace() || ":;,".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    set_pairs(found, group, &words, entry, notes);
}

fn set_pairs(found: &mut Found, group: Group, words: &[&str], entry: Entry<'_>, notes: &mut Notes) {
    for pair in words.chunks(2) {
        let [name, value] = *pair else {
            let odd = pair.concat();
            notes.lose(entry, format!("'{odd}' has no value behind it"));
            continue;
        };
        let key = format!("{} {name}", entry.key);
        let entry = Entry {
            key: &key,
            value,
            ..entry
        };
        set(found, group, name, entry, notes);
    }
}

/// Sets what command lines of ethtool set, several of them between semicolons.
pub(crate) fn words(found: &mut Found, entry: Entry<'_>, notes: &mut Notes) {
    for line in entry.value.split([';', '\n']) {
        let mut words = line.split_whitespace();
        let Some(option) = words.next() else {
            continue;
        };
        let group = match option {
            "-K" | "--features" | "--offload" => Group::Feature,
            "-C" | "--coalesce" => Group::Coalesce,
            "-G" | "--set-ring" => Group::Ring,
            "-L" | "--set-channels" => Group::Channels,
            "-A" | "--pause" => Group::Pause,
            _ => {
                let entry = Entry {
                    value: line.trim(),
                    ..entry
                };
                notes.lose(entry, "only ethtool's options -K, -C, -G and -L set knobs");
                continue;
            }
        };
        // What stands next is the interface, in the spelling of the tool.
        let Some(device) = words.next() else {
            notes.lose(entry, format!("'{option}' names no interface"));
            continue;
        };
        let names = || found.matches.name.iter();
        let is_own = matches!(device, "iface" | "$DEVICE" | "${DEVICE}" | "$INTERFACE")
            || names().any(|name| name.is_match(device));
        if !is_own {
            let entry = Entry {
                value: line.trim(),
                ..entry
            };
            notes.lose(entry, format!("it is for another interface, {device}"));
            continue;
        }
        let rest: Vec<&str> = words.collect();
        let key = format!("{} {option}", entry.key);
        let entry = Entry { key: &key, ..entry };
        set_pairs(found, group, &rest, entry, notes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_a_key() {
        for (alias, name, _) in FEATURES {
            let key = format!("feature.{name}").parse::<ibmgr_api::Key>();
            assert!(key.is_ok(), "{alias}");
        }
    }
}
