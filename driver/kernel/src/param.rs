// SPDX-License-Identifier: GPL-2.0-only
//! Module parameters; they are read-only after loading.

use core::ffi::CStr;

/// Returns the rtnetlink kind to register.
#[must_use]
pub fn kind() -> &'static CStr {
    // SAFETY: the parameter is a string that lives as long as the module, and is not written after loading.
    unsafe { CStr::from_ptr(bindings::ipoib_h_kind) }
}

/// Returns the list of HCAs and ports to take.
#[must_use]
pub fn hcas() -> &'static [u8] {
    // SAFETY: as for `kind`.
    unsafe { CStr::from_ptr(bindings::ipoib_h_hcas) }.to_bytes()
}

/// Returns the slots of a new interface's transmit ring, as asked for.
#[must_use]
pub fn send_queue_size() -> u32 {
    // SAFETY: not written after loading.
    unsafe { bindings::ipoib_h_send_queue_size }
}

/// Returns the slots of a new interface's receive ring, as asked for.
#[must_use]
pub fn recv_queue_size() -> u32 {
    // SAFETY: not written after loading.
    unsafe { bindings::ipoib_h_recv_queue_size }
}

/// Says whether to take ports that have an accelerated IPoIB netdev of their own.
#[must_use]
pub fn take_accelerated() -> bool {
    // SAFETY: not written after loading.
    unsafe { bindings::ipoib_h_take_accelerated }
}

/// Returns the milliseconds that a connection may be unused.
#[must_use]
pub fn cm_idle_ms() -> u32 {
    // SAFETY: not written after loading.
    unsafe { bindings::ipoib_h_cm_idle_ms }
}
