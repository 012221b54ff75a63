// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declarations to TOML texts that read as the same.

use std::fmt::Write as _;

use ibmgr_api::{Child, Declared, Desired, Domain, Key, Link, Match, Policy, Rule, Value};
use toml_edit::Key as TomlKey;
use toml_edit::Value as TomlValue;

use crate::words;

/// Returns the text of a file that declares the same, but for where it stands.
#[must_use]
pub fn to_toml(desired: &Desired) -> String {
    let rules: Vec<String> = desired.rules.iter().map(rule_to_toml).collect();
    rules.join("\n")
}

/// Returns the text of one rule, with a newline at its end.
#[must_use]
pub fn rule_to_toml(rule: &Rule) -> String {
    let mut text = String::new();
    line(&mut text, &format!("[[{}]]", words::LINK));
    line(
        &mut text,
        &format!("{} = {}", words::MATCH, match_to_toml(&rule.matches)),
    );
    for (key, declared) in &rule.settings {
        line(&mut text, &setting(key, declared, Policy::Heal));
    }
    for child in &rule.children {
        text.push('\n');
        text.push_str(&child_to_toml(child));
    }
    text
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

fn child_to_toml(child: &Child) -> String {
    let mut text = String::new();
    line(&mut text, &format!("[[{}.{}]]", words::LINK, words::CHILD));
    line(&mut text, &format!("{} = {}", words::PKEY, child.pkey));
    if let Some(name) = &child.name {
        line(
            &mut text,
            &format!("{} = {}", words::NAME, string(name.as_str())),
        );
    }
    if let Some(kind) = child.kind {
        line(
            &mut text,
            &format!("{} = {}", words::KIND, string(kind.name())),
        );
    }
    if !child.is_present {
        line(&mut text, &format!("{} = false", words::PRESENT));
    }
    if child.policy != Policy::Heal {
        line(
            &mut text,
            &format!("{} = {}", words::POLICY, string(child.policy.name())),
        );
    }
    for (key, declared) in &child.settings {
        line(&mut text, &setting(key, declared, child.policy));
    }
    text
}

/// Returns an assignment; `policy` is what counts without one of its own.
fn setting(key: &Key, declared: &Declared, policy: Policy) -> String {
    let value = value_to_toml(key, &declared.value);
    let path = path(key).join(".");
    if declared.policy == policy {
        format!("{path} = {value}")
    } else {
        let policy = string(declared.policy.name());
        format!(
            "{path} = {{ {} = {value}, {} = {policy} }}",
            words::VALUE,
            words::POLICY
        )
    }
}

/// Returns the parts of a knob's name, quoted where they must be.
fn path(key: &Key) -> Vec<String> {
    parts(key)
        .iter()
        .map(|part| TomlKey::new(part).to_string())
        .collect()
}

/// Returns the parts of a knob's name as tables of a file have them.
pub(crate) fn parts(key: &Key) -> Vec<String> {
    let mut parts: Vec<String> = key.knob().name.split('.').map(str::to_owned).collect();
    parts.extend(key.member().map(str::to_owned));
    parts
}

/// Returns a value as TOML has it: numbers plain where they fit, all else quoted.
pub(crate) fn value(key: &Key, value: &Value) -> TomlValue {
    let domain = &key.knob().domain;
    let number = match (domain, value) {
        (Domain::Number { .. }, Value::Number(number)) => i64::try_from(*number).ok(),
        _ => None,
    };
    number.map_or_else(|| TomlValue::from(value.show(domain)), TomlValue::from)
}

fn value_to_toml(key: &Key, declared: &Value) -> String {
    value(key, declared).to_string()
}

fn string(text: &str) -> String {
    TomlValue::from(text).to_string()
}

fn match_to_toml(matches: &Match) -> String {
    let mut conditions: Vec<String> = Vec::new();
    let mut add = |word: &str, texts: Vec<String>| match texts.as_slice() {
        [] => {}
        [one] => conditions.push(format!("{word} = {}", string(one))),
        many => {
            let many: Vec<String> = many.iter().map(|text| string(text)).collect();
            conditions.push(format!("{word} = [{}]", many.join(", ")));
        }
    };
    add(words::NAME, texts(&matches.name));
    add(words::DRIVER, texts(&matches.driver));
    add(words::PATH, texts(&matches.path));
    add(words::GUID, texts(&matches.guid));
    add(words::PKEY, texts(&matches.pkey));
    add(words::PARENT, texts(&matches.parent));
    add(words::KIND, texts(&matches.kind));
    if let Some(is_child) = matches.is_child {
        conditions.push(format!("{} = {is_child}", words::CHILD));
    }
    if conditions.is_empty() {
        return "{}".to_owned();
    }
    format!("{{ {} }}", conditions.join(", "))
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// Returns what picks `link` and no other of `links`, by what stays longest: the port GUID, with the
/// P_Key for a child, or else the name.
#[must_use]
pub fn match_for(link: &Link, links: &[Link]) -> Match {
    let by_name = Match {
        name: vec![ibmgr_api::Glob::literal(link.name.as_str())],
        ..Match::default()
    };
    let Some(guid) = link.guid().filter(|guid| guid.0 != [0; 8]) else {
        return by_name;
    };
    let by_guid = Match {
        guid: vec![guid],
        pkey: link.pkey.filter(|_| link.is_child()).into_iter().collect(),
        is_child: link.is_child().then_some(true),
        ..Match::default()
    };
    let is_exact = links
        .iter()
        .all(|other| by_guid.takes(other) == (other.index == link.index));
    if is_exact { by_guid } else { by_name }
}
