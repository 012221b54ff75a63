// SPDX-License-Identifier: Apache-2.0 OR MIT
//! docs/reference/openapi.json is written from the types that the daemon sends and reads, and has the
//! paths that it answers.
//!
//! `UPDATE=1 cargo test -p ibmgrd --test openapi` rewrites it.

mod operations;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ibmgrd::http::ROUTES;
use serde_json::Value;

const FILE: &str = "../docs/reference/openapi.json";

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE)
}

#[test]
fn the_document_is_that_of_the_types() {
    let mut wanted = serde_json::to_string_pretty(&operations::document()).unwrap();
    wanted.push('\n');
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path(), &wanted).unwrap();
    }
    let present = fs::read_to_string(path()).unwrap();
    assert!(
        present == wanted,
        "{FILE} is not what the types say: run this test with UPDATE=1"
    );
}

#[test]
fn it_has_the_paths_that_are_answered() {
    let document = operations::document();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(|method| (path.clone(), method.clone()))
        })
        .collect();
    let answered: BTreeSet<(String, String)> = ROUTES
        .iter()
        .flat_map(|(path, methods)| {
            methods
                .iter()
                .map(|method| ((*path).to_owned(), (*method).to_owned()))
        })
        .collect();
    assert_eq!(documented, answered);
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, all: &Value, at: &str) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    let to = to.strip_prefix('#').expect("within the document");
                    assert!(all.pointer(to).is_some(), "{at} leads to {to}");
                }
                for (name, value) in map {
                    walk(value, all, &format!("{at}/{name}"));
                }
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, all, at)),
            _ => {}
        }
    }
    let document = operations::document();
    walk(&document, &document, "");
    for schema in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .values()
    {
        jsonschema::meta::validate(schema).expect("a schema");
    }
}
