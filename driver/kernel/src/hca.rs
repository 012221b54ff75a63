// SPDX-License-Identifier: GPL-2.0-only
//! HCAs and their ports.

use core::ffi::{CStr, c_int};

use bindings::ib_device;

use crate::error::{Errno, Result};

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

    /// Returns the scatter/gather entries that the driver's send requests have.
    #[must_use]
    pub fn send_entries(&self) -> u32 {
        self.max_send_sge().clamp(1, crate::sendq::MAX_SGE as u32)
    }

    /// Returns the scatter/gather entries that a send request can have.
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
