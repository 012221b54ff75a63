// SPDX-License-Identifier: GPL-2.0-only
//! Protection domains, address handles and work completions; HCAs and queue pairs have files of their own.

use core::ffi::{CStr, c_int};
use core::{mem, ptr};

use bindings::{ib_ah, ib_pd};

use crate::alloc::{Arc, Context};
use crate::error::{Errno, Result};

pub use crate::hca::{Hca, PortState};
pub use crate::qp::{Qp, QpSize, Reset};

/// Who allocates, for the resource tracker (`rdma res`).
pub(crate) const CALLER: &CStr = c"ipoib_batch";

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
                self.pd.hca().name()
            );
        }
    }
}

/// A work completion.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Wc(bindings::ib_wc);

// SAFETY: its pointers are compared and not followed, but for `wr_cqe`, which is a number here.
unsafe impl Send for Wc {}
// SAFETY: as above.
unsafe impl Sync for Wc {}

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

    pub(crate) fn queue_pair(&self) -> *mut bindings::ib_qp {
        self.0.qp
    }

    pub(crate) fn is_of(&self, qp: &Qp) -> bool {
        ptr::eq(self.0.qp, qp.as_ptr())
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
