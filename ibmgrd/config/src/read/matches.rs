// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions of rules.

use std::fmt::Display;
use std::str::FromStr;

use ibmgr_api::Match;

use super::Reader;
use crate::tree::{Body, Entry};
use crate::words;

impl Reader<'_> {
    pub(super) fn matches(&mut self, entry: Entry) -> Match {
        let mut matches = Match::default();
        let spot = entry.spot;
        let before = self.found.len();
        let Some(entries) = self.table(entry, "'match'") else {
            return matches;
        };
        for entry in entries {
            match entry.key.as_str() {
                words::NAME => matches.name = self.alternatives(&entry),
                words::DRIVER => matches.driver = self.alternatives(&entry),
                words::PATH => matches.path = self.alternatives(&entry),
                words::GUID => matches.guid = self.alternatives(&entry),
                words::PKEY => matches.pkey = self.alternatives(&entry),
                words::PARENT => matches.parent = self.alternatives(&entry),
                words::KIND => matches.kind = self.alternatives(&entry),
                words::CHILD => matches.is_child = self.boolean(&entry),
                _ => self.unknown_condition(&entry),
            }
        }
        if matches.is_empty() && self.found.len() == before {
            let found = self.at(spot, "this match has no condition, and matches nothing");
            self.found
                .push(found.help("write { name = \"*\" } for every interface"));
        }
        matches
    }

    /// Reads one value, or a list of them of which one must hold.
    fn alternatives<T: FromStr<Err: Display>>(&mut self, entry: &Entry) -> Vec<T> {
        let Body::List(items) = &entry.value.body else {
            let text = self.scalar(entry, "a value or a list of values");
            let one = text.and_then(|text| self.parsed(&text, entry.value.spot));
            return one.into_iter().collect();
        };
        if items.is_empty() {
            self.wrong(
                entry.value.spot,
                format!("'{}' has no alternatives, and matches nothing", entry.key),
            );
        }
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            match &item.body {
                Body::Scalar(text) => all.extend(self.parsed(text, item.spot)),
                Body::Nothing | Body::List(_) | Body::Table(_) => {
                    let message = format!(
                        "an alternative of '{}' is a value, and this is {}",
                        entry.key,
                        item.what()
                    );
                    self.wrong(item.spot, message);
                }
            }
        }
        all
    }

    fn unknown_condition(&mut self, entry: &Entry) {
        let near = self.nearest(&entry.key, words::OF_MATCH);
        let help = match (entry.key.as_str(), near.first()) {
            ("mac" | "address" | "mac-address" | "macaddress" | "hwaddr", _) => {
                "match on 'guid', the last 8 bytes: the others change with the QPN".to_owned()
            }
            (_, Some(name)) => format!("did you mean '{name}'?"),
            (_, None) => format!("it has {}", super::list(&words::OF_MATCH)),
        };
        let message = format!("a match has no '{}'", entry.key.escape_debug());
        let found = self.at(entry.spot, message).help(help);
        self.found.push(found);
    }
}
