// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON Schema of files, from the registry and the words of the format: for editors that complete
//! and check YAML and TOML.

use ibmgr_api::{ChildKind, Domain, Knob, Policy, Unit, registry};
use serde_json::{Map, Value as Json, json};

use crate::words;

/// Returns the schema, draft 2020-12.
///
/// What it takes, the reader takes. The reader takes some spellings more, such as a number as a text
/// for a text, and sees what no schema does: patterns, ranges of times, names of profiles.
#[must_use]
pub fn schema() -> Json {
    let mut definitions = Map::new();
    for knob in registry::knobs() {
        definitions.insert(definition_name(knob), definition(knob));
    }
    definitions.insert("policy".to_owned(), policy());
    definitions.insert("match".to_owned(), matches());
    definitions.insert("pkey".to_owned(), pkey());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ibmgr configuration file",
        "description": "What network interfaces shall be: values of knobs, and P_Key children.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            (words::DEFAULTS): bundle(
                "Values for the interfaces of this file's rules, unless a rule has others.",
                &[words::PROFILE, words::POLICY],
                &[],
            ),
            (words::PROFILE): {
                "description": "Named values that rules and children of any file use.",
                "type": "object",
                "additionalProperties": bundle("Values under one name.", &words::OF_PROFILE, &[]),
            },
            (words::LINK): {
                "description": "Rules. A later one wins, knob by knob.",
                "type": "array",
                "items": bundle("Values for the interfaces of a match.", &words::OF_LINK, &[words::MATCH]),
            },
        },
        "$defs": definitions,
    })
}

fn definition_name(knob: &Knob) -> String {
    format!("knob-{}", knob.name)
}

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a table with values: all knobs, and the words of the format that it may have.
fn bundle(description: &str, words: &[&str], required: &[&str]) -> Json {
    let mut properties = Map::new();
    let mut patterns = Map::new();
    for word in words {
        properties.insert((*word).to_owned(), of_word(word));
    }
    for knob in registry::knobs() {
        let value = reference(&definition_name(knob));
        if knob.is_family {
            let pattern = format!("^{}\\..+$", knob.name.replace('.', "\\."));
            patterns.insert(pattern, value.clone());
            let members = json!({ "type": "object", "additionalProperties": value });
            properties.insert(knob.name.to_owned(), members);
            continue;
        }
        properties.insert(knob.name.to_owned(), value.clone());
        // `ring.rx` as a table in a table.
        if let Some((first, rest)) = knob.name.split_once('.') {
            let table = properties.entry(first).or_insert_with(
                || json!({ "type": "object", "additionalProperties": false, "properties": {} }),
            );
            table["properties"][rest] = value;
        }
    }
    json!({
        "description": description,
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
        "patternProperties": patterns,
    })
}

fn of_word(word: &str) -> Json {
    match word {
        words::MATCH => reference("match"),
        words::POLICY => reference("policy"),
        words::PKEY => reference("pkey"),
        words::CHILD => json!({
            "description": "P_Key children of each of these interfaces.",
            "type": "array",
            "items": bundle("A P_Key child.", &words::OF_CHILD, &[words::PKEY]),
        }),
        words::PROFILE => json!({
            "description": "Profiles whose values come before the own ones.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" } },
            ],
        }),
        words::KIND => {
            let kinds = ChildKind::ALL.map(ChildKind::name);
            json!({ "description": "How the child is made; without it, either is right.", "enum": kinds })
        }
        words::NAME => json!({
            "description": "Name of the child; without it, any.",
            "type": "string",
            "minLength": 1,
            "maxLength": 15,
            "pattern": "^[^\\s/:]+$",
        }),
        words::PRESENT => json!({
            "description": "Whether the child shall be there.",
            "type": "boolean",
            "default": true,
        }),
        _ => json!(true),
    }
}

fn policy() -> Json {
    json!({
        "description": "What happens when somebody else changes a value: it is set again, reported, or neither.",
        "enum": Policy::ALL.map(Policy::name),
    })
}

fn pkey() -> Json {
    json!({
        "description": "P_Key; 0 and 0x8000 name no partition.",
        "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": 0xffff, "not": { "const": 0x8000 } },
            { "type": "string", "pattern": "^(0[xX][0-9a-fA-F]{1,4}|[0-9]{1,5})$" },
        ],
    })
}

fn matches() -> Json {
    let several = |description: &str, one: Json| {
        json!({
            "description": description,
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }],
        })
    };
    let pattern = || json!({ "type": "string", "minLength": 1 });
    let guid = json!({
        "type": "string",
        "pattern": "^(0x)?([0-9a-fA-F]{2}[:-]?){7}[0-9a-fA-F]{2}$",
    });
    json!({
        "description": "Which interfaces a rule is for. All conditions must hold, and of each one alternative.",
        "type": "object",
        "additionalProperties": false,
        "minProperties": 1,
        "properties": {
            (words::NAME): several("Name or alternative name; * ? [0-3] as in a shell.", pattern()),
            (words::DRIVER): several("Driver, as ethtool names it.", pattern()),
            (words::PATH): several("Path of the device below /sys.", pattern()),
            (words::GUID): several("Port GUID: the last 8 bytes of the address.", guid),
            (words::PKEY): several("Partition; the full-member bit is not compared.", reference("pkey")),
            (words::PARENT): several("Name of the interface below.", pattern()),
            (words::KIND): several("Kind, as the kernel names it, such as ipoib.", pattern()),
            (words::CHILD): { "description": "Whether it is a P_Key child.", "type": "boolean" },
        },
    })
}

/// Returns the schema of a knob's value, alone or beside a policy.
fn definition(knob: &Knob) -> Json {
    let value = value(&knob.domain);
    json!({
        "description": format!("{} {}", knob.summary, knob.details),
        "anyOf": [
            value,
            {
                "type": "object",
                "additionalProperties": false,
                "required": [words::VALUE],
                "properties": { (words::VALUE): value, (words::POLICY): reference("policy") },
            },
        ],
    })
}

fn value(domain: &Domain) -> Json {
    match domain {
        Domain::Choice(choices) => {
            let spellings = choices.iter().flat_map(|choice| {
                let names = std::iter::once(choice.name).chain(choice.aliases.iter().copied());
                names.flat_map(spelled)
            });
            json!({ "enum": spellings.collect::<Vec<Json>>() })
        }
        Domain::Number { unit, min, max } => {
            let suffix = match unit {
                Unit::Bytes => "( *(B|bytes|KiB|K|k|MiB|M))?",
                Unit::Frames => "( *frames)?",
                Unit::Count
                | Unit::PacketsPerSecond
                | Unit::Seconds
                | Unit::Microseconds
                | Unit::Nanoseconds => "",
            };
            json!({ "anyOf": [
                { "type": "integer", "minimum": min, "maximum": max },
                { "type": "string", "pattern": format!("^(0[xX][0-9a-fA-F]+|[0-9]+{suffix})$") },
            ] })
        }
        Domain::Duration { max, .. } => json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": max },
            { "type": "string", "pattern": "^(0[xX][0-9a-fA-F]+|[0-9]+ *(ns|us|\u{b5}s|\u{3bc}s|ms|s)?)$" },
        ] }),
        Domain::Cpus => json!({ "anyOf": [
            { "enum": ["local", "none"] },
            { "type": "string", "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$" },
            { "type": "integer", "minimum": 0, "maximum": 8191 },
        ] }),
        Domain::Text { max_len } => json!({ "type": "string", "maxLength": max_len }),
    }
}

/// Returns a spelling as each type that a file can write it in.
fn spelled(name: &str) -> Vec<Json> {
    let mut all = vec![json!(name)];
    match (name, name.parse::<u64>()) {
        ("true" | "false", _) => all.push(json!(name == "true")),
        (_, Ok(number)) => all.push(json!(number)),
        _ => {}
    }
    all
}
