// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules as a configuration file, with a comment on where each comes from.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use ibmgr_api::{Child, Declared, Desired, Domain, Key, Rule};
use ibmgrd_import::Format;

/// Writes a file.
pub(super) fn write(from: Format, desired: &Desired) -> String {
    let mut text = format!("# Imported by 'ibctl import --from {from}'.\n");
    for rule in &desired.rules {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n# {}", comment(&rule.origin.file));
        let _ = writeln!(text, "[[link]]\nmatch = {{ {} }}", conditions(rule));
        settings(&mut text, &rule.settings);
        for child in &rule.children {
            of_child(&mut text, child);
        }
    }
    text
}

fn of_child(text: &mut String, child: &Child) {
    let _ = writeln!(text, "\n# {}", comment(&child.origin.file));
    let _ = writeln!(text, "[[link.child]]\npkey = {}", child.pkey);
    if let Some(name) = &child.name {
        let _ = writeln!(text, "name = {}", quoted(name.as_str()));
    }
    if let Some(kind) = child.kind {
        let _ = writeln!(text, "kind = {}", quoted(kind.name()));
    }
    settings(text, &child.settings);
}

fn conditions(rule: &Rule) -> String {
    let matches = &rule.matches;
    let mut parts = Vec::new();
    let mut condition = |word: &str, values: Vec<String>| match &values[..] {
        [] => {}
        [one] => parts.push(format!("{word} = {}", quoted(one))),
        many => {
            let many: Vec<String> = many.iter().map(|value| quoted(value)).collect();
            parts.push(format!("{word} = [{}]", many.join(", ")));
        }
    };
    condition("name", texts(&matches.name));
    condition("driver", texts(&matches.driver));
    condition("path", texts(&matches.path));
    condition("guid", texts(&matches.guid));
    condition("pkey", texts(&matches.pkey));
    condition("parent", texts(&matches.parent));
    condition("kind", texts(&matches.kind));
    if let Some(is_child) = matches.is_child {
        parts.push(format!("child = {is_child}"));
    }
    parts.join(", ")
}

fn texts<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn settings(text: &mut String, settings: &BTreeMap<Key, Declared>) {
    for (key, declared) in settings {
        let domain = &key.knob().domain;
        let shown = declared.value.show(domain);
        let is_bare = matches!(domain, Domain::Number { .. });
        let value = if is_bare { shown } else { quoted(&shown) };
        let _ = writeln!(text, "{} = {value}", name(key));
    }
}

/// Returns the name of a knob as TOML has it: a member with a dot or the like in it takes quotes.
fn name(key: &Key) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match key.member() {
        Some(member) if !member.chars().all(is_bare) => {
            format!("{}.{}", key.knob().name, quoted(member))
        }
        Some(_) | None => key.to_string(),
    }
}

/// Returns a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a path that ends no comment.
fn comment(path: &str) -> String {
    path.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_toml() {
        assert_eq!(
            quoted("a \"b\" \\c\n\u{7f}"),
            "\"a \\\"b\\\" \\\\c\\u000A\\u007F\""
        );
        let key: Key = "private-flag.a.b".parse().unwrap();
        assert_eq!(name(&key), "private-flag.\"a.b\"");
        let key: Key = "feature.rx-udp_tunnel-port-offload".parse().unwrap();
        assert_eq!(name(&key), "feature.rx-udp_tunnel-port-offload");
    }
}
