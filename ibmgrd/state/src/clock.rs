// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time that no administrator and no time server can set, and that goes on in sleep.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Returns the time since boot, sleep included (`CLOCK_BOOTTIME`).
#[must_use]
pub fn boottime() -> Duration {
    // It fails for unknown clocks only, and Linux has had this one since 2.6.39.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Returns what tells this boot from any other (random(4)).
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    // Without /proc a reboot is told by /run's being empty.
    id.map_or_else(|_| String::new(), |id| id.trim().to_owned())
}
