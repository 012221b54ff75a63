// SPDX-License-Identifier: GPL-2.0-only
//! The IPoIB driver.
#![no_std]
#![forbid(unsafe_code)]

/// Starts.
pub fn init() -> i32 {
    kernel::hello();
    0
}
