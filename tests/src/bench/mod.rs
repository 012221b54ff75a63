// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `cargo lab bench`: figures against their goals.

use anyhow::Result;

/// Measures one case, or all.
///
/// # Errors
///
/// When something can't be measured.
pub fn run(_case: Option<&str>, _json: bool) -> Result<bool> {
    anyhow::bail!("no case yet")
}
