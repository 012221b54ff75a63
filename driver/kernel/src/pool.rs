// SPDX-License-Identifier: GPL-2.0-only
//! Receive buffers, and the pages that they are parts of.

use core::ffi::c_void;
use core::ptr::NonNull;

use bindings::page_pool;

use crate::error::{Errno, Result};
use crate::skb::Skb;
use crate::verbs::Hca;

/// A pool of pages of one user. What packets still hold when it is dropped goes back later.
pub(crate) struct Raw(*mut page_pool);

// SAFETY: the owner is its only user.
unsafe impl Send for Raw {}
// SAFETY: shared access gives the pointer only, and using that is unsafe.
unsafe impl Sync for Raw {}

impl Raw {
    /// Makes a pool of what was just created, or tells why it was not.
    ///
    /// # Safety
    ///
    /// The pointer is what a function that creates a pool returned, and nobody else has it.
    pub(crate) unsafe fn new(raw: *mut page_pool) -> Result<Self> {
        Errno::check_ptr(raw).map(Self)
    }

    pub(crate) fn as_ptr(&self) -> *mut page_pool {
        self.0
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the pool is owned. Pages of packets that the stack holds go when those are freed.
        unsafe { bindings::ipoib_h_pool_free(self.0) };
    }
}

/// Parts of pages that buffers come from and go back to.
pub struct Pool {
    raw: Raw,
    /// Bytes in front of what the device writes.
    headroom: u32,
    /// Bytes that the device may write.
    bytes: u32,
}

/// A buffer that is mapped for the device. It goes to [`Pool::packet`] or to [`Pool::free`]; dropping it leaks it.
pub struct Buffer {
    start: NonNull<c_void>,
    size: u32,
    address: u64,
}

// SAFETY: the owner is its only user, but the device.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads the address.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns the address that the device writes to.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }
}

impl Pool {
    /// Makes a pool that keeps the pages of about `count` buffers.
    pub fn new(count: u32, headroom: u32, bytes: u32) -> Result<Self> {
        // SAFETY: it was created for this pool alone.
        let raw = unsafe { Raw::new(bindings::ipoib_h_pool(count)) }?;
        Ok(Self {
            raw,
            headroom,
            bytes,
        })
    }

    /// Returns the bytes that the device may write to a buffer.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Takes a buffer and maps it. `in_poll` says that this is the poller.
    pub fn buffer(&mut self, hca: &Hca, in_poll: bool) -> Option<Buffer> {
        let room = self.headroom.saturating_add(self.bytes);
        let mut size = 0;
        // SAFETY: the pool is valid; as the caller is its only user, nobody takes buffers at the same time.
        let start = NonNull::new(unsafe {
            if in_poll {
                bindings::ipoib_h_buffer(self.raw.as_ptr(), room, &raw mut size)
            } else {
                bindings::ipoib_h_buffer_bh(self.raw.as_ptr(), room, &raw mut size)
            }
        })?;
        let mut address = 0;
        // SAFETY: the buffer has at least `room` bytes.
        let mapped = unsafe {
            bindings::ipoib_h_map_rx(
                hca.as_ptr(),
                start
                    .cast::<u8>()
                    .add(self.headroom as usize)
                    .as_ptr()
                    .cast(),
                self.bytes as usize,
                &raw mut address,
            )
        };
        if !mapped {
            // SAFETY: the buffer is of this pool and nobody uses it.
            unsafe { bindings::ipoib_h_buffer_free(self.raw.as_ptr(), start.as_ptr()) };
            return None;
        }
        Some(Buffer {
            start,
            size,
            address,
        })
    }

    /// Makes a packet of what the device wrote: its first `bytes` bytes. In the poller. Without memory for a packet, the
    /// buffer is free again.
    pub fn packet(&mut self, hca: &Hca, buffer: Buffer, bytes: u32) -> Option<Skb> {
        self.unmap(hca, &buffer);
        let bytes = bytes.min(self.bytes);
        // SAFETY: the buffer is of this pool, has room for headroom, bytes and the shared information, and nobody uses it.
        unsafe {
            let start = buffer.start.as_ptr();
            let skb = bindings::ipoib_h_build_skb(start, buffer.size, self.headroom, bytes);
            if skb.is_null() {
                bindings::ipoib_h_buffer_free(self.raw.as_ptr(), start);
            }
            Skb::from_raw(skb)
        }
    }

    /// Takes a buffer back that the device no longer uses.
    pub fn free(&mut self, hca: &Hca, buffer: Buffer) {
        self.unmap(hca, &buffer);
        // SAFETY: the buffer is of this pool and nobody uses it.
        unsafe { bindings::ipoib_h_buffer_free(self.raw.as_ptr(), buffer.start.as_ptr()) };
    }

    fn unmap(&self, hca: &Hca, buffer: &Buffer) {
        // SAFETY: the buffer was mapped for this HCA, which no longer uses it.
        unsafe {
            bindings::ipoib_h_unmap_rx(hca.as_ptr(), buffer.address, self.bytes as usize);
        }
    }
}
