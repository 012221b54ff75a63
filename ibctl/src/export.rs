// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `export`: the present state as a file that plans nothing.

use std::collections::BTreeMap;
use std::io::Write;

use ibmgr_api::{
    Child, Declared, Desired, Key, Link, LinkName, Origin, Policy, Reading, Rule, Support, Value,
};
use ibmgrd_config::{match_for, rule_to_toml, to_json};
use ibmgrd_engine::{Keys, Port, Query};

use crate::cli::Format;
use crate::error::Error;
use crate::text::plain;
use crate::write_json;

/// Prints interfaces as a file: those that are named, or all IPoIB interfaces. JSON has the same form, and
/// can be read as a file, too.
pub(crate) fn export<P: Port>(
    port: &mut P,
    names: &[LinkName],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let all = port.observe_all(&Query {
        keys: Keys::Identity,
        via: None,
    })?;
    let mut chosen: Vec<Link> = Vec::new();
    let ipoib = || {
        all.iter()
            .filter(|link| link.is_ipoib() && link.pkey.is_some())
    };
    let names: Vec<LinkName> = if names.is_empty() {
        ipoib().map(|link| link.name.clone()).collect()
    } else {
        names.to_vec()
    };
    for name in &names {
        let query = Query {
            keys: Keys::All,
            via: None,
        };
        let link = port.observe(name, &query)?;
        if !chosen.iter().any(|other| other.index == link.index) {
            chosen.push(link);
        }
    }
    chosen.sort_by_key(|link| (link.is_child(), link.index));
    let exported: Vec<Exported> = chosen
        .iter()
        .filter(|link| parent(link, &chosen).is_none())
        .map(|link| rule(link, &chosen, &all))
        .collect();
    if format == Format::Json {
        let rules = exported.into_iter().map(|one| one.rule).collect();
        return write_json(out, &to_json(&Desired { rules }));
    }
    for (at, one) in exported.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        for line in &one.comments {
            writeln!(out, "# {}", plain(line))?;
        }
        write!(out, "{}", rule_to_toml(&one.rule))?;
    }
    if exported.is_empty() {
        writeln!(
            out,
            "# there is no IPoIB interface; name others to export them"
        )?;
    }
    Ok(())
}

struct Exported {
    rule: Rule,
    comments: Vec<String>,
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
