// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `explain`: what knobs are, from the registry, and whether a device takes them.

use std::io::{self, Write};

use ibmgr_api::{Key, KeyError, Knob, Link, LinkName, Reading, Support, registry};
use ibmgrd_engine::{Keys, Port, PortError, Query};
use serde::Serialize;

use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain, write_wrapped};
use crate::{show, write_json};

/// Width of the titles of an explanation.
const TITLES: usize = 10;

/// Prints a line for each knob.
pub(crate) fn list(format: Format, out: &mut dyn Write) -> Result<(), Error> {
    if format == Format::Json {
        return write_json(out, &registry::knobs().collect::<Vec<_>>());
    }
    let mut table = Table::indented(2);
    for (at, group) in registry::GROUPS.iter().enumerate() {
        if at > 0 {
            table.line("");
        }
        table.line(group.title);
        for knob in group.knobs {
            table.row([title(knob).into(), knob.summary.into()]);
        }
    }
    Ok(table.write(out)?)
}

/// Prints what a knob is.
pub(crate) fn knob(name: &str, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let (knob, _) = find(name)?;
    match format {
        Format::Json => write_json(out, knob),
        Format::Table => Ok(general(knob, out)?),
    }
}

#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    knob: &'a Knob,
    link: &'a Link,
}

/// Prints what a knob is, and what a device makes of it.
pub(crate) fn on_link<P: Port>(
    name: &str,
    link: &LinkName,
    open: &dyn Fn() -> Result<P, PortError>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (knob, key) = find(name)?;
    let query = match key {
        Some(key) => Query::named(vec![key]),
        // Only the device knows the members of a family.
        None => Query {
            keys: Keys::All,
            via: None,
        },
    };
    let mut link = open()?.observe(link, &query)?;
    link.readings.retain(|key, _| key.knob().name == knob.name);
    if format == Format::Json {
        return write_json(out, &Explained { knob, link: &link });
    }
    general(knob, out)?;
    writeln!(out)?;
    if knob.is_family && link.readings.len() != 1 {
        let mut table = Table::indented(2);
        table.line(format!("{} of {}:", knob.name, plain(link.name.as_str())));
        for (key, reading) in &link.readings {
            table.row(show::row(key, reading));
        }
        if link.readings.is_empty() {
            table.line("  none");
        }
        return Ok(table.write(out)?);
    }
    for (key, reading) in &link.readings {
        on_device(&link, key, reading, out)?;
    }
    Ok(())
}

/// Finds a row by its name, by the name of its family, or by a member of it.
fn find(name: &str) -> Result<(&'static Knob, Option<Key>), KeyError> {
    let row = registry::find(name).or_else(|| {
        let family = name.strip_suffix(".NAME")?;
        registry::find(family)
    });
    match row.filter(|knob| knob.is_family) {
        Some(family) => Ok((family, None)),
        None => name.parse().map(|key: Key| (key.knob(), Some(key))),
    }
}

fn title(knob: &Knob) -> String {
    if knob.is_family {
        format!("{}.NAME", knob.name)
    } else {
        knob.name.to_owned()
    }
}

fn general(knob: &Knob, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {}", title(knob), knob.summary)?;
    writeln!(out)?;
    let channels: Vec<_> = knob.carriers.iter().map(|c| c.channel().name()).collect();
    let mut line = |title: &str, text: &str| {
        let first = format!("{title:TITLES$}");
        write_wrapped(out, &first, TITLES, text)
    };
    line("values", &knob.domain.to_string())?;
    line("channels", &channels.join(", "))?;
    line("effect", knob.effect.sentence())?;
    if !knob.disturbs.is_empty() {
        line(
            "changes",
            &format!("{} along with it", knob.disturbs.join(", ")),
        )?;
    }
    writeln!(out)?;
    write_wrapped(out, "", 0, knob.details)
}

fn on_device(link: &Link, key: &Key, reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let domain = &key.knob().domain;
    let value = reading
        .value
        .as_ref()
        .map_or_else(|| "none".to_owned(), |value| value.show(domain));
    let via = reading
        .via
        .map_or_else(String::new, |via| format!(" (by {via})"));
    writeln!(out, "on {}", plain(link.name.as_str()))?;
    let mut line = |title: &str, text: &str| {
        let first = format!("  {title:TITLES$}");
        write_wrapped(out, &first, TITLES + 2, text)
    };
    line("knob", &key.to_string())?;
    line("value", &format!("{value}{via}"))?;
    let answer = match &reading.support {
        Support::Settable => "yes".to_owned(),
        Support::Fixed(why) => format!("no, it is fixed: {why}"),
        Support::StoredNoEffect(why) => format!("it is stored, but has no effect: {why}"),
        Support::Unsupported(why) => format!("no, it is not supported: {why}"),
    };
    line("settable", &answer)?;
    if let Some(limits) = reading.limits {
        let (min, max) = (limits.min, limits.max);
        let (min, max) = (domain.show_kernel(min), domain.show_kernel(max));
        line("limits", &format!("{min} to {max}"))?;
    }
    Ok(())
}
