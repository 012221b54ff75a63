// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TOML texts to trees.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;
use crate::text::{Spot, Text};
use crate::tree::{Body, DEPTH_MAX, Entry, Node};

/// Reads a text. What can be read comes with what is wrong with the rest.
pub(crate) fn read(text: &Text, found: &mut Vec<Diagnostic>) -> Node {
    let (table, errors) = DeTable::parse_recoverable(text.as_str());
    for error in errors {
        let spot = text.spot(error.span().unwrap_or(0..0));
        let message = format!("this is no TOML: {}", error.message().trim_end());
        found.push(Diagnostic::at(text, spot, message));
    }
    let spot = text.spot(0..0);
    Reader { text, found }.table(table.get_ref(), spot, 0)
}

struct Reader<'a> {
    text: &'a Text,
    found: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, spot: Spot, depth: usize) -> Node {
        let mut entries: Vec<Entry> = Vec::with_capacity(table.len());
        for (key, value) in table {
            entries.push(Entry {
                key: key.get_ref().clone().into_owned(),
                spot: self.text.spot(key.span()),
                value: self.value(value, depth + 1),
            });
        }
        // The parser sorts by name; people read from the top.
        entries.sort_by_key(|entry| (entry.spot.line, entry.spot.column));
        Node {
            spot,
            body: Body::Table(entries),
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Node {
        let spot = self.text.spot(value.span());
        if depth > DEPTH_MAX {
            let message = format!("this is nested more than {DEPTH_MAX} levels deep");
            self.found.push(Diagnostic::at(self.text, spot, message));
            let body = Body::Nothing;
            return Node { spot, body };
        }
        let body = match value.get_ref() {
            DeValue::String(text) => Body::Scalar(text.clone().into_owned()),
            DeValue::Integer(number) => Body::Scalar(number.to_string()),
            DeValue::Float(number) => Body::Scalar(number.to_string()),
            DeValue::Boolean(is_on) => Body::Scalar(is_on.to_string()),
            DeValue::Datetime(time) => Body::Scalar(time.to_string()),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.value(item, depth + 1));
                Body::List(items.collect())
            }
            DeValue::Table(table) => return self.table(table, spot, depth),
        };
        Node { spot, body }
    }
}
