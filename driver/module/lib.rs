// SPDX-License-Identifier: GPL-2.0-only
//! The entry points that helpers.c calls.
#![no_std]

/// Starts the driver; returns 0 or a negative errno.
#[unsafe(no_mangle)]
pub extern "C" fn ipoib_batch_init() -> i32 {
    ipoib::init()
}

/// Stops the driver.
#[unsafe(no_mangle)]
pub extern "C" fn ipoib_batch_exit() {}
