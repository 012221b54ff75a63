// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stock `ib_ipoib` on the lab's fabric: the oracle.
//!
//! What it does here is what ours must do; what it is known to do wrong is
//! listed in `KNOWN`, so that these tests find everything else.

mod change;
mod children;
mod fabric;
mod multicast;
mod sid;
mod traffic;
pub mod unload;

pub use change::FLIP;

use crate::guest::task::{Allowed, Task};

/// Defects of the stock driver that a test may meet, and that ours must not have.
pub const KNOWN: &[Allowed] = &[Allowed {
    text: "Budget exhausted after napi rescheduled",
    because: "stock's poll loop completes NAPI and goes on when CQ events are coalesced",
}];

/// All tests of the stock driver.
pub const TABLES: &[&[Task]] = &[
    fabric::TESTS,
    traffic::TESTS,
    multicast::TESTS,
    children::TESTS,
    change::TESTS,
    unload::TESTS,
    sid::TESTS,
];
