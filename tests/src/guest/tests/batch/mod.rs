// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our driver, `ipoib_batch`: what only it has. What any driver must do is in `scenario`.

mod change;
mod children;
mod connected;
mod cycles;
mod faults;
mod handed;
mod knobs;
mod malformed;
mod refusals;
mod rings;
mod traffic;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::Task;
use crate::guest::{Guest, Result};

/// All tests of our driver alone.
pub const TABLES: &[&[Task]] = &[
    traffic::TESTS,
    knobs::TESTS,
    change::TESTS,
    children::TESTS,
    connected::TESTS,
    rings::TESTS,
    faults::TESTS,
    malformed::TESTS,
    refusals::TESTS,
    cycles::TESTS,
];

/// Loads our driver for both HCAs and brings `ib0` and `ib1` up.
///
/// # Errors
///
/// When it doesn't load, or they don't come up.
pub fn ours(guest: &Guest) -> Result<Pair> {
    guest.load("ipoib_batch")?;
    Pair::of_loaded(guest, Mode::Datagram)
}
