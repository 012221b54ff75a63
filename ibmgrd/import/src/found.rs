// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One interface as a file describes it.

use ibmgr_api::{Glob, Key, LinkName, Match, Pkey, Value};

use crate::ethtool;
use crate::note::{Entry, NoteId, Notes, Outcome, Place};
use crate::rows::{self, Row, To};
use crate::spelling::{self, Address, Form};

/// One interface as a file describes it.
#[derive(Debug)]
pub(crate) struct Found {
    /// Where the description begins.
    pub(crate) place: Place,
    /// Which interfaces it is for.
    pub(crate) matches: Match,
    /// What it is a child of, if it is one.
    pub(crate) child: Option<Below>,
    /// What is to be set, in the order of the file.
    pub(crate) settings: Vec<Setting>,
}

/// A P_Key child, by its place below a parent.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    pub(crate) parent: LinkName,
    pub(crate) pkey: Pkey,
    pub(crate) name: LinkName,
}

/// A value for a knob.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: Key,
    pub(crate) value: Value,
    pub(crate) place: Place,
    pub(crate) note: NoteId,
}

/// What looking a key up came to.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The row was enough.
    Done,
    /// The format itself must make something of it: it tells this.
    Which(&'static str),
    /// No row is for this key.
    Unknown,
}

impl Found {
    pub(crate) fn at(place: &Place) -> Self {
        Self {
            place: place.clone(),
            matches: Match::default(),
            child: None,
            settings: Vec::new(),
        }
    }

    /// Does with an entry what its row says. A key without a row is noted as such, without its value,
    /// which could be a secret.
    pub(crate) fn take(
        &mut self,
        rows: &'static [Row],
        entry: Entry<'_>,
        notes: &mut Notes,
    ) -> Taken {
        let Some((row, rest)) = rows::find(rows, entry.key) else {
            let entry = Entry { value: "", ..entry };
            notes.lose(entry, "this importer does not know the key");
            return Taken::Unknown;
        };
        match row.to {
            To::Knob(knob, form) => {
                let before = self.settings.len();
                self.set(knob, form, entry, None, notes);
                if let Some(setting) = self.settings.get(before).filter(|_| row.is_changed) {
                    notes.remark(setting.note, Outcome::Changed, row.note);
                }
            }
            To::Ethtool(group) => ethtool::set(self, group, rest, entry, notes),
            To::EthtoolPairs(group) => ethtool::pairs(self, group, entry, notes),
            To::EthtoolWords => ethtool::words(self, entry, notes),
            To::Nothing(why) => notes.lose(entry, why),
            To::Kept(kept) => notes.keep(entry.place, entry.key, kept),
            To::Which(what) => return Taken::Which(what),
        }
        Taken::Done
    }

    /// Reads a value for a knob and notes it, or why it is none.
    pub(crate) fn set(
        &mut self,
        knob: &str,
        form: Form,
        entry: Entry<'_>,
        remark: Option<&str>,
        notes: &mut Notes,
    ) {
        let read = || -> Result<_, String> {
            let key: Key = knob.parse().map_err(|error| format!("{error}"))?;
            let spelt = form.read(entry.value)?;
            let domain = &key.knob().domain;
            let value = domain
                .parse(&spelt.text)
                .map_err(|error| error.to_string())?;
            Ok((key, value, spelt))
        };
        let (key, value, spelt) = match read() {
            Ok(read) => read,
            Err(why) => return notes.lose(entry, why),
        };
        let into = format!("{key} = {}", value.show(&key.knob().domain));
        let note = notes.add(entry, Outcome::Carried, Some(into), None);
        for why in spelt.remark.into_iter().chain(remark) {
            notes.remark(note, Outcome::Carried, why);
        }
        self.settings.push(Setting {
            key,
            value,
            place: entry.place.clone(),
            note,
        });
    }

    /// Takes the name of the interface.
    pub(crate) fn name(&mut self, entry: Entry<'_>, notes: &mut Notes) -> Option<LinkName> {
        match entry.value.parse::<LinkName>() {
            Ok(name) => {
                self.matches.name = vec![Glob::literal(name.as_str())];
                note_match(entry, format!("name = {name}"), None, notes);
                Some(name)
            }
            Err(error) => {
                notes.lose(entry, error.to_string());
                None
            }
        }
    }

    /// Takes the hardware address: the port GUID of an IPoIB address, since the rest of it changes.
    pub(crate) fn address(&mut self, entry: Entry<'_>, notes: &mut Notes) -> Option<usize> {
        match spelling::address(entry.value) {
            Ok(Address::Port(guid)) => {
                self.matches.guid = vec![guid];
                let why = "the last 8 bytes alone: the first 12 hold the QPN, which changes";
                let into = format!("guid = {guid}");
                notes.add(entry, Outcome::Changed, Some(into), Some(why.to_owned()));
                Some(20)
            }
            Ok(Address::Guid(guid)) => {
                self.matches.guid = vec![guid];
                note_match(entry, format!("guid = {guid}"), None, notes);
                Some(8)
            }
            Ok(Address::Other(length)) => {
                let why = format!("an IPoIB address has 20 bytes, this one {length}");
                notes.lose(entry, why);
                Some(length)
            }
            Err(why) => {
                notes.lose(entry, why);
                None
            }
        }
    }

    /// Notes what makes it a P_Key child.
    ///
    /// The kernel sets the full-member bit of the P_Key, but not in a name made from it.
    pub(crate) fn below(
        &mut self,
        parent: LinkName,
        pkey: Pkey,
        name: LinkName,
        entry: Entry<'_>,
        notes: &mut Notes,
    ) {
        let full = Pkey::new(pkey.raw() | Pkey::FULL_MEMBER).unwrap_or(pkey);
        let into = format!("child {full} of {parent}, name = {name}");
        if pkey == full {
            notes.add(entry, Outcome::Carried, Some(into), None);
        } else {
            let why = format!(
                "the kernel sets the full-member bit (0x8000) of {pkey}; the name stays {name}"
            );
            notes.add(entry, Outcome::Changed, Some(into), Some(why));
        }
        self.matches.name = vec![Glob::literal(name.as_str())];
        self.child = Some(Below {
            parent,
            pkey: full,
            name,
        });
    }
}

/// Notes a condition of a match.
pub(crate) fn note_match(entry: Entry<'_>, into: String, why: Option<&str>, notes: &mut Notes) {
    let outcome = if why.is_some() {
        Outcome::Changed
    } else {
        Outcome::Carried
    };
    notes.add(entry, outcome, Some(into), why.map(str::to_owned));
}

/// Returns the name that the kernel, NetworkManager and the network scripts give a child.
pub(crate) fn child_name(parent: &LinkName, pkey: Pkey) -> Result<LinkName, String> {
    let name = format!("{parent}.{:04x}", pkey.raw());
    name.parse().map_err(|error| format!("{error}"))
}

/// Splits a name such as `ib0.8001` into its parent and its P_Key.
pub(crate) fn split_child(name: &str) -> Option<(LinkName, Pkey)> {
    let (parent, digits) = name.rsplit_once('.')?;
    let pkey = (digits.len() == 4).then(|| spelling::pkey(digits, 16).ok())??;
    Some((parent.parse().ok()?, pkey))
}

/// Says whether the kernel's and udev's names of IPoIB interfaces look like this.
pub(crate) fn is_ipoib_name(name: &str) -> bool {
    let after = name.strip_prefix("ib").and_then(|rest| rest.chars().next());
    after.is_some_and(|c| c.is_ascii_digit() || "poscx*?[".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_children_are_split() {
        let (parent, pkey) = split_child("ib0.8001").unwrap();
        assert_eq!((parent.as_str(), pkey.raw()), ("ib0", 0x8001));
        for other in ["ib0", "ib0.1", "ib0.800g", "ib0.0000", ".8001"] {
            assert!(split_child(other).is_none(), "{other}");
        }
        let parent: LinkName = "ib0".parse().unwrap();
        let name = child_name(&parent, Pkey::new(0x000a).unwrap()).unwrap();
        assert_eq!(name.as_str(), "ib0.000a");
    }

    #[test]
    fn names_of_ipoib_interfaces_are_known() {
        for name in ["ib0", "ibp94s0f1", "ibs3", "ib*", "ib0.8001", "ibo1"] {
            assert!(is_ipoib_name(name), "{name}");
        }
        for name in ["eth0", "ib", "ibmgr0", "bond0", "enp1s0"] {
            assert!(!is_ipoib_name(name), "{name}");
        }
    }
}
