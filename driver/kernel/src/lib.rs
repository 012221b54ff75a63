// SPDX-License-Identifier: GPL-2.0-only
//! Safe abstractions over the kernel's C interfaces, for the driver in `ipoib`.
//!
//! All `unsafe` of the driver is here.
#![no_std]
mod panic;

/// Logs hello.
pub fn hello() {
    // SAFETY: a constant format without arguments.
    unsafe { bindings::_printk(c"\x016ipoib_batch: hello\n".as_ptr()); }
}
