// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading texts, and rules in one line each.

use ibmgr_api::{Desired, Rule};
use ibmgrd_config::{Loaded, Source, Store};

pub(crate) fn source(file: &str, text: &str) -> Source {
    Source {
        file: file.into(),
        content: Ok(text.as_bytes().to_vec()),
    }
}

pub(crate) fn load(files: &[(&str, &str)]) -> Loaded {
    let sources = files.iter().map(|(file, text)| source(file, text));
    Store::new().load(sources.collect())
}

/// Returns what a right file declares.
#[track_caller]
pub(crate) fn desired(file: &str, text: &str) -> Desired {
    let loaded = load(&[(file, text)]);
    let told: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    loaded.desired
}

/// Returns what is said of one file, as `line:column: message | help`.
pub(crate) fn findings(file: &str, text: &str) -> Vec<String> {
    let loaded = load(&[(file, text)]);
    let found = loaded.diagnostics.iter().map(|found| {
        let help = found.help.as_ref().map(|help| format!(" | {help}"));
        let (line, column) = (found.origin.line, found.origin.column);
        format!(
            "{line}:{column}: {}{}",
            found.message,
            help.unwrap_or_default()
        )
    });
    found.collect()
}

/// Returns a rule's values and children in one line.
pub(crate) fn values(rule: &Rule) -> String {
    let mut words: Vec<String> = Vec::new();
    for (key, declared) in &rule.settings {
        let value = declared.value.show(&key.knob().domain);
        words.push(format!("{key}={value} {}", declared.policy.name()));
    }
    for child in &rule.children {
        let kind = child.kind.map_or("any", |kind| kind.name());
        let name = child.name.as_ref().map_or("-", |name| name.as_str());
        let is = if child.is_present { "there" } else { "gone" };
        let policy = child.policy.name();
        words.push(format!("[{} {kind} {name} {is} {policy}]", child.pkey));
        for (key, declared) in &child.settings {
            let value = declared.value.show(&key.knob().domain);
            words.push(format!("+{key}={value} {}", declared.policy.name()));
        }
    }
    words.join(", ")
}
