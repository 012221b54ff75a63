// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stock `ib_ipoib` on the lab's fabric: the oracle.
//!
//! What it does in the scenarios is what ours must do; here is what only it has. What it is known to
//! do wrong is listed in `KNOWN`, so that these tests find everything else.

mod change;
mod cycles;
mod fabric;

pub use change::FLIP;

use crate::guest::task::{Allowed, Task};

/// Defects of the stock driver that a test may meet, and that ours must not have.
pub const KNOWN: &[Allowed] = &[Allowed {
    text: "Budget exhausted after napi rescheduled",
    because: "stock's poll loop completes NAPI and goes on when CQ events are coalesced",
}];

/// What it also does when it is removed, or changed, under load in connected mode; its WARNs are known
/// to the log's reader.
pub const CONNECTED: &[Allowed] = &[
    KNOWN[0],
    Allowed {
        text: "drivers/infiniband/core/",
        because: "stock destroys a CQ before its deferred connections are gone; the core warns",
    },
    Allowed {
        text: "sends not completed",
        because: "stock waits 5 s for sends of connections that are gone",
    },
];

/// All tests of the stock driver alone.
pub const TABLES: &[&[Task]] = &[fabric::TESTS, change::TESTS, cycles::TESTS];
