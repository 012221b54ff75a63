// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of knobs, their policies, and the names of profiles.

use ibmgr_api::{Key, KeyError, Policy, Value, ValueError, registry};

use super::Reader;
use crate::model::{Bundle, Setting, Use};
use crate::text::Spot;
use crate::tree::{Body, Entry, Node};
use crate::words;

impl Reader<'_> {
    /// Reads a table of values. `words` are the keys that it may have besides knobs.
    pub(super) fn bundle(&mut self, entry: Entry, what: &str, words: &[&str]) -> Bundle {
        let mut bundle = Bundle::default();
        for entry in self.table(entry, what).unwrap_or_default() {
            self.bundle_entry(&mut bundle, entry, what, words);
        }
        bundle
    }

    pub(super) fn bundle_entry(
        &mut self,
        bundle: &mut Bundle,
        entry: Entry,
        what: &str,
        words: &[&str],
    ) {
        match entry.key.as_str() {
            words::POLICY => bundle.policy = self.policy(&entry),
            words::PROFILE if words.contains(&words::PROFILE) => {
                bundle.profiles = self.uses(&entry)
            }
            _ => self.setting(bundle, String::new(), entry, what, words),
        }
    }

    fn policy(&mut self, entry: &Entry) -> Option<Policy> {
        self.word(entry, &Policy::ALL, Policy::name)
    }

    fn uses(&mut self, entry: &Entry) -> Vec<Use> {
        let items = match &entry.value.body {
            Body::List(items) => items.as_slice(),
            Body::Nothing | Body::Scalar(_) | Body::Table(_) => std::slice::from_ref(&entry.value),
        };
        let mut uses = Vec::with_capacity(items.len());
        for item in items {
            match &item.body {
                Body::Scalar(name) => uses.push(Use {
                    name: name.clone(),
                    spot: item.spot,
                }),
                Body::Nothing | Body::List(_) | Body::Table(_) => {
                    let is = item.what();
                    self.wrong(
                        item.spot,
                        format!("'profile' is a name or a list of names, and this is {is}"),
                    );
                }
            }
        }
        uses
    }

    /// Reads a value. `ring.rx = 5` comes as a table in a table: `path` is what stands before.
    fn setting(
        &mut self,
        bundle: &mut Bundle,
        path: String,
        entry: Entry,
        what: &str,
        words: &[&str],
    ) {
        let name = if path.is_empty() {
            entry.key
        } else {
            format!("{path}.{}", entry.key)
        };
        let key: Key = match name.parse() {
            Ok(key) => key,
            Err(error) => {
                if let Body::Table(entries) = entry.value.body
                    && is_prefix(&name)
                {
                    for inner in entries {
                        self.setting(bundle, name.clone(), inner, what, words);
                    }
                } else {
                    self.unknown_knob(&name, entry.spot, &error, what, words);
                }
                return;
            }
        };
        let Some(setting) = self.value(&key, entry.spot, entry.value) else {
            return;
        };
        if let Some(first) = bundle.settings.insert(key, setting) {
            let message = format!(
                "{name} is given twice; line {} has it, too",
                first.spot.line
            );
            self.wrong(entry.spot, message);
        }
    }

    fn unknown_knob(
        &mut self,
        name: &str,
        spot: Spot,
        error: &KeyError,
        what: &str,
        words: &[&str],
    ) {
        let found = match error {
            KeyError::Member { .. } => self.at(spot, error.to_string()),
            _ => {
                let names = registry::knobs().map(|knob| knob.name);
                let near = self.nearest(name, names.chain(words.iter().copied()));
                let help = match near.first() {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => "'ibctl explain' lists the knobs".to_owned(),
                };
                let message = format!("{what} has no '{}'", name.escape_debug());
                self.at(spot, message).help(help)
            }
        };
        self.found.push(found);
    }

    /// Reads `2044`, or `{ value = 2044, policy = "report" }`.
    fn value(&mut self, key: &Key, spot: Spot, node: Node) -> Option<Setting> {
        let is = node.what();
        match node.body {
            Body::Scalar(text) => Some(Setting {
                value: self.scalar_value(key, &text, node.spot)?,
                policy: None,
                spot,
            }),
            Body::Table(entries) => {
                let (mut value, mut policy, mut has_value) = (None, None, false);
                for entry in entries {
                    match entry.key.as_str() {
                        words::VALUE => {
                            has_value = true;
                            let text = self.scalar(&entry, "a value");
                            value = text
                                .and_then(|text| self.scalar_value(key, &text, entry.value.spot));
                        }
                        words::POLICY => policy = self.policy(&entry),
                        _ => self.unknown_word(
                            &entry,
                            &key.to_string(),
                            &[words::VALUE, words::POLICY],
                        ),
                    }
                }
                if !has_value {
                    self.wrong(
                        spot,
                        format!("{key} has no value; write {{ value = …, policy = … }}"),
                    );
                }
                Some(Setting {
                    value: value?,
                    policy,
                    spot,
                })
            }
            Body::Nothing => {
                let found = self.at(spot, format!("{key} has no value"));
                self.found.push(found.help(key.knob().domain.expected()));
                None
            }
            Body::List(_) => {
                self.wrong(node.spot, format!("{key} has one value, and this is {is}"));
                None
            }
        }
    }

    fn scalar_value(&mut self, key: &Key, text: &str, spot: Spot) -> Option<Value> {
        match key.knob().domain.parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let help = match &error {
                    ValueError::NotAChoice { nearest, .. } => nearest
                        .first()
                        .map(|name| format!("did you mean '{name}'?")),
                    _ => None,
                };
                // The message names the nearest choice itself.
                let message = match (&error, &help) {
                    (ValueError::NotAChoice { text, names, .. }, _) => {
                        format!("{key}: '{}' is not one of {names}", text.escape_debug())
                    }
                    (error, _) => format!("{key}: {error}"),
                };
                let found = self.at(spot, message).maybe_help(help);
                self.found.push(found);
                None
            }
        }
    }
}

/// Says whether knobs are called `name.` and something.
fn is_prefix(name: &str) -> bool {
    registry::knobs().any(|knob| {
        let rest = knob.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.') || (knob.is_family && rest.is_empty()))
    })
}
