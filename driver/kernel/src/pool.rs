// SPDX-License-Identifier: GPL-2.0-only
//! Receive buffers, and the pages that they are parts of.

use bindings::{ipoib_h_buffer, page_pool};

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
pub struct Buffer(ipoib_h_buffer);

// SAFETY: the owner is its only user, but the device.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads the address.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns the address that the device writes to.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.0.address
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
        let take = if in_poll {
            bindings::ipoib_h_buffer_new
        } else {
            bindings::ipoib_h_buffer_new_bh
        };
        let mut buffer = ipoib_h_buffer::default();
        // SAFETY: pool and HCA are valid; as the caller is the pool's only user, nobody takes buffers at the same time.
        let taken = unsafe {
            take(
                self.raw.as_ptr(),
                hca.as_ptr(),
                self.headroom,
                self.bytes,
                &raw mut buffer,
            )
        };
        taken.then_some(Buffer(buffer))
    }

    /// Makes a packet of what the device wrote: its first `bytes` bytes. In the poller. Without memory for a packet, the
    /// buffer is free again.
    pub fn packet(&mut self, hca: &Hca, buffer: Buffer, bytes: u32) -> Option<Skb> {
        // SAFETY: the buffer is of this pool, mapped for this HCA, has room for headroom, bytes and the shared information,
        // and nobody uses it.
        unsafe {
            Skb::from_raw(bindings::ipoib_h_build_skb(
                self.raw.as_ptr(),
                hca.as_ptr(),
                self.headroom,
                self.bytes,
                bytes.min(self.bytes),
                &raw const buffer.0,
            ))
        }
    }

    /// Takes a buffer back that the device no longer uses.
    pub fn free(&mut self, hca: &Hca, buffer: Buffer) {
        // SAFETY: the buffer is of this pool, mapped for this HCA, and nobody uses it.
        unsafe {
            bindings::ipoib_h_buffer_free(
                self.raw.as_ptr(),
                hca.as_ptr(),
                self.bytes,
                &raw const buffer.0,
            );
        }
    }
}
