// SPDX-License-Identifier: GPL-2.0-only
//! What happened to a connection, told from any context without memory of its own, so that nothing gets lost.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bindings::ib_event;

use crate::netdev::{Device, DeviceRef, Driver};

/// Happenings, a bit each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Signals(u32);

impl Signals {
    /// REP came.
    pub const REPLY: Self = Self(1);
    /// RTU came, or a message on the queue pair.
    pub const READY: Self = Self(1 << 1);
    /// REJ came.
    pub const REJECT: Self = Self(1 << 2);
    /// REQ or REP got no answer.
    pub const TIMEOUT: Self = Self(1 << 3);
    /// DREQ came.
    pub const DISCONNECT: Self = Self(1 << 4);
    /// The connection is over for the connection manager.
    pub const GONE: Self = Self(1 << 5);
    /// `IB_EVENT_QP_LAST_WQE_REACHED`.
    pub const LAST_RECEIVE: Self = Self(1 << 6);
    /// The queue pair failed, or a send did.
    pub const BROKEN: Self = Self(1 << 7);
    /// The marker behind the last request came back, or the last receive.
    pub const DRAINED: Self = Self(1 << 8);
    /// `IB_EVENT_COMM_EST`: a message came before RTU.
    pub const MESSAGE: Self = Self(1 << 9);

    /// Says whether all of `other` happened.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The happenings of one connection that nobody has looked at yet.
pub struct Signal<D: Driver> {
    bits: AtomicU32,
    private: AtomicU64,
    reason: AtomicU32,
    used: AtomicBool,
    dev: DeviceRef<D>,
    changed: fn(&Device<D>),
}

impl<D: Driver> Signal<D> {
    /// Makes one; `changed` is called, in any context, after each happening.
    pub fn new(dev: &Device<D>, changed: fn(&Device<D>)) -> Self {
        Self {
            bits: AtomicU32::new(0),
            private: AtomicU64::new(0),
            reason: AtomicU32::new(0),
            used: AtomicBool::new(false),
            dev: dev.hold(),
            changed,
        }
    }

    /// Notes a happening.
    pub fn raise(&self, what: Signals) {
        self.bits.fetch_or(what.0, Ordering::AcqRel);
        (self.changed)(&self.dev);
    }

    /// Takes what happened since the last call.
    pub fn take(&self) -> Signals {
        Signals(self.bits.swap(0, Ordering::AcqRel))
    }

    /// Notes that the connection carries something.
    pub fn touch(&self) {
        // Read first: each message does this, and the line is shared.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Says whether it carried something since the last call.
    pub fn take_use(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn set_private(&self, bytes: [u8; 8]) {
        self.private
            .store(u64::from_be_bytes(bytes), Ordering::Release);
    }

    pub(crate) fn set_reason(&self, reason: u32) {
        self.reason.store(reason, Ordering::Release);
    }

    /// Returns the private data of REP, after [`Signals::REPLY`].
    #[must_use]
    pub fn private(&self) -> [u8; 8] {
        self.private.load(Ordering::Acquire).to_be_bytes()
    }

    /// Returns why REQ was rejected (include/rdma/ib_cm.h, `ib_cm_rej_reason`), after [`Signals::REJECT`].
    #[must_use]
    pub fn reason(&self) -> u32 {
        self.reason.load(Ordering::Acquire)
    }
}

/// Takes an event of a queue pair whose context is a `Signal`.
pub(crate) unsafe extern "C" fn qp_event<D: Driver>(
    event: *mut ib_event,
    context: *mut core::ffi::c_void,
) {
    // SAFETY: the queue pair holds a reference to its signal.
    unsafe {
        let what = match (*event).event {
            bindings::IB_EVENT_QP_LAST_WQE_REACHED => Signals::LAST_RECEIVE,
            bindings::IB_EVENT_COMM_EST => Signals::MESSAGE,
            bindings::IB_EVENT_QP_FATAL
            | bindings::IB_EVENT_QP_REQ_ERR
            | bindings::IB_EVENT_QP_ACCESS_ERR => Signals::BROKEN,
            _ => return,
        };
        (*context.cast::<Signal<D>>()).raise(what);
    }
}
