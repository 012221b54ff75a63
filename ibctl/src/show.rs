// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `show`: a list of interfaces, or all of one.

use std::borrow::Cow;
use std::io::Write;

use ibmgr_api::{Key, Link, LinkName, Reading, Support, registry};
use ibmgrd_engine::{Keys, Port, Query};

use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain};
use crate::write_json;

/// Prints a line for each interface: IPoIB first, by name, then the others by index.
pub(crate) fn all<P: Port>(port: &mut P, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let columns: Vec<Key> = registry::knobs()
        .filter(|knob| knob.is_brief)
        .map(Key::of)
        .collect();
    let mut links = port.observe_all(&Query::named(columns.clone()))?;
    // A child's name follows its parent's; its index need not.
    links.sort_by(|a, b| match (a.is_ipoib(), b.is_ipoib()) {
        (true, true) => a.name.cmp(&b.name),
        (a, b) => b.cmp(&a),
    });
    if format == Format::Json {
        return write_json(out, &links);
    }
    let mut table = Table::default();
    let names = columns.iter().map(|key| key.knob().name.to_uppercase());
    table.row(
        ["NAME", "KIND", "DRIVER", "STATE"]
            .map(Cow::from)
            .into_iter()
            .chain(names.map(Cow::from))
            .chain(["PKEY", "GUID", "PARENT"].map(Cow::from)),
    );
    for link in &links {
        let values = columns.iter().map(|key| value(link.readings.get(key), key));
        let identity = [
            Cow::from(link.name.as_str()),
            link.kind.as_deref().unwrap_or_default().into(),
            link.driver.as_deref().unwrap_or_default().into(),
            state(link).into(),
        ];
        let fabric = [
            link.pkey.map(|pkey| pkey.to_string()).unwrap_or_default(),
            link.guid().map(|guid| guid.to_string()).unwrap_or_default(),
            parent(link),
        ];
        table.row(
            identity
                .into_iter()
                .chain(values)
                .chain(fabric.map(Cow::from)),
        );
    }
    table.drop_empty_columns();
    Ok(table.write(out)?)
}

/// Prints everything of one interface, knobs by group.
pub(crate) fn one<P: Port>(
    port: &mut P,
    name: &LinkName,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let query = Query {
        keys: Keys::All,
        via: None,
    };
    let link = port.observe(name, &query)?;
    if format == Format::Json {
        return write_json(out, &link);
    }
    identity(&link).write(out)?;
    for (title, readings) in groups(&link) {
        let mut table = Table::indented(2);
        table.line("");
        table.line(title);
        let mut summed = Summed::default();
        for (key, reading) in readings {
            match &reading.support {
                Support::Unsupported(why) => summed.add("not supported".into(), key, why),
                // A device has dozens of features that nobody can change.
                Support::Fixed(why) if key.knob().is_family => {
                    let label = format!("fixed {}", value(Some(reading), key));
                    summed.add(label, key, why);
                }
                Support::Settable | Support::Fixed(_) | Support::StoredNoEffect(_) => {
                    table.row(row(key, reading));
                }
            }
        }
        for (label, why, keys) in summed.0 {
            table.wrapped(format!("{label} ({why}): {}", keys.join(", ")));
        }
        table.write(out)?;
    }
    Ok(())
}

fn identity(link: &Link) -> Table<'_> {
    let mut table = Table::indented(2);
    let kind = link.kind.as_deref().unwrap_or("no kind");
    let driver = link.driver.as_deref().unwrap_or("none");
    table.line(format!(
        "{}: {kind}, driver {driver}, index {}",
        plain(link.name.as_str()),
        link.index
    ));
    table.row(["state".into(), state(link).into()]);
    let mut optional = |title: &'static str, text: Option<String>| {
        if let Some(text) = text {
            table.row([title.into(), text.into()]);
        }
    };
    optional("address", link.address_text());
    optional("guid", link.guid().map(|guid| guid.to_string()));
    optional(
        "pkey",
        link.pkey.map(|pkey| {
            let member = if pkey.is_full_member() {
                "full"
            } else {
                "limited"
            };
            format!("{pkey} ({member} member)")
        }),
    );
    optional("parent", Some(parent(link)).filter(|text| !text.is_empty()));
    let names = Some(link.alt_names.join(" ")).filter(|names| !names.is_empty());
    optional("altnames", names);
    table
}

/// Returns the readings by the registry's groups, in its order; groups without any are left out.
pub(crate) fn groups(link: &Link) -> impl Iterator<Item = (&'static str, Vec<(&Key, &Reading)>)> {
    registry::GROUPS.iter().filter_map(|group| {
        let readings: Vec<_> = group
            .knobs
            .iter()
            .flat_map(|knob| {
                let of_row = |(key, _): &(&Key, &Reading)| key.knob().name == knob.name;
                link.readings.iter().filter(of_row)
            })
            .collect();
        (!readings.is_empty()).then_some((group.title, readings))
    })
}

/// Knobs that share a line: what holds of them, why, and their names.
#[derive(Default)]
struct Summed<'a>(Vec<(String, &'a str, Vec<String>)>);

impl<'a> Summed<'a> {
    fn add(&mut self, label: String, key: &Key, why: &'a str) {
        let same = |(other, reason, _): &&mut (String, &str, Vec<String>)| {
            *other == label && *reason == why
        };
        match self.0.iter_mut().find(same) {
            Some((_, _, keys)) => keys.push(key.to_string()),
            None => self.0.push((label, why, vec![key.to_string()])),
        }
    }
}

/// Returns knob, value, support, channel and note.
pub(crate) fn row<'a>(key: &Key, reading: &'a Reading) -> [Cow<'a, str>; 5] {
    [
        key.to_string().into(),
        value(Some(reading), key),
        reading.support.name().into(),
        reading.via.map_or("", |via| via.name()).into(),
        note(key, reading),
    ]
}

/// Returns why a knob is not settable, or what the device takes.
pub(crate) fn note<'a>(key: &Key, reading: &'a Reading) -> Cow<'a, str> {
    if let Some(why) = reading.support.why() {
        return why.into();
    }
    reading.limits.map_or_else(Cow::default, |limits| {
        let domain = &key.knob().domain;
        let (min, max) = (limits.min, limits.max);
        format!(
            "takes {} to {}",
            domain.show_kernel(min),
            domain.show_kernel(max)
        )
        .into()
    })
}

fn value<'a>(reading: Option<&Reading>, key: &Key) -> Cow<'a, str> {
    let value = reading.and_then(|reading| reading.value.as_ref());
    value
        .map(|value| value.show(&key.knob().domain))
        .unwrap_or_default()
        .into()
}

fn state(link: &Link) -> &'static str {
    match (link.is_up, link.has_carrier) {
        (false, _) => "down",
        (true, false) => "no-carrier",
        (true, true) => "up",
    }
}

fn parent(link: &Link) -> String {
    match (&link.parent_name, link.parent) {
        (Some(name), _) => name.to_string(),
        // The interface below is in another network namespace.
        (None, Some(index)) => format!("if{index}"),
        (None, None) => String::new(),
    }
}
