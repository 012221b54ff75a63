// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `get`: present values.

use std::io::Write;

use ibmgr_api::{Channel, Key, Link, LinkName, Reading, Support};
use ibmgrd_engine::{Keys, Port, PortError, Query};

use crate::cli::Format;
use crate::error::Error;
use crate::text::Table;
use crate::{show, write_json};

/// Prints `keys`, or all that the interface has when there are none.
///
/// # Errors
///
/// A knob that was named is not supported: the others are printed all the same.
pub(crate) fn get<P: Port>(
    port: &mut P,
    name: &LinkName,
    keys: Vec<Key>,
    via: Option<Channel>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if let Some(channel) = via {
        for key in &keys {
            ibmgrd_engine::carrier_on(key, channel)?;
        }
    }
    let query = Query {
        keys: if keys.is_empty() {
            Keys::All
        } else {
            Keys::Named(keys.clone())
        },
        via,
    };
    let link = port.observe(name, &query)?;
    match format {
        Format::Json => write_json(out, &link)?,
        Format::Table => table(&link, &keys).write(out)?,
    }
    let absent = keys.iter().find_map(|key| {
        let why = unsupported(link.readings.get(key)?)?;
        Some(PortError::Unsupported {
            link: link.name.clone(),
            key: key.clone(),
            why: why.to_owned(),
        })
    });
    absent.map_or(Ok(()), |error| Err(Error::Port(error)))
}

fn table<'a>(link: &'a Link, keys: &[Key]) -> Table<'a> {
    let mut table = Table::default();
    table.row(["KNOB", "VALUE", "SUPPORT", "VIA", "NOTE"].map(Into::into));
    if keys.is_empty() {
        let readings = show::groups(link).flat_map(|(_, readings)| readings);
        for (key, reading) in readings.filter(|(_, reading)| unsupported(reading).is_none()) {
            table.row(show::row(key, reading));
        }
    }
    for key in keys {
        if let Some(reading) = link.readings.get(key) {
            table.row(show::row(key, reading));
        }
    }
    table
}

fn unsupported(reading: &Reading) -> Option<&str> {
    match &reading.support {
        Support::Unsupported(why) => Some(why),
        Support::Settable | Support::Fixed(_) | Support::StoredNoEffect(_) => None,
    }
}
