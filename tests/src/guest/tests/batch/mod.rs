// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our driver, `ipoib_batch`, in datagram mode: alone, and against the stock one.

mod change;
mod knobs;
mod traffic;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Allowed, Task};
use crate::guest::{Guest, Result};

/// All tests of our driver.
pub const TABLES: &[&[Task]] = &[traffic::TESTS, knobs::TESTS, change::TESTS];

/// What the stock driver at the other end may log.
const PEER: &[Allowed] = super::stock::KNOWN;

/// Loads our driver for both HCAs and brings `ib0` and `ib1` up.
///
/// # Errors
///
/// When it doesn't load, or they don't come up.
pub fn ours(guest: &Guest) -> Result<Pair> {
    guest.load("ipoib_batch")?;
    Pair::of_loaded(guest, Mode::Datagram)
}

/// Brings up ours on the first HCA and the stock driver on the second, under rtnetlink kinds of their
/// own.
///
/// # Errors
///
/// When either doesn't load, or they don't come up.
fn mixed(guest: &Guest) -> Result<Pair> {
    guest.load("ipoib_batch kind=ipoib_batch hcas=vhca0")?;
    // The stock driver takes both HCAs: ib1 is its interface on the first.
    guest.load("ib_ipoib")?;
    Pair::of_devices(guest, ["ib0", "ib2"], None)
}
