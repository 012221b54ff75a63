// SPDX-License-Identifier: GPL-2.0-only
//! A Rust panic is a defect of the driver; it stops the task as a failed assertion in C does.

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    // SAFETY: BUG() can be called in any context.
    unsafe { bindings::ipoib_h_bug() }
}
