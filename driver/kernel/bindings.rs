// SPDX-License-Identifier: GPL-2.0-only
//! What bindgen makes of the kernel's headers. Only the crate `kernel` uses it.
#![no_std]
include!(env!("IPOIB_BINDINGS"));
