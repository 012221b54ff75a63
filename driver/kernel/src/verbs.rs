// SPDX-License-Identifier: GPL-2.0-only
//! HCAs, protection domains, queue pairs and address handles.

use core::ffi::{CStr, c_int};
use core::marker::PhantomData;
use core::{mem, ptr};

use bindings::{ib_ah, ib_device, ib_pd, ib_qp};

use crate::alloc::{Arc, Context};
use crate::error::{Errno, Result};
use crate::napi::CqNapi;

/// Who allocates, for the resource tracker (`rdma res`).
pub(crate) const CALLER: &CStr = c"ipoib_batch";

/// An HCA in use.
pub struct Hca(*mut ib_device);

// SAFETY: the kernel's functions on HCAs can be called from any thread.
unsafe impl Send for Hca {}
// SAFETY: as above.
unsafe impl Sync for Hca {}

/// State of a port.
#[derive(Clone, Copy, Debug)]
pub struct PortState {
    /// The port is ACTIVE.
    pub active: bool,
    /// Its LID.
    pub lid: u32,
    /// Largest MTU of the port in bytes.
    pub max_mtu: u32,
    /// Speed in units of 100 kbit/s per lane times lanes: Mbit/s.
    pub mbits: u32,
}

impl Hca {
    /// Uses an HCA.
    ///
    /// # Safety
    ///
    /// The pointer is valid.
    pub(crate) unsafe fn from_raw(raw: *mut ib_device) -> Result<Self> {
        // SAFETY: as the caller says.
        if unsafe { bindings::ipoib_h_hca_get(raw) } {
            Ok(Self(raw))
        } else {
            Err(Errno::ENODEV)
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_device {
        self.0
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        // SAFETY: the device is valid, its name a NUL-terminated array; a rename replaces bytes in place at worst.
        let name = unsafe { CStr::from_ptr((&raw const (*self.0).name).cast()) };
        name.to_str().unwrap_or("?")
    }

    /// Returns the state of a port.
    pub fn port(&self, port: u32) -> Result<PortState> {
        let mut attr = bindings::ib_port_attr::default();
        // SAFETY: the device is valid; a port out of range is refused.
        Errno::check(unsafe { bindings::ib_query_port(self.0, port, &raw mut attr) })?;
        let lanes = match attr.active_width {
            2 => 4,
            4 => 8,
            8 => 12,
            16 => 2,
            _ => 1,
        };
        let lane = match attr.active_speed {
            1 => 2_500,
            2 => 5_000,
            4 | 8 => 10_000,
            16 => 14_000,
            32 => 25_000,
            64 => 50_000,
            128 => 100_000,
            _ => 0,
        };
        Ok(PortState {
            active: attr.state == bindings::IB_PORT_ACTIVE,
            lid: attr.lid,
            // SAFETY: the device is valid.
            max_mtu: unsafe { bindings::ipoib_h_mtu_bytes(self.0, port, attr.max_mtu as c_int) },
            mbits: lanes * lane,
        })
    }

    /// Returns the bytes of an MTU of the SA's encoding on a port.
    #[must_use]
    pub fn mtu_bytes(&self, port: u32, mtu: u8) -> u32 {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_mtu_bytes(self.0, port, c_int::from(mtu)) }
    }

    /// Returns a GID of a port.
    pub fn gid(&self, port: u32, index: u16) -> Result<[u8; 16]> {
        let mut gid = bindings::ib_gid::default();
        // SAFETY: the device is valid; what is out of range is refused.
        Errno::check(unsafe {
            bindings::rdma_query_gid(self.0, port, c_int::from(index), &raw mut gid)
        })?;
        // SAFETY: each bit pattern is an array of bytes.
        Ok(unsafe { gid.raw })
    }

    /// Returns a P_Key of a port.
    pub fn pkey(&self, port: u32, index: u16) -> Result<u16> {
        let mut pkey = 0;
        // SAFETY: as for `gid`.
        Errno::check(unsafe { bindings::ib_query_pkey(self.0, port, index, &raw mut pkey) })?;
        Ok(pkey)
    }

    /// Returns the index of a P_Key in a port's table; full membership is preferred.
    pub fn find_pkey(&self, port: u32, pkey: u16) -> Result<u16> {
        let mut index = 0;
        // SAFETY: as for `gid`.
        Errno::check(unsafe { bindings::ib_find_pkey(self.0, port, pkey, &raw mut index) })?;
        Ok(index)
    }

    /// Says whether the HCA can checksum UD packets.
    #[must_use]
    pub fn can_checksum(&self) -> bool {
        // SAFETY: the device is valid; the attributes do not change.
        unsafe { (*self.0).attrs.device_cap_flags & u64::from(bindings::IB_DEVICE_UD_IP_CSUM) != 0 }
    }

    /// Says whether the HCA can segment UD packets.
    #[must_use]
    pub fn can_segment(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.0).attrs.kernel_cap_flags & u64::from(bindings::IBK_UD_TSO) != 0 }
    }

    /// Returns the scatter/gather entries of a send request.
    #[must_use]
    pub fn max_send_sge(&self) -> u32 {
        // SAFETY: as above.
        u32::try_from(unsafe { (*self.0).attrs.max_send_sge }).unwrap_or(1)
    }

    /// Returns the firmware's version, NUL-terminated.
    #[must_use]
    pub fn firmware(&self) -> [u8; 32] {
        let mut text = [0_u8; bindings::IB_FW_VERSION_NAME_MAX as usize];
        // SAFETY: the device is valid, the buffer of the size that the function demands.
        unsafe { bindings::ib_get_device_fw_str(self.0, text.as_mut_ptr().cast()) };
        let mut cut = [0_u8; 32];
        for (to, from) in cut.iter_mut().zip(text).take(31) {
            *to = from;
        }
        cut
    }
}

impl Clone for Hca {
    fn clone(&self) -> Self {
        // SAFETY: the device is valid and in use by `self`, so that the count is not 0.
        let _used = unsafe { bindings::ipoib_h_hca_get(self.0) };
        Self(self.0)
    }
}

impl Drop for Hca {
    fn drop(&mut self) {
        // SAFETY: pairs with the get of `from_raw` or `clone`.
        unsafe { bindings::ib_device_put(self.0) };
    }
}

/// A protection domain.
pub struct Pd {
    raw: *mut ib_pd,
    hca: Hca,
}

// SAFETY: the kernel's functions on PDs can be called from any thread.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates one.
    pub fn new(hca: &Hca) -> Result<Arc<Self>> {
        // SAFETY: the device is valid.
        let raw =
            Errno::check_ptr(unsafe { bindings::__ib_alloc_pd(hca.as_ptr(), 0, CALLER.as_ptr()) })?;
        let hca = hca.clone();
        Arc::new(Self { raw, hca }, Context::Process)
    }

    /// Returns the HCA.
    #[must_use]
    pub fn hca(&self) -> &Hca {
        &self.hca
    }

    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the PD is valid.
        unsafe { (*self.raw).local_dma_lkey }
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_pd {
        self.raw
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: the PD is owned, and its users hold references.
        let ret = unsafe { bindings::ib_dealloc_pd_user(self.raw, ptr::null_mut()) };
        if ret != 0 {
            crate::error!(
                "{}: protection domain not freed, error {ret}",
                self.hca.name()
            );
        }
    }
}

/// An address handle.
pub struct Ah {
    raw: *mut ib_ah,
    pd: Arc<Pd>,
}

// SAFETY: an address handle is immutable.
unsafe impl Send for Ah {}
// SAFETY: as above.
unsafe impl Sync for Ah {}

impl Ah {
    /// Takes ownership of what a helper created.
    pub(crate) fn from_raw(raw: *mut ib_ah, pd: &Arc<Pd>) -> Result<Arc<Self>> {
        let raw = Errno::check_ptr(raw)?;
        let pd = pd.clone();
        Arc::new(Self { raw, pd }, Context::Process)
    }

    pub(crate) fn as_ptr(&self) -> *mut ib_ah {
        self.raw
    }
}

impl Drop for Ah {
    fn drop(&mut self) {
        // SAFETY: the handle is owned. Without RDMA_DESTROY_AH_SLEEPABLE any context will do.
        let ret = unsafe { bindings::rdma_destroy_ah_user(self.raw, 0, ptr::null_mut()) };
        if ret != 0 {
            crate::error!(
                "{}: address handle not freed, error {ret}",
                self.pd.hca.name()
            );
        }
    }
}

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
        if pd.hca.can_segment() {
            attr.create_flags |= bindings::IB_QP_CREATE_IPOIB_UD_LSO as u32;
        }
        // SAFETY: the device is valid.
        if unsafe { (*pd.hca.as_ptr()).attrs.kernel_cap_flags }
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

    /// Goes from the send queue error state back to ready, if it is there; says whether it was.
    pub fn recover(&self) -> Result<bool> {
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
        if attr.qp_state != bindings::IB_QPS_SQE {
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
                self.pd.hca.name()
            );
        }
    }
}

/// A work completion.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Wc(bindings::ib_wc);

impl Default for Wc {
    fn default() -> Self {
        // SAFETY: all fields may be zero.
        Self(unsafe { mem::zeroed() })
    }
}

impl Wc {
    /// Returns `wr_id`.
    pub(crate) fn id(&self) -> u64 {
        // SAFETY: each bit pattern is a number.
        unsafe { self.0.__bindgen_anon_1.wr_id }
    }

    pub(crate) fn is_of(&self, qp: &Qp) -> bool {
        ptr::eq(self.0.qp, qp.raw)
    }

    /// Says whether the request succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.0.status == bindings::IB_WC_SUCCESS
    }

    /// Says whether the request was flushed because its queue pair is in error.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.0.status == bindings::IB_WC_WR_FLUSH_ERR
    }

    /// Returns the status (include/rdma/ib_verbs.h, `ib_wc_status`) and the vendor's own.
    #[must_use]
    pub fn status(&self) -> (u32, u32) {
        (self.0.status as u32, self.0.vendor_err)
    }

    /// Returns the received bytes, GRH included.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.0.byte_len
    }

    /// Says whether the buffer begins with a valid GRH.
    #[must_use]
    pub fn has_grh(&self) -> bool {
        self.0.wc_flags & bindings::IB_WC_GRH as c_int != 0
    }

    /// Says whether the HCA found the IP and TCP/UDP checksums right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        self.0.wc_flags & bindings::IB_WC_IP_CSUM_OK as c_int != 0
    }

    /// Returns LID and queue pair number of the sender.
    #[must_use]
    pub fn source(&self) -> (u32, u32) {
        (self.0.slid, self.0.src_qp)
    }
}
