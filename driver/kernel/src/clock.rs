// SPDX-License-Identifier: GPL-2.0-only
//! Time: pauses, and a clock in milliseconds.

/// Sleeps for one to two milliseconds.
pub fn nap() {
    // SAFETY: process context; 2 is TASK_UNINTERRUPTIBLE.
    unsafe { bindings::usleep_range_state(1000, 2000, 2) };
}

/// Returns a clock in milliseconds that overflows.
#[must_use]
pub fn now_ms() -> u32 {
    // SAFETY: reads a counter.
    unsafe { bindings::ipoib_h_jiffies_ms() }
}

/// Returns the milliseconds from now until `at`, less than 2^31 away; 0 when it is past.
#[must_use]
pub fn left_ms(at: u32) -> u32 {
    let left = at.wrapping_sub(now_ms());
    if left < 1 << 31 { left } else { 0 }
}
