// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values into a TOML file that people write, too: comments, order and layout stay.

use std::sync::Arc;

use ibmgr_api::{Assignment, Declared, Match, Policy, Rule};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Key, Table, TableLike, Value};

use crate::diagnostic::Diagnostic;
use crate::store::{Source, Store};
use crate::{words, write};

/// Returns `text` with the values in the last rule that has exactly this match, or in a new one at the
/// end, which `comment` stands above.
///
/// # Errors
///
/// What is wrong with the file, or why it cannot be edited. Nothing is lost: the text is the caller's.
pub fn save(
    file: &str,
    text: &str,
    matches: &Match,
    comment: &str,
    values: &[Assignment],
) -> Result<String, Vec<Diagnostic>> {
    let name: Arc<str> = file.into();
    let cannot = |message: String| vec![Diagnostic::of_file(&name, message)];
    if [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| file.ends_with(ending))
    {
        return Err(cannot("only TOML files can be saved to".to_owned()));
    }
    let before = rules(file, text)?;
    // What cannot be parsed has just been refused.
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| cannot(format!("this is no TOML: {error}")))?;
    // Defaults stand in front of the rules of the file.
    let tables = document
        .get(words::LINK)
        .and_then(Item::as_array_of_tables)
        .map_or(0, ArrayOfTables::len);
    let first = before.len().saturating_sub(tables);
    let at = before
        .iter()
        .skip(first)
        .rposition(|rule| rule.matches == *matches);
    match at {
        Some(at) => {
            let links = document
                .get_mut(words::LINK)
                .and_then(Item::as_array_of_tables_mut);
            let Some(table) = links.and_then(|links| links.get_mut(at)) else {
                return Err(cannot(
                    "'link' is not written as [[link]], and cannot be edited".to_owned(),
                ));
            };
            for want in values {
                set(
                    table,
                    &write::parts(&want.key),
                    write::value(&want.key, &want.value),
                );
            }
        }
        None if !before.is_empty() && tables == 0 => {
            return Err(cannot(
                "'link' is not written as [[link]], and cannot be edited".to_owned(),
            ));
        }
        None => return appended(file, text, matches, comment, values),
    }
    let edited = document.to_string();
    check(file, &edited, matches, values, before.len())?;
    Ok(edited)
}

fn appended(
    file: &str,
    text: &str,
    matches: &Match,
    comment: &str,
    values: &[Assignment],
) -> Result<String, Vec<Diagnostic>> {
    let before = rules(file, text)?.len();
    let declared = |want: &Assignment| {
        let declared = Declared {
            value: want.value.clone(),
            policy: Policy::Heal,
            origin: ibmgr_api::Origin::whole(file),
        };
        (want.key.clone(), declared)
    };
    let rule = Rule {
        origin: ibmgr_api::Origin::whole(file),
        matches: matches.clone(),
        settings: values.iter().map(declared).collect(),
        children: Vec::new(),
    };
    let mut edited = text.to_owned();
    if !edited.is_empty() {
        if !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push('\n');
    }
    for line in comment.lines() {
        edited.push_str("# ");
        edited.extend(line.chars().filter(|c| !c.is_control()));
        edited.push('\n');
    }
    edited.push_str(&write::rule_to_toml(&rule));
    let defaults = rules(file, &edited)?.len().saturating_sub(before + 1);
    check(file, &edited, matches, values, before + defaults + 1)?;
    Ok(edited)
}

/// Returns the rules of a text. A profile of another file is no mistake here.
fn rules(file: &str, text: &str) -> Result<Vec<Rule>, Vec<Diagnostic>> {
    let source = Source {
        file: file.into(),
        content: Ok(text.as_bytes().to_vec()),
    };
    let loaded = Store::new().load_alone(source);
    let errors: Vec<Diagnostic> = loaded
        .diagnostics
        .into_iter()
        .filter(Diagnostic::is_error)
        .collect();
    if errors.is_empty() {
        Ok(loaded.desired.rules)
    } else {
        Err(errors)
    }
}

/// Sees that the edited text declares what it should.
fn check(
    file: &str,
    text: &str,
    matches: &Match,
    values: &[Assignment],
    count: usize,
) -> Result<(), Vec<Diagnostic>> {
    let rules = rules(file, text)?;
    let rule = rules.iter().rfind(|rule| rule.matches == *matches);
    let has = |want: &Assignment| {
        let declared = rule.and_then(|rule| rule.settings.get(&want.key));
        declared.is_some_and(|declared| declared.value == want.value)
    };
    if rules.len() == count && values.iter().all(has) {
        return Ok(());
    }
    let message = "the file is written in a way that cannot be edited; edit it by hand".to_owned();
    Err(vec![Diagnostic::of_file(&file.into(), message)])
}

/// Sets the value below `parts`, however its tables are written.
fn set(table: &mut dyn TableLike, parts: &[String], value: Value) {
    // `"ring.rx" = 5` is a name of one part.
    let whole = parts.join(".");
    if parts.len() > 1 && table.contains_key(&whole) {
        return set(table, &[whole], value);
    }
    let [first, rest @ ..] = parts else {
        return;
    };
    if rest.is_empty() {
        match table.get_mut(first) {
            Some(item) => replace(item, value),
            None => {
                table.insert(first, Item::Value(value));
            }
        }
        return;
    }
    if !table.contains_key(first) {
        let mut inner = Table::new();
        inner.set_dotted(true);
        let key = Key::new(first);
        table.entry_format(&key).or_insert(Item::Table(inner));
    }
    if let Some(inner) = table.get_mut(first).and_then(Item::as_table_like_mut) {
        set(inner, rest, value);
    }
}

/// Replaces a value, or the value beside a policy; the blanks and the comment around it stay.
fn replace(item: &mut Item, mut value: Value) {
    if let Some(table) = item.as_table_like_mut() {
        if let Some(inner) = table.get_mut(words::VALUE) {
            replace(inner, value);
        }
        return;
    }
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}
