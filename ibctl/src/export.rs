// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `export`: the present state as a file that plans nothing.

use std::io::Write;

use ibmgr_api::LinkName;
use ibmgrd_config::{exported_to_json, exported_to_toml};
use ibmgrd_engine::{Port, Whole, observe_whole};

use crate::cli::Format;
use crate::error::Error;
use crate::write_json;

/// Prints interfaces as a file: those that are named, or all IPoIB interfaces. JSON has the same form, and
/// can be read as a file, too.
pub(crate) fn export<P: Port>(
    port: &mut P,
    names: &[LinkName],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Whole { links, all } = observe_whole(port, names)?;
    let exported = ibmgrd_config::export(links, &all);
    if format == Format::Json {
        return write_json(out, &exported_to_json(&exported));
    }
    Ok(write!(out, "{}", exported_to_toml(&exported))?)
}
