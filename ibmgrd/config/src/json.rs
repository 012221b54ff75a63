// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declarations as a JSON document in the form of the files, which read it as they read YAML.

use std::collections::BTreeMap;

use ibmgr_api::{Child, Declared, Desired, Domain, Key, Match, Policy, Rule, Value};
use serde_json::{Map, Value as Json, json};

use crate::words;

/// Returns a document that declares the same, but for where it stands.
#[must_use]
pub fn to_json(desired: &Desired) -> Json {
    let rules: Vec<Json> = desired.rules.iter().map(rule).collect();
    json!({ (words::LINK): rules })
}

fn rule(rule: &Rule) -> Json {
    let mut form = Map::new();
    form.insert(words::MATCH.to_owned(), matches(&rule.matches));
    settings(&mut form, &rule.settings, Policy::Heal);
    if !rule.children.is_empty() {
        let children: Vec<Json> = rule.children.iter().map(child).collect();
        form.insert(words::CHILD.to_owned(), json!(children));
    }
    Json::Object(form)
}

fn child(child: &Child) -> Json {
    let mut form = Map::new();
    form.insert(words::PKEY.to_owned(), json!(child.pkey));
    if let Some(name) = &child.name {
        form.insert(words::NAME.to_owned(), json!(name));
    }
    if let Some(kind) = child.kind {
        form.insert(words::KIND.to_owned(), json!(kind));
    }
    if !child.is_present {
        form.insert(words::PRESENT.to_owned(), json!(false));
    }
    if child.policy != Policy::Heal {
        form.insert(words::POLICY.to_owned(), json!(child.policy));
    }
    settings(&mut form, &child.settings, child.policy);
    Json::Object(form)
}

fn settings(form: &mut Map<String, Json>, settings: &BTreeMap<Key, Declared>, policy: Policy) {
    for (key, declared) in settings {
        let value = value(key, &declared.value);
        let value = if declared.policy == policy {
            value
        } else {
            json!({ (words::VALUE): value, (words::POLICY): declared.policy })
        };
        form.insert(key.to_string(), value);
    }
}

fn value(key: &Key, value: &Value) -> Json {
    let domain = &key.knob().domain;
    match (domain, value) {
        (Domain::Number { .. }, Value::Number(number)) => json!(number),
        _ => json!(value.show(domain)),
    }
}

fn matches(matches: &Match) -> Json {
    let mut form = Map::new();
    let mut add = |word: &str, values: Vec<Json>| match values.as_slice() {
        [] => {}
        [one] => {
            form.insert(word.to_owned(), one.clone());
        }
        _ => {
            form.insert(word.to_owned(), json!(values));
        }
    };
    let globs = |globs: &[ibmgr_api::Glob]| globs.iter().map(|glob| json!(glob)).collect();
    add(words::NAME, globs(&matches.name));
    add(words::DRIVER, globs(&matches.driver));
    add(words::PATH, globs(&matches.path));
    add(
        words::GUID,
        matches.guid.iter().map(|guid| json!(guid)).collect(),
    );
    add(
        words::PKEY,
        matches.pkey.iter().map(|pkey| json!(pkey)).collect(),
    );
    add(words::PARENT, globs(&matches.parent));
    add(words::KIND, globs(&matches.kind));
    add(
        words::CHILD,
        matches
            .is_child
            .iter()
            .map(|is_child| json!(is_child))
            .collect(),
    );
    Json::Object(form)
}
