// SPDX-License-Identifier: GPL-2.0-only
//! Datagram queue pairs and their states.

use core::ffi::c_int;
use core::marker::PhantomData;
use core::ptr;

use bindings::ib_qp;

use crate::alloc::{Arc, Context};
use crate::error::{Errno, Result};
use crate::napi::CqNapi;
use crate::verbs::{CALLER, Pd};

/// A datagram queue pair.
pub struct Qp {
    raw: *mut ib_qp,
    pd: Arc<Pd>,
    port: u32,
}

// SAFETY: the kernel's functions on QPs can be called from any thread.
unsafe impl Send for Qp {}
// SAFETY: as above.
unsafe impl Sync for Qp {}

/// What a new queue pair shall have.
#[derive(Clone, Copy, Debug)]
pub struct QpSize {
    /// Send requests.
    pub send: u32,
    /// Receive requests.
    pub recv: u32,
    /// Scatter/gather entries of a send request.
    pub send_sge: u32,
}

/// The proof that a queue pair holds no requests.
pub struct Reset<'a>(PhantomData<&'a Qp>, *mut ib_qp);

impl Reset<'_> {
    pub(crate) fn is_of(&self, qp: &Qp) -> bool {
        ptr::eq(self.1, qp.raw)
    }
}

impl Qp {
    /// Creates one that signals send completions on request only.
    pub fn new<D, S, R>(
        pd: &Arc<Pd>,
        port: u32,
        send: &CqNapi<D, S>,
        recv: &CqNapi<D, R>,
        size: QpSize,
    ) -> Result<Arc<Self>> {
        let mut attr = bindings::ib_qp_init_attr {
            send_cq: send.cq(),
            recv_cq: recv.cq(),
            sq_sig_type: bindings::IB_SIGNAL_REQ_WR,
            qp_type: bindings::IB_QPT_UD,
            ..Default::default()
        };
        attr.cap.max_send_wr = size.send;
        attr.cap.max_recv_wr = size.recv;
        attr.cap.max_send_sge = size.send_sge;
        attr.cap.max_recv_sge = 1;
        if pd.hca().can_segment() {
            attr.create_flags |= bindings::IB_QP_CREATE_IPOIB_UD_LSO as u32;
        }
        // SAFETY: the device is valid.
        if unsafe { (*pd.hca().as_ptr()).attrs.kernel_cap_flags }
            & u64::from(bindings::IBK_BLOCK_MULTICAST_LOOPBACK)
            != 0
        {
            attr.create_flags |= bindings::IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK as u32;
        }
        // SAFETY: PD and CQs are valid. A CQ with a QP cannot be destroyed, see CqNapi.
        let raw =
            unsafe { bindings::ib_create_qp_kernel(pd.as_ptr(), &raw mut attr, CALLER.as_ptr()) };
        let raw = Errno::check_ptr(raw)?;
        let pd = pd.clone();
        Arc::new(Self { raw, pd, port }, Context::Process)
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_qp {
        self.raw
    }

    /// Returns the protection domain.
    #[must_use]
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Returns the number.
    #[must_use]
    pub fn number(&self) -> u32 {
        // SAFETY: the QP is valid.
        unsafe { (*self.raw).qp_num }
    }

    fn modify(&self, attr: &mut bindings::ib_qp_attr, mask: bindings::ib_qp_attr_mask) -> Result {
        // SAFETY: the QP is valid.
        Errno::check(unsafe { bindings::ib_modify_qp(self.raw, attr, mask as c_int) })
    }

    /// Goes from RESET to ready to send and receive.
    pub fn start(&self, pkey_index: u16) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::IB_QPS_INIT,
            port_num: self.port,
            pkey_index,
            ..Default::default()
        };
        let mask = bindings::IB_QP_STATE | bindings::IB_QP_QKEY | bindings::IB_QP_PKEY_INDEX;
        self.modify(&mut attr, mask | bindings::IB_QP_PORT)?;
        attr.qp_state = bindings::IB_QPS_RTR;
        self.modify(&mut attr, mask)?;
        attr.qp_state = bindings::IB_QPS_RTS;
        self.modify(
            &mut attr,
            bindings::IB_QP_STATE | bindings::IB_QP_QKEY | bindings::IB_QP_SQ_PSN,
        )
    }

    /// Sets the Q_Key that received packets must carry.
    pub fn set_qkey(&self, qkey: u32) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qkey,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::IB_QP_QKEY)
    }

    /// Lets all requests complete with an error.
    pub fn flush(&self) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::IB_QPS_ERR,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::IB_QP_STATE)
    }

    /// Takes away all requests.
    pub fn reset(&self) -> Result<Reset<'_>> {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::IB_QPS_RESET,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::IB_QP_STATE)?;
        Ok(Reset(PhantomData, self.raw))
    }

    fn state(&self) -> Result<bindings::ib_qp_state> {
        // On the heap they would need an allocation in an error path; together they are some 400 bytes.
        let mut attr = bindings::ib_qp_attr::default();
        let mut init = bindings::ib_qp_init_attr::default();
        // SAFETY: the QP is valid.
        Errno::check(unsafe {
            bindings::ib_query_qp(
                self.raw,
                &raw mut attr,
                bindings::IB_QP_STATE as c_int,
                &raw mut init,
            )
        })?;
        Ok(attr.qp_state)
    }

    /// Says whether it is ready to send.
    pub fn is_ready(&self) -> Result<bool> {
        Ok(self.state()? == bindings::IB_QPS_RTS)
    }

    /// Goes from the send queue error state back to ready, if it is there; says whether it was.
    pub fn recover(&self) -> Result<bool> {
        if self.state()? != bindings::IB_QPS_SQE {
            return Ok(false);
        }
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::IB_QPS_RTS,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::IB_QP_STATE)?;
        Ok(true)
    }

    /// Receives what is sent to a group.
    pub fn attach(&self, mgid: &[u8; 16], mlid: u16) -> Result {
        let mut gid = bindings::ib_gid { raw: *mgid };
        // SAFETY: the QP is valid.
        Errno::check(unsafe { bindings::ib_attach_mcast(self.raw, &raw mut gid, mlid) })
    }

    /// Receives it no longer.
    pub fn detach(&self, mgid: &[u8; 16], mlid: u16) -> Result {
        let mut gid = bindings::ib_gid { raw: *mgid };
        // SAFETY: the QP is valid.
        Errno::check(unsafe { bindings::ib_detach_mcast(self.raw, &raw mut gid, mlid) })
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        // SAFETY: the QP is owned.
        let ret = unsafe { bindings::ib_destroy_qp_user(self.raw, ptr::null_mut()) };
        if ret != 0 {
            crate::error!(
                "{}: queue pair not destroyed, error {ret}",
                self.pd.hca().name()
            );
        }
    }
}
