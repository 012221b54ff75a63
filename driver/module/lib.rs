// SPDX-License-Identifier: GPL-2.0-only
//! The entry points that helpers.c calls.
#![no_std]

use core::cell::UnsafeCell;

use ipoib::Module;

struct Slot(UnsafeCell<Option<Module>>);

// SAFETY: only `ipoib_batch_init` and `ipoib_batch_exit` use it, and the kernel does not run them side by side.
unsafe impl Sync for Slot {}

static MODULE: Slot = Slot(UnsafeCell::new(None));

/// Starts the driver; returns 0 or a negative errno.
#[unsafe(no_mangle)]
pub extern "C" fn ipoib_batch_init() -> i32 {
    match Module::start() {
        Ok(module) => {
            // SAFETY: see `Slot`.
            unsafe { *MODULE.0.get() = Some(module) };
            0
        }
        Err(errno) => errno.raw(),
    }
}

/// Stops the driver.
#[unsafe(no_mangle)]
pub extern "C" fn ipoib_batch_exit() {
    // SAFETY: see `Slot`.
    drop(unsafe { (*MODULE.0.get()).take() });
}
