// SPDX-License-Identifier: GPL-2.0-only
//! A completion queue that NAPI polls, and the state that belongs to the poller.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr;

use bindings::{ib_cq, ib_event, napi_struct, net_device};

use crate::alloc::{Context, KBox};
use crate::error::{Errno, Result};
use crate::lock::{Mutex, MutexGuard};
use crate::netdev::{Device, Driver};
use crate::skb::{PacketType, Skb};
use crate::verbs::{CALLER, Hca, Wc};

/// A function that polls: it returns the work done, at most the budget.
pub type PollFn<D, S> = fn(&Device<D>, &Poll, &mut S, u32) -> u32;

#[repr(C)]
struct Inner<D, S> {
    // First, so that a pointer to it is one to the whole.
    napi: UnsafeCell<napi_struct>,
    cq: *mut ib_cq,
    dev: *mut net_device,
    poll: PollFn<D, S>,
    state: UnsafeCell<S>,
}

/// A completion queue with its poller.
pub struct CqNapi<D, S> {
    // An option only for `drop`, which may have to leak it.
    inner: Option<KBox<Inner<D, S>>>,
    enabled: Mutex<bool>,
    hca: Hca,
}

// SAFETY: the state is used by the poller, of which NAPI runs one at a time, or while NAPI is disabled, under a lock.
unsafe impl<D, S: Send> Send for CqNapi<D, S> {}
// SAFETY: as above.
unsafe impl<D, S: Send> Sync for CqNapi<D, S> {}

/// What a poll function works with.
pub struct Poll {
    napi: *mut napi_struct,
    cq: *mut ib_cq,
    dev: *mut net_device,
}

impl Poll {
    /// Fetches completions and returns how many.
    pub fn fetch(&self, wcs: &mut [Wc]) -> usize {
        // SAFETY: the CQ is valid, a `Wc` is an `ib_wc`, and the slice has that many.
        let n = unsafe {
            match (*(*self.cq).device).ops.poll_cq {
                Some(poll_cq) => poll_cq(self.cq, wcs.len() as c_int, wcs.as_mut_ptr().cast()),
                None => 0,
            }
        };
        usize::try_from(n).unwrap_or(0).min(wcs.len())
    }

    pub(crate) fn napi(&self) -> *mut napi_struct {
        self.napi
    }

    /// Hands a packet, which begins with its encapsulation header, to the stack.
    pub fn receive(&self, skb: Skb, to: PacketType, checksum_ok: bool) {
        let skb = skb.into_raw();
        // SAFETY: packet, device and NAPI are valid; this is called from its poll function.
        unsafe {
            bindings::ipoib_h_receive(self.napi, skb, self.dev, to as u8, checksum_ok);
        }
    }
}

/// Which of a device's pollers it is: its settings are kept under its number, where the kernel keeps such settings
/// (Linux 6.13 and later), and outlive it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Number {
    /// Receives of datagrams.
    Receive = 0,
    /// Sends of datagrams.
    Send = 1,
    /// Receives of connections.
    ConnectedReceive = 2,
    /// Sends of connections.
    ConnectedSend = 3,
}

impl<D> Device<D> {
    /// Returns the GRO flush timeout that new pollers get, in nanoseconds.
    #[must_use]
    pub fn gro_timeout(&self) -> u64 {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_gro_timeout(self.as_ptr()) }
    }

    /// Sets it for all pollers, in nanoseconds. RTNL is held.
    pub fn set_gro_timeout(&self, nanoseconds: u64) {
        // SAFETY: the device is valid, and RTNL is held.
        unsafe { bindings::ipoib_h_set_gro_timeout(self.as_ptr(), nanoseconds) };
    }

    /// Returns the empty polls before events are asked for again, for new pollers.
    #[must_use]
    pub fn defer_irqs(&self) -> u32 {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_defer_irqs(self.as_ptr()) }
    }

    /// Sets them for all pollers. RTNL is held.
    pub fn set_defer_irqs(&self, polls: u32) {
        // SAFETY: the device is valid, and RTNL is held.
        unsafe { bindings::ipoib_h_set_defer_irqs(self.as_ptr(), polls) };
    }
}

impl<D: Driver, S: Send> CqNapi<D, S> {
    /// Makes a completion queue of at least `cqe` entries, with its poller disabled. RTNL is held.
    pub fn new(
        dev: &Device<D>,
        hca: &Hca,
        number: Number,
        (cqe, vector): (u32, u32),
        poll: PollFn<D, S>,
        state: S,
    ) -> Result<Self> {
        let inner = Inner {
            napi: UnsafeCell::new(napi_struct::default()),
            cq: ptr::null_mut(),
            dev: dev.as_ptr(),
            poll,
            state: UnsafeCell::new(state),
        };
        let enabled = Mutex::new(false)?;
        let mut inner = KBox::new(inner, Context::Process)?;
        // SAFETY: the device is valid.
        let vectors = u32::try_from(unsafe { (*hca.as_ptr()).num_comp_vectors })
            .unwrap_or(1)
            .max(1);
        let attr = bindings::ib_cq_init_attr {
            cqe,
            comp_vector: vector.checked_rem(vectors).unwrap_or(0),
            ..Default::default()
        };
        // SAFETY: the HCA is valid; the context lives, boxed, until the CQ is destroyed.
        inner.cq = Errno::check_ptr(unsafe {
            bindings::__ib_create_cq(
                hca.as_ptr(),
                Some(completion),
                Some(cq_event::<D, S>),
                inner.as_ptr().cast::<c_void>(),
                &raw const attr,
                CALLER.as_ptr(),
            )
        })?;
        // SAFETY: the device is valid and stays so while its data hold `self`; the NAPI is new and boxed.
        unsafe {
            let (dev, poll) = (dev.as_ptr(), Some(poll_cb::<D, S> as _));
            bindings::ipoib_h_napi_add(dev, inner.napi.get(), poll, number as u32);
        };
        let this = Self {
            inner: Some(inner),
            enabled,
            hca: hca.clone(),
        };
        this.arm();
        Ok(this)
    }
}

impl<D, S> CqNapi<D, S> {
    /// Returns the CQ.
    pub(crate) fn cq(&self) -> *mut ib_cq {
        self.inner
            .as_ref()
            .map_or(ptr::null_mut(), |inner| inner.cq)
    }

    fn arm(&self) {
        // SAFETY: the CQ is valid.
        let _missed = unsafe { rearm(self.cq()) };
    }

    /// Lets the poller run, and runs it once: completions may have come while it could not.
    pub fn enable(&self) {
        let mut enabled = self.enabled.lock();
        if let (Some(inner), false) = (self.inner.as_ref(), *enabled) {
            // SAFETY: the NAPI is registered and disabled.
            unsafe {
                bindings::napi_enable(inner.napi.get());
                bindings::ipoib_h_napi_kick(inner.napi.get());
            }
            *enabled = true;
        }
    }

    /// Waits for the poller and lets it run no more.
    pub fn disable(&self) {
        let mut enabled = self.enabled.lock();
        if let (Some(inner), true) = (self.inner.as_ref(), *enabled) {
            // SAFETY: the NAPI is registered and enabled.
            unsafe { bindings::napi_disable(inner.napi.get()) };
            *enabled = false;
        }
    }

    /// Runs the poller soon, if it is enabled.
    pub fn kick(&self) {
        if let Some(inner) = self.inner.as_ref() {
            // SAFETY: the NAPI is registered; scheduling a disabled one does nothing.
            unsafe { bindings::ipoib_h_napi_kick(inner.napi.get()) };
        }
    }

    /// Gives access to the poller's state while the poller is disabled; `None` when it is not.
    pub fn state(&self) -> Option<State<'_, S>> {
        let enabled = self.enabled.lock();
        let inner = self.inner.as_ref()?;
        (!*enabled).then(|| State {
            state: inner.state.get(),
            _enabled: enabled,
        })
    }

    /// Gives access to the poller's state, for which the poller, if it is enabled, is disabled for a moment. Process context.
    pub fn with_state<T>(&self, change: impl FnOnce(&mut S) -> T) -> Option<T> {
        let enabled = self.enabled.lock();
        let inner = self.inner.as_ref()?;
        // SAFETY: the NAPI is registered, and enabled if `enabled` says so, which stays so while the lock is held. The
        // poller does not run between the two calls, so that nobody else uses its state.
        unsafe {
            if *enabled {
                bindings::napi_disable(inner.napi.get());
            }
            let result = change(&mut *inner.state.get());
            if *enabled {
                bindings::napi_enable(inner.napi.get());
                bindings::ipoib_h_napi_kick(inner.napi.get());
            }
            Some(result)
        }
    }

    /// Sets the moderation of completion events: microseconds to wait, and completions that end the wait.
    pub fn moderate(&self, usecs: u16, count: u16) -> Result {
        // SAFETY: the CQ is valid.
        Errno::check(unsafe { bindings::rdma_set_cq_moderation(self.cq(), count, usecs) })
    }
}

/// Exclusive access to a poller's state.
pub struct State<'a, S> {
    state: *mut S,
    _enabled: MutexGuard<'a, bool>,
}

impl<S> core::ops::Deref for State<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        // SAFETY: the poller is disabled, and stays so while the lock is held.
        unsafe { &*self.state }
    }
}

impl<S> core::ops::DerefMut for State<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        // SAFETY: as above.
        unsafe { &mut *self.state }
    }
}

impl<D, S> Drop for CqNapi<D, S> {
    fn drop(&mut self) {
        self.disable();
        let Some(inner) = self.inner.take() else {
            return;
        };
        // SAFETY: the CQ is owned. While a QP uses it, it is refused.
        let ret = unsafe { bindings::ib_destroy_cq_user(inner.cq, ptr::null_mut()) };
        // SAFETY: the NAPI is registered and disabled; its device outlives `self`.
        unsafe { bindings::ipoib_h_napi_del(inner.napi.get()) };
        if ret != 0 {
            crate::error!(
                "{}: completion queue not destroyed, error {ret}; its memory is lost",
                self.hca.name()
            );
            core::mem::forget(inner);
        }
    }
}

/// Asks for an event at the next completion; says whether one came in between.
///
/// # Safety
///
/// The CQ is valid.
unsafe fn rearm(cq: *mut ib_cq) -> bool {
    let flags = bindings::IB_CQ_NEXT_COMP | bindings::IB_CQ_REPORT_MISSED_EVENTS;
    // SAFETY: the CQ is valid.
    unsafe {
        (*(*cq).device)
            .ops
            .req_notify_cq
            .is_some_and(|notify| notify(cq, flags) > 0)
    }
}

/// # Safety
///
/// The NAPI is registered.
unsafe fn schedule(napi: *mut napi_struct) {
    // SAFETY: as the caller says.
    unsafe {
        if bindings::napi_schedule_prep(napi) {
            bindings::__napi_schedule(napi);
        }
    }
}

unsafe extern "C" fn completion(_cq: *mut ib_cq, context: *mut c_void) {
    // SAFETY: the context is an `Inner`, which begins with its NAPI and lives as long as the CQ.
    unsafe { schedule(context.cast::<napi_struct>()) };
}

/// An event of a CQ tells that it is in error: it takes no completions any more.
unsafe extern "C" fn cq_event<D: Driver, S>(_event: *mut ib_event, context: *mut c_void) {
    // SAFETY: the context is an `Inner` that lives as long as the CQ, and so does its device.
    unsafe {
        let inner = context.cast::<Inner<D, S>>();
        D::cq_failed(Device::<D>::from_raw((*inner).dev));
    }
}

unsafe extern "C" fn poll_cb<D: Driver, S>(napi: *mut napi_struct, budget: c_int) -> c_int {
    let inner = napi.cast::<Inner<D, S>>();
    // SAFETY: the NAPI is the first field of an `Inner` that lives until the NAPI is deleted. NAPI runs one poll at a
    // time, so that the state is not in use elsewhere.
    let (poll, dev, context, state) = unsafe {
        let poll = Poll {
            napi,
            cq: (*inner).cq,
            dev: (*inner).dev,
        };
        (
            (*inner).poll,
            Device::<D>::from_raw((*inner).dev),
            poll,
            &mut *(*inner).state.get(),
        )
    };
    let limit = u32::try_from(budget).unwrap_or(0);
    let done = poll(dev, &context, state, limit).min(limit);
    if done < limit {
        // SAFETY: the poll is over; CQ and NAPI are valid. Not re-arming when the kernel defers interrupts is what
        // makes gro_flush_timeout work.
        unsafe {
            if bindings::napi_complete_done(napi, done as c_int) && rearm(context.cq) {
                schedule(napi);
            }
        }
    }
    done as c_int
}
