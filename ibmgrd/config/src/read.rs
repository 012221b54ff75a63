// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trees to models: every key is known and every value valid, or there is a finding for it.

mod bundle;
mod matches;

use std::collections::HashMap;

use ibmgr_api::{ChildKind, LinkName, Match, nearest};

use crate::diagnostic::{Diagnostic, FOUND_MAX};
use crate::model::{Bundle, ChildRule, LinkRule, Model, Profile};
use crate::text::{Spot, Text};
use crate::tree::{Body, Entry, Node};
use crate::words;

/// Longest name of an interface, bytes: `IFNAMSIZ` less the terminator.
const NAME_MAX: usize = 15;

/// Reads the tree of a file. Whether the model can be used tell the findings.
pub(crate) fn read(text: &Text, tree: Node, found: &mut Vec<Diagnostic>) -> Model {
    let mut reader = Reader { text, found };
    let mut model = Model {
        text: text.clone(),
        defaults: None,
        profiles: Vec::new(),
        rules: Vec::new(),
    };
    let entries = match tree.body {
        Body::Table(entries) => entries,
        // A file of comments only.
        Body::Nothing => Vec::new(),
        Body::Scalar(_) | Body::List(_) => {
            let what = format!(
                "a file is a table of {}, and this is {}",
                list(&words::TOP),
                tree.what()
            );
            reader.wrong(tree.spot, what);
            Vec::new()
        }
    };
    for entry in entries {
        match entry.key.as_str() {
            words::LINK => model.rules = reader.rules(entry),
            words::DEFAULTS => {
                let spot = entry.spot;
                let bundle = reader.bundle(entry, "defaults", &words::OF_DEFAULTS);
                model.defaults = Some((spot, bundle));
            }
            words::PROFILE => model.profiles = reader.profiles(entry),
            _ => reader.unknown_word(&entry, "a file", &words::TOP),
        }
    }
    model
}

/// Returns words for a sentence.
fn list(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Collects findings while it reads.
struct Reader<'a> {
    text: &'a Text,
    found: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn at(&self, spot: Spot, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.text, spot, message)
    }

    fn wrong(&mut self, spot: Spot, message: impl Into<String>) {
        let found = self.at(spot, message);
        self.found.push(found);
    }

    fn unknown_word(&mut self, entry: &Entry, of: &str, known: &[&str]) {
        let message = format!("{of} has no '{}'", entry.key.escape_debug());
        let near = self.nearest(&entry.key, known.iter().copied());
        let help = match near.first() {
            Some(name) => format!("did you mean '{name}'?"),
            None => format!("it has {}", list(known)),
        };
        let found = self.at(entry.spot, message).help(help);
        self.found.push(found);
    }

    /// Returns names that look like `name`, unless nobody will read them any more.
    fn nearest<'n>(&self, name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
        if self.found.len() > FOUND_MAX {
            Vec::new()
        } else {
            nearest(name, names)
        }
    }

    /// Returns the entries of a table.
    fn table(&mut self, entry: Entry, what: &str) -> Option<Vec<Entry>> {
        match entry.value.body {
            Body::Table(entries) => Some(entries),
            Body::Nothing | Body::Scalar(_) | Body::List(_) => {
                let is = entry.value.what();
                self.wrong(
                    entry.value.spot,
                    format!("{what} is a table, and this is {is}"),
                );
                None
            }
        }
    }

    /// Returns the tables of a list.
    fn tables(&mut self, entry: Entry, example: &str) -> Vec<(Spot, Vec<Entry>)> {
        let items = match entry.value.body {
            Body::List(items) => items,
            Body::Nothing => Vec::new(),
            Body::Scalar(_) | Body::Table(_) => {
                let is = entry.value.what();
                let message = format!("'{}' is a list of tables, and this is {is}", entry.key);
                let found = self
                    .at(entry.spot, message)
                    .help(format!("write {example}"));
                self.found.push(found);
                Vec::new()
            }
        };
        let mut tables = Vec::with_capacity(items.len());
        for item in items {
            let is = item.what();
            match item.body {
                Body::Table(entries) => tables.push((item.spot, entries)),
                Body::Nothing | Body::Scalar(_) | Body::List(_) => {
                    let message =
                        format!("each item of '{}' is a table, and this is {is}", entry.key);
                    self.wrong(item.spot, message);
                }
            }
        }
        tables
    }

    fn scalar(&mut self, entry: &Entry, what: &str) -> Option<String> {
        match &entry.value.body {
            Body::Scalar(text) => Some(text.clone()),
            Body::Nothing => {
                self.wrong(entry.spot, format!("'{}' has no value", entry.key));
                None
            }
            Body::List(_) | Body::Table(_) => {
                let is = entry.value.what();
                let message = format!("'{}' is {what}, and this is {is}", entry.key);
                self.wrong(entry.value.spot, message);
                None
            }
        }
    }

    fn boolean(&mut self, entry: &Entry) -> Option<bool> {
        let text = self.scalar(entry, "true or false")?;
        match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                let message = format!(
                    "'{}' is true or false, not '{}'",
                    entry.key,
                    text.escape_debug()
                );
                self.wrong(entry.value.spot, message);
                None
            }
        }
    }

    /// Reads a word of a few.
    fn word<T: Copy>(
        &mut self,
        entry: &Entry,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Option<T> {
        let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        let text = self.scalar(entry, "a word")?;
        if let Some(one) = all.iter().find(|one| name(**one) == text) {
            return Some(*one);
        }
        let message = format!("'{}' is no {}", text.escape_debug(), entry.key);
        let help = match nearest(&text, names.iter().copied()).first() {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("write one of {}", names.join(", ")),
        };
        let found = self.at(entry.value.spot, message).help(help);
        self.found.push(found);
        None
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        text: &str,
        spot: Spot,
    ) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(spot, error.to_string());
                None
            }
        }
    }

    /// Refuses a name that only an alternative one can have.
    fn check_length(&mut self, name: Option<&LinkName>, spot: Spot) {
        if let Some(name) = name.filter(|name| name.as_str().len() > NAME_MAX) {
            let message = format!("'{name}' has more than {NAME_MAX} bytes, and names no child");
            self.wrong(spot, message);
        }
    }

    fn profiles(&mut self, entry: Entry) -> Vec<Profile> {
        let Some(entries) = self.table(entry, "'profile'") else {
            return Vec::new();
        };
        let profile = |entry: Entry| Profile {
            name: entry.key.clone(),
            bundle: self.bundle(entry, "a profile", &words::OF_PROFILE),
        };
        entries.into_iter().map(profile).collect()
    }

    fn rules(&mut self, entry: Entry) -> Vec<LinkRule> {
        let tables = self.tables(entry, "[[link]] in TOML, '- match: …' in YAML");
        tables
            .into_iter()
            .filter_map(|(spot, entries)| self.rule(spot, entries))
            .collect()
    }

    fn rule(&mut self, spot: Spot, entries: Vec<Entry>) -> Option<LinkRule> {
        let mut rule = LinkRule {
            spot,
            matches: Match::default(),
            bundle: Bundle::default(),
            children: Vec::new(),
        };
        let mut has_match = false;
        for entry in entries {
            match entry.key.as_str() {
                words::MATCH => {
                    has_match = true;
                    rule.matches = self.matches(entry);
                }
                words::CHILD => rule.children = self.children(entry),
                _ => self.bundle_entry(&mut rule.bundle, entry, "a rule", &words::OF_LINK),
            }
        }
        if !has_match {
            let help = "add match = { name = \"ib0\" }, or '*' for every interface";
            let found = self.at(spot, "this rule does not say which interfaces it is for");
            self.found.push(found.help(help));
            return None;
        }
        Some(rule)
    }

    fn children(&mut self, entry: Entry) -> Vec<ChildRule> {
        let tables = self.tables(entry, "[[link.child]] in TOML, '- pkey: 0x8001' in YAML");
        let mut children: Vec<ChildRule> = Vec::with_capacity(tables.len());
        let mut lines: HashMap<(u16, Option<String>), u32> = HashMap::new();
        for (spot, entries) in tables {
            let Some(child) = self.child(spot, entries) else {
                continue;
            };
            let name = child.name.as_ref().map(ToString::to_string);
            let identity = (child.pkey.partition(), name);
            if let Some(line) = lines.insert(identity, spot.line) {
                let message = format!("the rule has this child twice; line {line} has it, too");
                self.wrong(spot, message);
            }
            children.push(child);
        }
        children
    }

    fn child(&mut self, spot: Spot, entries: Vec<Entry>) -> Option<ChildRule> {
        let mut pkey = None;
        let mut child_pkey_seen = false;
        let mut kind = None;
        let mut name = None;
        let mut is_present = true;
        let mut bundle = Bundle::default();
        for entry in entries {
            match entry.key.as_str() {
                words::PKEY => {
                    child_pkey_seen = true;
                    let text = self.scalar(&entry, "a P_Key");
                    pkey = text.and_then(|text| self.parsed(&text, entry.value.spot));
                }
                words::KIND => kind = self.word(&entry, &ChildKind::ALL, ChildKind::name),
                words::NAME => {
                    let text = self.scalar(&entry, "a name");
                    name = text.and_then(|text| self.parsed(&text, entry.value.spot));
                    self.check_length(name.as_ref(), entry.value.spot);
                }
                words::PRESENT => is_present = self.boolean(&entry).unwrap_or(true),
                _ => self.bundle_entry(&mut bundle, entry, "a child", &words::OF_CHILD),
            }
        }
        if !child_pkey_seen {
            let found = self.at(spot, "this child has no P_Key");
            self.found.push(found.help("add pkey = 0x8001"));
        }
        let has_values = !bundle.settings.is_empty() || !bundle.profiles.is_empty();
        if !is_present && has_values {
            let found = self.at(
                spot,
                "this child shall not be there, and its values never count",
            );
            self.found
                .push(found.help("remove them, or 'present = false'").warning());
        }
        Some(ChildRule {
            spot,
            pkey: pkey?,
            kind,
            name,
            is_present,
            bundle,
        })
    }
}
