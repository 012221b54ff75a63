// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The schema takes what the reader takes, and refuses what is wrong.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use ibmgrd_config::{Loaded, Source, Store, schema, to_json};
use jsonschema::Validator;
use serde_json::{Value, json};

const SAMPLES: [(&str, &str); 2] = [
    ("fabric.toml", include_str!("../samples/fabric.toml")),
    ("fabric.yaml", include_str!("../samples/fabric.yaml")),
];

fn validator() -> Validator {
    let schema = schema();
    jsonschema::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).expect("the schema can be used")
}

fn load(file: &str, text: &str) -> Loaded {
    let source = Source {
        file: file.into(),
        content: Ok(text.as_bytes().to_vec()),
    };
    Store::new().load(vec![source])
}

#[track_caller]
fn assert_valid(validator: &Validator, document: &Value) {
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}\n{document:#}", errors.join("\n"));
}

#[test]
fn the_samples_are_valid() {
    let validator = validator();
    for (file, text) in SAMPLES {
        if file.ends_with(".toml") {
            let document: Value = toml::from_str(text).expect("TOML");
            assert_valid(&validator, &document);
        }
        let loaded = load(file, text);
        assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
        assert_valid(&validator, &to_json(&loaded.desired));
    }
}

#[test]
fn a_json_document_reads_as_what_it_was_written_from() {
    for (file, text) in SAMPLES {
        let desired = load(file, text).desired;
        let document = to_json(&desired);
        let again = load("a.json", &document.to_string());
        assert_eq!(again.diagnostics, []);
        assert_eq!(to_json(&again.desired), document);
        assert_eq!(again.desired.rules.len(), desired.rules.len());
    }
}

#[test]
fn schema_and_reader_agree() {
    let validator = validator();
    let link = |rule: Value| json!({ "link": [rule] });
    let ib0 = |extra: Value| {
        let mut rule = json!({ "match": { "name": "ib0" } });
        let extra = extra.as_object().expect("a table").clone();
        rule.as_object_mut().expect("a table").extend(extra);
        link(rule)
    };
    let good = [
        json!({}),
        json!({ "link": [] }),
        ib0(json!({ "mtu": 2044 })),
        ib0(json!({ "mtu": "2KiB", "rx-usecs": "20us", "gro-flush-timeout": 0 })),
        ib0(json!({ "mode": "cm", "feature": { "rx-gro": true }, "feature.rx-lro": 0 })),
        ib0(json!({ "ring": { "rx": 5 }, "ring.tx": { "value": 6, "policy": "report" } })),
        ib0(json!({ "profile": [], "policy": "ignore", "alias": "" })),
        ib0(
            json!({ "child": [{ "pkey": "0x8001", "name": "a", "kind": "legacy", "present": false }] }),
        ),
        link(
            json!({ "match": { "guid": ["0002:c903:00ab:cdef"], "pkey": 0x8001, "child": true } }),
        ),
    ];
    let bad = [
        json!({ "links": [] }),
        json!({ "link": {} }),
        link(json!({ "mtu": 5 })),
        link(json!({ "match": {} })),
        link(json!({ "match": { "name": "" } })),
        link(json!({ "match": { "name": [] } })),
        link(json!({ "match": { "mac": "x" } })),
        link(json!({ "match": { "guid": "1:2" } })),
        link(json!({ "match": { "child": "yes" } })),
        ib0(json!({ "mut": 5 })),
        ib0(json!({ "mtu": -1 })),
        ib0(json!({ "mtu": "many" })),
        ib0(json!({ "mtu": [5] })),
        ib0(json!({ "mtu": { "policy": "heal" } })),
        ib0(json!({ "mtu": { "value": 5, "polcy": "heal" } })),
        ib0(json!({ "mode": "conected" })),
        ib0(json!({ "rx-usecs": "20 cm" })),
        ib0(json!({ "ring": { "rxx": 5 } })),
        ib0(json!({ "feature": true })),
        ib0(json!({ "policy": "hael" })),
        ib0(json!({ "child": [{ "mtu": 5 }] })),
        ib0(json!({ "child": [{ "pkey": 0x8000 }] })),
        ib0(json!({ "child": [{ "pkey": 1, "kind": "x" }] })),
        ib0(json!({ "child": [{ "pkey": 1, "name": "a/b" }] })),
    ];
    for document in good {
        assert_valid(&validator, &document);
        let loaded = load("a.json", &document.to_string());
        assert!(!loaded.has_errors(), "{document}: {:?}", loaded.diagnostics);
    }
    for document in bad {
        assert!(!validator.is_valid(&document), "{document}");
        let loaded = load("a.json", &document.to_string());
        assert!(loaded.has_errors(), "{document}");
    }
}
