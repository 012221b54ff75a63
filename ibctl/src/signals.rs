// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ctrl-C and the like during a set: it must not end between two knobs.

use nix::sys::signal::{SigSet, Signal};

/// Keeps the signals that ask a program to end waiting until it is dropped.
pub(crate) struct Postponed {
    before: Option<SigSet>,
}

impl Postponed {
    /// Postpones them for the calling thread. A set takes milliseconds, and each answer of the kernel
    /// is waited for a bounded time, so that the end comes late but comes.
    pub(crate) fn until_dropped() -> Self {
        let mut signals = SigSet::empty();
        for signal in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
        ] {
            signals.add(signal);
        }
        let before = SigSet::thread_get_mask().ok();
        // It fails for a malformed argument only; the set is as good as before these signals were known.
        let _ = signals.thread_block();
        Self { before }
    }
}

impl Drop for Postponed {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = before.thread_set_mask();
        }
    }
}
