// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The present state as declarations that plan to nothing.

use std::collections::BTreeMap;

use ibmgr_api::{
    Child, Declared, Desired, Key, Link, Origin, Policy, Reading, Rule, Support, Value,
};
use serde_json::Value as Json;

use crate::json::to_json;
use crate::write::{match_for, rule_to_toml};

/// The declaration of one interface, with its children, as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exported {
    /// The declaration.
    pub rule: Rule,
    /// What it is, and what could not be declared and why.
    pub comments: Vec<String>,
}

/// Returns declarations of `links`, which hold readings of everything; `all` are the interfaces of the
/// host, which they must be told from. Children stand with their parent, if it is among them.
#[must_use]
pub fn export(mut links: Vec<Link>, all: &[Link]) -> Vec<Exported> {
    links.sort_by_key(|link| (link.is_child(), link.index));
    links.dedup_by_key(|link| link.index);
    let roots = links.iter().filter(|link| parent(link, &links).is_none());
    roots.map(|link| rule(link, &links, all)).collect()
}

/// Writes declarations as a file, with their comments. Characters that would steer a terminal are
/// escaped in these.
#[must_use]
pub fn exported_to_toml(exported: &[Exported]) -> String {
    let mut text = String::new();
    for (at, one) in exported.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        for line in &one.comments {
            text.push_str("# ");
            for c in line.chars() {
                if is_steering(c) {
                    text.extend(c.escape_default());
                } else {
                    text.push(c);
                }
            }
            text.push('\n');
        }
        text.push_str(&rule_to_toml(&one.rule));
    }
    if exported.is_empty() {
        text.push_str("# there is no IPoIB interface; name others to export them\n");
    }
    text
}

/// Returns declarations as JSON, which can be read as a file, too.
#[must_use]
pub fn exported_to_json(exported: &[Exported]) -> Json {
    let rules = exported.iter().map(|one| one.rule.clone()).collect();
    to_json(&Desired { rules })
}

fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the chosen interface that `link` is a child of.
fn parent<'a>(link: &Link, chosen: &'a [Link]) -> Option<&'a Link> {
    let index = link.parent.filter(|_| link.is_child())?;
    chosen.iter().find(|other| other.index == index)
}

fn rule(link: &Link, chosen: &[Link], all: &[Link]) -> Exported {
    let mut comments = vec![title(link)];
    let settings = settings(link, &mut comments);
    let mut children = Vec::new();
    for child in chosen
        .iter()
        .filter(|child| child.is_child() && child.parent == Some(link.index))
    {
        let Some(pkey) = child.pkey else {
            continue;
        };
        comments.push(title(child));
        children.push(Child {
            pkey,
            kind: child.child_kind,
            name: Some(child.name.clone()),
            is_present: true,
            policy: Policy::Heal,
            origin: here(),
            settings: self::settings(child, &mut comments),
        });
    }
    let rule = Rule {
        origin: here(),
        matches: match_for(link, all),
        settings,
        children,
    };
    Exported { rule, comments }
}

fn title(link: &Link) -> String {
    let kind = link.kind.as_deref().unwrap_or("no kind");
    let driver = link.driver.as_deref().unwrap_or("none");
    format!("{}: {kind}, driver {driver}", link.name)
}

fn here() -> Origin {
    Origin::whole("export")
}

/// Returns what can be set; a comment tells what is there besides.
fn settings(link: &Link, comments: &mut Vec<String>) -> BTreeMap<Key, Declared> {
    let mut settings = BTreeMap::new();
    for (key, reading) in &link.readings {
        match value(key, reading) {
            Ok(Some(value)) => {
                let declared = Declared {
                    value,
                    policy: Policy::Heal,
                    origin: here(),
                };
                settings.insert(key.clone(), declared);
            }
            Ok(None) => {}
            Err(why) => comments.push(format!("  {key} is left out: {why}")),
        }
    }
    settings
}

/// Returns the value that a file can declare, or why it cannot.
fn value(key: &Key, reading: &Reading) -> Result<Option<Value>, String> {
    let domain = &key.knob().domain;
    match (&reading.support, &reading.value) {
        (Support::Fixed(_) | Support::Unsupported(_), _) => Ok(None),
        (Support::StoredNoEffect(why), Some(value)) => Err(format!(
            "it is {}, without effect: {why}",
            value.show(domain)
        )),
        (Support::StoredNoEffect(_), None) => Ok(None),
        (Support::Settable, None) => Err("its parts differ".to_owned()),
        (Support::Settable, Some(value)) => {
            let text = value.show(domain);
            match domain.parse(&text) {
                Ok(again) if again == *value => Ok(Some(again)),
                _ => Err(format!("'{}' can't be declared", text.escape_debug())),
            }
        }
    }
}
