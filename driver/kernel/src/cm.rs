// SPDX-License-Identifier: GPL-2.0-only
//! The connection manager, ib_cm: listening, REQ, REP, RTU, and the end.

use core::ffi::{c_int, c_void};
use core::mem;

use bindings::{ib_cm_event, ib_cm_id, ib_cm_rep_param, ib_cm_req_param};

use crate::alloc::{Arc, Context, KBox};
use crate::error::{Errno, Result};
use crate::netdev::{Device, DeviceRef, Driver};
use crate::rc::RcQp;
use crate::sa::Path;
use crate::signal::{Signal, Signals};
use crate::verbs::Hca;

/// An answer may take 4.096 µs · 2^n: 1.1 s.
const TIMEOUT: u8 = 18;

/// How often a MAD is sent again: who does not answer for 5 s is not there.
const MAD_RETRIES: u8 = 4;

/// Takes the identifier of a request to connect, with the private data of its REQ. What is given back is rejected.
pub type Requested<D> = fn(&Device<D>, Id<D>, [u8; 8]) -> core::result::Result<(), Id<D>>;

enum Role<D: Driver> {
    Listener(DeviceRef<D>, Requested<D>, fn(&Device<D>)),
    Connection(Arc<Signal<D>>),
}

/// An identifier of ib_cm. Dropping it ends what it stands for, with DREQ or REJ if needed, and waits for its callbacks.
/// Process context.
pub struct Id<D: Driver> {
    raw: *mut ib_cm_id,
    role: KBox<Role<D>>,
}

// SAFETY: ib_cm's functions can be called from any thread.
unsafe impl<D: Driver> Send for Id<D> {}
// SAFETY: as above.
unsafe impl<D: Driver> Sync for Id<D> {}

/// What goes with REQ or REP.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Private data.
    pub hello: [u8; 8],
    /// Whether the queue pair has a shared receive queue.
    pub shared: bool,
    /// How often the other end shall send again.
    pub retries: u8,
    /// And after RNR NAKs.
    pub rnr_retries: u8,
}

impl<D: Driver> Id<D> {
    fn with(hca: &Hca, role: Role<D>) -> Result<Self> {
        let role = KBox::new(role, Context::Process)?;
        // SAFETY: the HCA is valid; the context lives until the identifier is destroyed.
        let raw = Errno::check_ptr(unsafe {
            bindings::ib_create_cm_id(
                hca.as_ptr(),
                Some(handle::<D>),
                role.as_ptr().cast::<c_void>(),
            )
        })?;
        Ok(Self { raw, role })
    }

    /// Takes requests for a service. Each gets a [`Signal`] that calls `changed`.
    pub fn listen(
        dev: &Device<D>,
        hca: &Hca,
        service: u64,
        requested: Requested<D>,
        changed: fn(&Device<D>),
    ) -> Result<Self> {
        let id = Self::with(hca, Role::Listener(dev.hold(), requested, changed))?;
        // SAFETY: the identifier is new.
        Errno::check(unsafe { bindings::ib_cm_listen(id.raw, service.to_be()) })?;
        Ok(id)
    }

    /// Makes one to connect with.
    pub fn connect(hca: &Hca, signal: Arc<Signal<D>>) -> Result<Self> {
        Self::with(hca, Role::Connection(signal))
    }

    /// Returns what happens to the connection; a listener has none.
    #[must_use]
    pub fn signal(&self) -> Option<&Arc<Signal<D>>> {
        match &*self.role {
            Role::Listener(..) => None,
            Role::Connection(signal) => Some(signal),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_cm_id {
        self.raw
    }

    /// Sends REQ.
    pub fn request(&self, qp: &RcQp<D>, path: &mut Path, service: u64, terms: &Terms) -> Result {
        let mut param = ib_cm_req_param {
            primary_path: path.as_mut_ptr(),
            service_id: service.to_be(),
            qp_num: qp.number(),
            qp_type: bindings::IB_QPT_RC,
            private_data: terms.hello.as_ptr().cast::<c_void>(),
            private_data_len: terms.hello.len() as u8,
            responder_resources: 4,
            remote_cm_response_timeout: TIMEOUT,
            flow_control: 1,
            local_cm_response_timeout: TIMEOUT,
            retry_count: terms.retries,
            rnr_retry_count: terms.rnr_retries,
            max_cm_retries: MAD_RETRIES,
            srq: u8::from(terms.shared),
            ..Default::default()
        };
        // SAFETY: identifier, path and private data are valid; ib_cm copies them.
        Errno::check(unsafe { bindings::ib_send_cm_req(self.raw, &raw mut param) })
    }

    /// Sends REP.
    pub fn reply(&self, qp: &RcQp<D>, terms: &Terms) -> Result {
        let mut param = ib_cm_rep_param {
            qp_num: qp.number(),
            private_data: terms.hello.as_ptr().cast::<c_void>(),
            private_data_len: terms.hello.len() as u8,
            flow_control: 0,
            rnr_retry_count: terms.rnr_retries,
            srq: u8::from(terms.shared),
            ..Default::default()
        };
        // SAFETY: as above.
        Errno::check(unsafe { bindings::ib_send_cm_rep(self.raw, &raw mut param) })
    }

    /// Sends RTU.
    pub fn confirm(&self) -> Result {
        // SAFETY: the identifier is valid; no private data.
        Errno::check(unsafe { bindings::ib_send_cm_rtu(self.raw, core::ptr::null(), 0) })
    }

    /// Tells ib_cm that a message came before RTU did.
    pub fn established(&self) {
        // SAFETY: the identifier is valid. A failure means that RTU came meanwhile.
        let _late = unsafe { bindings::ib_cm_notify(self.raw, bindings::IB_EVENT_COMM_EST) };
    }

    /// Answers DREQ.
    pub fn disconnected(&self) {
        // SAFETY: the identifier is valid. A failure leaves the answer to the other end's timeout.
        let _lost = unsafe { bindings::ib_send_cm_drep(self.raw, core::ptr::null(), 0) };
    }

    /// Rejects the request for want of resources.
    pub fn reject(&self) {
        // SAFETY: the identifier is valid; no private data. Dropping it rejects, too, if this fails.
        let _lost = unsafe {
            bindings::ib_send_cm_rej(
                self.raw,
                bindings::IB_CM_REJ_NO_RESOURCES,
                core::ptr::null_mut(),
                0,
                core::ptr::null(),
                0,
            )
        };
    }
}

impl<D: Driver> Drop for Id<D> {
    fn drop(&mut self) {
        // SAFETY: the identifier is owned; this waits for callbacks under way.
        unsafe { bindings::ib_destroy_cm_id(self.raw) };
    }
}

unsafe extern "C" fn handle<D: Driver>(raw: *mut ib_cm_id, event: *const ib_cm_event) -> c_int {
    // SAFETY: identifier and event are valid; the context lives until the identifier is destroyed, which waits for this. A
    // new identifier has the context of its listener.
    unsafe {
        let role = &*(*raw).context.cast::<Role<D>>();
        match role {
            Role::Listener(dev, requested, changed) => {
                if (*event).event != bindings::IB_CM_REQ_RECEIVED {
                    return 0;
                }
                let hello = private(event);
                // Another value than 0 has ib_cm reject the request and destroy its identifier.
                offer(raw, dev, hello, *requested, *changed).map_or(1, |()| 0)
            }
            Role::Connection(signal) => {
                tell(signal, event);
                0
            }
        }
    }
}

/// # Safety
///
/// The event is valid and has private data, which are of at least 92 bytes for each kind of message.
unsafe fn private(event: *const ib_cm_event) -> [u8; 8] {
    // SAFETY: as the caller says.
    unsafe {
        let data = (*event).private_data.cast::<[u8; 8]>();
        if data.is_null() { [0; 8] } else { data.read() }
    }
}

/// # Safety
///
/// The identifier is that of a new request.
unsafe fn offer<D: Driver>(
    raw: *mut ib_cm_id,
    dev: &Device<D>,
    hello: [u8; 8],
    requested: Requested<D>,
    changed: fn(&Device<D>),
) -> Result {
    let signal = Arc::new(Signal::new(dev, changed), Context::Process)?;
    let role = KBox::new(Role::Connection(signal), Context::Process)?;
    let listener;
    // SAFETY: the identifier is ours from now on, unless it is given back.
    unsafe {
        listener = (*raw).context;
        (*raw).context = role.as_ptr().cast::<c_void>();
    }
    requested(dev, Id { raw, role }, hello).map_err(|id| {
        // SAFETY: ib_cm destroys the identifier; no other callback comes in between.
        unsafe { (*raw).context = listener };
        let id = mem::ManuallyDrop::new(id);
        // SAFETY: read once, as the identifier is not dropped.
        drop(unsafe { core::ptr::read(&raw const id.role) });
        Errno::EBUSY
    })
}

/// # Safety
///
/// The event is valid.
unsafe fn tell<D: Driver>(signal: &Signal<D>, event: *const ib_cm_event) {
    // SAFETY: as the caller says; each kind of event has the parameters read here.
    let what = unsafe {
        match (*event).event {
            bindings::IB_CM_REP_RECEIVED => {
                signal.set_private(private(event));
                Signals::REPLY
            }
            bindings::IB_CM_RTU_RECEIVED | bindings::IB_CM_USER_ESTABLISHED => Signals::READY,
            bindings::IB_CM_REJ_RECEIVED => {
                signal.set_reason((*event).param.rej_rcvd.reason);
                Signals::REJECT
            }
            bindings::IB_CM_REQ_ERROR | bindings::IB_CM_REP_ERROR => Signals::TIMEOUT,
            bindings::IB_CM_DREQ_RECEIVED => Signals::DISCONNECT,
            bindings::IB_CM_DREQ_ERROR
            | bindings::IB_CM_DREP_RECEIVED
            | bindings::IB_CM_TIMEWAIT_EXIT => Signals::GONE,
            _ => return,
        }
    };
    signal.raise(what);
}
