// SPDX-License-Identifier: GPL-2.0-only
//! Queue pairs of connections, and receive queues that they share.

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr;

use bindings::{ib_qp, ib_send_wr, ib_srq};

use crate::alloc::{Arc, Context};
use crate::cm::Id;
use crate::error::{Errno, Result};
use crate::napi::CqNapi;
use crate::netdev::Driver;
use crate::signal::{Signal, qp_event};
use crate::verbs::{CALLER, Hca, Pd, Wc};

/// Marks the `wr_id` of the request behind all others.
const MARKER: u64 = 1 << 63;

/// What an HCA offers to connections.
#[derive(Clone, Copy, Debug)]
pub struct RcLimits {
    /// Receive queues can be shared.
    pub shared: bool,
    /// Scatter/gather entries of a receive request.
    pub recv_sge: u32,
    /// Entries of a completion queue.
    pub cqe: u32,
}

/// Returns what an HCA offers.
#[must_use]
pub fn limits(hca: &Hca) -> RcLimits {
    // SAFETY: the device is valid; the attributes do not change.
    let (attrs, ops) = unsafe { (&(*hca.as_ptr()).attrs, &(*hca.as_ptr()).ops) };
    let positive = |value: c_int| u32::try_from(value).unwrap_or(0);
    let shared = attrs.max_srq > 0 && ops.create_srq.is_some() && ops.post_srq_recv.is_some();
    let sge = if shared {
        attrs.max_srq_sge
    } else {
        attrs.max_recv_sge
    };
    RcLimits {
        shared,
        recv_sge: positive(sge),
        cqe: positive(attrs.max_cqe),
    }
}

/// A shared receive queue.
pub struct Srq {
    raw: *mut ib_srq,
    pd: Arc<Pd>,
}

// SAFETY: the kernel's functions on SRQs can be called from any thread.
unsafe impl Send for Srq {}
// SAFETY: as above.
unsafe impl Sync for Srq {}

impl Srq {
    /// Makes one of `size` requests with `sge` entries each.
    pub fn new(pd: &Arc<Pd>, size: u32, sge: u32) -> Result<Arc<Self>> {
        let mut attr = bindings::ib_srq_init_attr {
            srq_type: bindings::IB_SRQT_BASIC,
            ..Default::default()
        };
        attr.attr.max_wr = size;
        attr.attr.max_sge = sge;
        // SAFETY: the PD is valid.
        let raw = Errno::check_ptr(unsafe {
            bindings::ib_create_srq_user(
                pd.as_ptr(),
                &raw mut attr,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        })?;
        let pd = pd.clone();
        Arc::new(Self { raw, pd }, Context::Process)
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_srq {
        self.raw
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        // SAFETY: the SRQ is owned, and its queue pairs hold references.
        let ret = unsafe { bindings::ib_destroy_srq_user(self.raw, ptr::null_mut()) };
        if ret != 0 {
            crate::error!(
                "{}: shared receive queue not destroyed, error {ret}",
                self.pd.hca().name()
            );
        }
    }
}

/// A queue pair of a connection.
pub struct RcQp<D: Driver> {
    raw: *mut ib_qp,
    pd: Arc<Pd>,
    srq: Option<Arc<Srq>>,
    _signal: Arc<Signal<D>>,
}

// SAFETY: the kernel's functions on QPs can be called from any thread.
unsafe impl<D: Driver> Send for RcQp<D> {}
// SAFETY: as above.
unsafe impl<D: Driver> Sync for RcQp<D> {}

/// The proof that a connection's queue pair holds no requests.
pub struct RcReset<'a, D: Driver>(&'a RcQp<D>);

impl<D: Driver> RcReset<'_, D> {
    pub(crate) fn is_of(&self, qp: &RcQp<D>) -> bool {
        ptr::eq(self.0.raw, qp.raw)
    }
}

/// What a connection's queue pair shall have.
#[derive(Clone)]
pub struct RcSize {
    /// Send requests; one more is for the marker.
    pub send: u32,
    /// Scatter/gather entries of a send request.
    pub send_sge: u32,
    /// Receive requests, without a shared queue.
    pub recv: u32,
    /// Their entries.
    pub recv_sge: u32,
    /// The shared receive queue.
    pub srq: Option<Arc<Srq>>,
}

/// A completion queue of a connection.
#[derive(Clone, Copy)]
pub struct CqRef<'a>(*mut bindings::ib_cq, PhantomData<&'a ()>);

impl<'a> CqRef<'a> {
    /// Refers to that of a poller.
    #[must_use]
    pub fn of<D, S>(napi: &'a CqNapi<D, S>) -> Self {
        Self(napi.cq(), PhantomData)
    }
}

impl<D: Driver> RcQp<D> {
    /// Makes one that signals send completions on request only.
    pub fn new(
        pd: &Arc<Pd>,
        send: CqRef<'_>,
        recv: CqRef<'_>,
        size: &RcSize,
        signal: &Arc<Signal<D>>,
    ) -> Result<Arc<Self>> {
        let mut attr = bindings::ib_qp_init_attr {
            send_cq: send.0,
            recv_cq: recv.0,
            srq: size
                .srq
                .as_ref()
                .map_or(ptr::null_mut(), |srq| srq.as_ptr()),
            sq_sig_type: bindings::IB_SIGNAL_REQ_WR,
            qp_type: bindings::IB_QPT_RC,
            event_handler: Some(qp_event::<D>),
            qp_context: ptr::from_ref::<Signal<D>>(signal)
                .cast_mut()
                .cast::<c_void>(),
            ..Default::default()
        };
        attr.cap.max_send_wr = size.send.saturating_add(1);
        attr.cap.max_send_sge = size.send_sge.max(1);
        if size.srq.is_none() {
            attr.cap.max_recv_wr = size.recv;
            attr.cap.max_recv_sge = size.recv_sge.max(1);
        }
        // SAFETY: PD, CQs and SRQ are valid and outlive the QP: it holds references to PD, SRQ and signal, and a CQ with a
        // QP cannot be destroyed.
        let raw = Errno::check_ptr(unsafe {
            bindings::ib_create_qp_kernel(pd.as_ptr(), &raw mut attr, CALLER.as_ptr())
        })?;
        Arc::new(
            Self {
                raw,
                pd: pd.clone(),
                srq: size.srq.clone(),
                _signal: signal.clone(),
            },
            Context::Process,
        )
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_qp {
        self.raw
    }

    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Says whether its receives come from a shared queue.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.srq.is_some()
    }

    /// Returns the number.
    #[must_use]
    pub fn number(&self) -> u32 {
        // SAFETY: the QP is valid.
        unsafe { (*self.raw).qp_num }
    }

    /// Returns what stands for this queue pair in completions: [`source`].
    #[must_use]
    pub fn identity(&self) -> usize {
        self.raw as usize
    }

    fn advance(&self, id: &Id<D>, state: bindings::ib_qp_state) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: state,
            ..Default::default()
        };
        let mut mask = 0;
        // SAFETY: identifier and QP are valid.
        unsafe {
            Errno::check(bindings::ib_cm_init_qp_attr(
                id.as_ptr(),
                &raw mut attr,
                &raw mut mask,
            ))?;
            // A connection's first packet has number 0 both ways: what REQ and REP say.
            if state == bindings::IB_QPS_RTR {
                attr.rq_psn = 0;
            }
            Errno::check(bindings::ib_modify_qp(self.raw, &raw mut attr, mask))
        }
    }

    /// Becomes able to take receive requests.
    pub fn prepare(&self, id: &Id<D>) -> Result {
        self.advance(id, bindings::IB_QPS_INIT)
    }

    /// Becomes ready to receive.
    pub fn receive(&self, id: &Id<D>) -> Result {
        self.advance(id, bindings::IB_QPS_RTR)
    }

    /// Becomes ready to send.
    pub fn send(&self, id: &Id<D>) -> Result {
        self.advance(id, bindings::IB_QPS_RTS)
    }

    fn to(&self, state: bindings::ib_qp_state) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: state,
            ..Default::default()
        };
        // SAFETY: the QP is valid.
        Errno::check(unsafe {
            bindings::ib_modify_qp(self.raw, &raw mut attr, bindings::IB_QP_STATE as c_int)
        })
    }

    /// Lets all requests complete with an error.
    pub fn fail(&self) -> Result {
        self.to(bindings::IB_QPS_ERR)
    }

    /// Takes away all requests.
    pub fn reset(&self) -> Result<RcReset<'_, D>> {
        self.to(bindings::IB_QPS_RESET)?;
        Ok(RcReset(self))
    }

    /// Posts a request that carries nothing and completes after all before it, to a queue pair in error. Its completion
    /// has `number`, see [`marker`].
    pub fn mark(&self, number: u32) -> Result {
        let mut wr = ib_send_wr {
            opcode: bindings::IB_WR_SEND,
            send_flags: bindings::IB_SEND_SIGNALED as c_int,
            ..Default::default()
        };
        wr.__bindgen_anon_1.wr_id = MARKER | u64::from(number) << 32;
        let mut bad: *const ib_send_wr = ptr::null();
        // SAFETY: the QP is valid; a request without entries points to nothing, and the device copies it.
        Errno::check(unsafe {
            match (*(*self.raw).device).ops.post_send {
                Some(post_send) => post_send(self.raw, &raw const wr, &raw mut bad),
                None => Errno::EOPNOTSUPP.raw(),
            }
        })
    }
}

impl<D: Driver> Drop for RcQp<D> {
    fn drop(&mut self) {
        // SAFETY: the QP is owned. No event comes after that.
        let ret = unsafe { bindings::ib_destroy_qp_user(self.raw, ptr::null_mut()) };
        if ret != 0 {
            crate::error!(
                "{}: queue pair of a connection not destroyed, error {ret}",
                self.pd.hca().name()
            );
        }
    }
}

/// Says whether a completion is of a marker.
#[must_use]
pub fn is_marker(wc: &Wc) -> bool {
    wc.id() & MARKER != 0
}

/// Returns the number of the connection that a send completion belongs to.
#[must_use]
pub fn connection(wc: &Wc) -> u32 {
    ((wc.id() & !MARKER) >> 32) as u32
}

/// Returns the queue pair that a completion came from, as [`RcQp::identity`] names it.
#[must_use]
pub fn source(wc: &Wc) -> usize {
    wc.queue_pair() as usize
}
