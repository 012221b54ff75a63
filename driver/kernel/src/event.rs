// SPDX-License-Identifier: GPL-2.0-only
//! Asynchronous events of an HCA.

use bindings::{ib_event, ib_event_handler, net_device};

use crate::alloc::{Context, KBox};
use crate::error::Result;
use crate::netdev::{Device, Driver};
use crate::verbs::Hca;

/// What happened at a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "the names of enum ib_event_type")]
pub enum Event {
    PortActive,
    PortError,
    LidChange,
    PkeyChange,
    GidChange,
    SmChange,
    ClientReregister,
}

#[repr(C)]
struct Inner<D> {
    // First, so that a pointer to it is one to the whole.
    handler: ib_event_handler,
    dev: *mut net_device,
    port: u32,
    call: fn(&Device<D>, Event),
}

/// A handler of the events of a device's port.
pub struct Handler<D> {
    inner: KBox<Inner<D>>,
    _hca: Hca,
}

// SAFETY: the handler is only given back, from any thread.
unsafe impl<D> Send for Handler<D> {}
// SAFETY: as above.
unsafe impl<D> Sync for Handler<D> {}

impl<D: Driver> Handler<D> {
    /// Calls `call` for each event of the port, in any context, until the handler is dropped: the device must drop it
    /// before its data go, in `uninit` at last.
    pub fn new(dev: &Device<D>, hca: &Hca, port: u32, call: fn(&Device<D>, Event)) -> Result<Self> {
        let inner = Inner {
            handler: ib_event_handler::default(),
            dev: dev.as_ptr(),
            port,
            call,
        };
        let inner = KBox::new(inner, Context::Process)?;
        // SAFETY: the handler is new and boxed, the HCA valid until `_hca` is dropped.
        unsafe {
            let handler = &raw mut (*inner.as_ptr()).handler;
            bindings::ipoib_h_event_init(handler, hca.as_ptr(), Some(handle::<D>));
            bindings::ib_register_event_handler(handler);
        }
        Ok(Self {
            inner,
            _hca: hca.clone(),
        })
    }
}

impl<D> Drop for Handler<D> {
    fn drop(&mut self) {
        // SAFETY: registered by `new`; this waits for calls under way.
        unsafe { bindings::ib_unregister_event_handler(&raw mut (*self.inner.as_ptr()).handler) };
    }
}

unsafe extern "C" fn handle<D: Driver>(handler: *mut ib_event_handler, event: *mut ib_event) {
    let inner = handler.cast::<Inner<D>>();
    // SAFETY: the handler is the first field of an `Inner` that lives until it is unregistered; its device, too. All
    // the events below belong to a port.
    unsafe {
        let known = match (*event).event {
            bindings::IB_EVENT_PORT_ACTIVE => Event::PortActive,
            bindings::IB_EVENT_PORT_ERR => Event::PortError,
            bindings::IB_EVENT_LID_CHANGE => Event::LidChange,
            bindings::IB_EVENT_PKEY_CHANGE => Event::PkeyChange,
            bindings::IB_EVENT_GID_CHANGE => Event::GidChange,
            bindings::IB_EVENT_SM_CHANGE => Event::SmChange,
            bindings::IB_EVENT_CLIENT_REREGISTER => Event::ClientReregister,
            _ => return,
        };
        if (*event).element.port_num == (*inner).port {
            ((*inner).call)(Device::<D>::from_raw((*inner).dev), known);
        }
    }
}
