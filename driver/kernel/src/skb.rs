// SPDX-License-Identifier: GPL-2.0-only
//! Packets.

use core::ptr::{self, NonNull};
use core::slice;

use bindings::{sk_buff, skb_shared_info};

use crate::error::{Errno, Result};

/// An owned packet; dropping it drops the packet.
pub struct Skb(NonNull<sk_buff>);

// SAFETY: the owner is the only user of its `sk_buff`.
unsafe impl Send for Skb {}
// SAFETY: shared access only reads.
unsafe impl Sync for Skb {}

/// What the stack is told of a received packet's destination (include/uapi/linux/if_packet.h).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum PacketType {
    /// To us.
    Host = 0,
    /// To everyone.
    Broadcast = 1,
    /// To a group.
    Multicast = 2,
}

impl Skb {
    /// Takes ownership.
    ///
    /// # Safety
    ///
    /// The caller owns the valid packet and gives it up.
    pub(crate) unsafe fn from_raw(raw: *mut sk_buff) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Gives up ownership.
    pub(crate) fn into_raw(self) -> *mut sk_buff {
        let raw = self.0.as_ptr();
        core::mem::forget(self);
        raw
    }

    pub(crate) fn as_ptr(&self) -> *mut sk_buff {
        self.0.as_ptr()
    }

    fn raw(&self) -> &sk_buff {
        // SAFETY: the packet is valid and owned; its fields change through `&mut self` only.
        unsafe { self.0.as_ref() }
    }

    fn shared(&self) -> &skb_shared_info {
        // SAFETY: a buffer ends with this structure; on 64-bit kernels `end` is the offset of that from its start
        // (skb_end_pointer of include/linux/skbuff.h).
        unsafe {
            let start = self.raw().head.add(self.raw().end as usize);
            &*start.cast::<skb_shared_info>()
        }
    }

    /// Returns the number of bytes, fragments included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no packet is empty")]
    pub fn len(&self) -> u32 {
        self.raw().len
    }

    /// Returns the number of bytes in the linear part.
    #[must_use]
    pub fn head_len(&self) -> u32 {
        self.raw().len.wrapping_sub(self.raw().data_len)
    }

    /// Returns the first bytes, if the linear part has that many.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        // SAFETY: the linear part has `head_len` bytes from `data` on.
        unsafe { slice::from_raw_parts(self.raw().data, self.head_len() as usize) }
    }

    /// Returns the number of fragments.
    #[must_use]
    pub fn fragments(&self) -> u32 {
        u32::from(self.shared().nr_frags)
    }

    /// Removes bytes from the front; false when the linear part is too short.
    pub fn pull(&mut self, bytes: u32) -> bool {
        if bytes > self.head_len() {
            return false;
        }
        // SAFETY: the packet is valid and owned; its linear part, which `data` and `len` tell the begin and a part of the
        // length of, has that many bytes.
        unsafe {
            let skb = self.0.as_mut();
            skb.len = skb.len.wrapping_sub(bytes);
            skb.data = skb.data.add(bytes as usize);
        }
        true
    }

    /// Puts bytes in front, if there is room.
    pub fn push<const N: usize>(&mut self, bytes: &[u8; N]) -> Result {
        // SAFETY: the packet is valid and owned; `head` and `data` belong to the same buffer, and what lies between them
        // is free.
        unsafe {
            let skb = self.0.as_mut();
            let room = skb.data.offset_from(skb.head);
            if usize::try_from(room).map_or(true, |room| room < N) {
                return Err(Errno::ENOMEM);
            }
            skb.data = skb.data.sub(N);
            skb.len = skb.len.wrapping_add(N as u32);
            ptr::copy_nonoverlapping(bytes.as_ptr(), skb.data, N);
        }
        Ok(())
    }

    /// Copies the fragments into the linear part.
    pub fn linearize(&mut self) -> Result {
        // SAFETY: the packet is valid and owned.
        Errno::check(unsafe { bindings::ipoib_h_skb_linearize(self.as_ptr()) })
    }

    /// Returns the payload bytes of one segment, 0 when the packet is not to be segmented.
    #[must_use]
    pub fn gso_size(&self) -> u32 {
        u32::from(self.shared().gso_size)
    }

    /// Returns the number of packets on the wire.
    #[must_use]
    pub fn segments(&self) -> u32 {
        u32::from(self.shared().gso_segs).max(1)
    }

    /// Returns the bytes of a TCP packet before its payload, from the first byte of the packet on.
    #[must_use]
    pub fn tcp_headers(&self) -> u32 {
        // SAFETY: the packet is valid.
        unsafe { bindings::ipoib_h_tcp_headers(self.as_ptr()) }
    }

    /// Says whether the device shall fill in the checksum.
    #[must_use]
    pub fn wants_checksum(&self) -> bool {
        // SAFETY: the packet is valid.
        unsafe { bindings::ipoib_h_csum_partial(self.as_ptr()) }
    }

    /// Fills in the checksum, if the packet has none yet; false when there is no memory for that.
    pub fn fill_checksum(&mut self) -> bool {
        // SAFETY: the packet is valid and owned.
        unsafe { bindings::ipoib_h_checksum(self.as_ptr()) }
    }

    /// Gives up the route, which a packet carries only where the device asked for it ([`Device::keep_routes`]).
    ///
    /// [`Device::keep_routes`]: crate::netdev::Device::keep_routes
    pub fn drop_route(&mut self) {
        // SAFETY: the packet is valid and owned.
        unsafe { bindings::ipoib_h_drop_route(self.as_ptr()) };
    }

    /// Has the route of a packet that is too large remember the MTU. The packet begins with its encapsulation header.
    pub fn learn_mtu(&mut self, mtu: u32) {
        // SAFETY: the packet is valid and owned.
        unsafe { bindings::ipoib_h_learn_mtu(self.as_ptr(), mtu) };
    }

    /// Tells the sender of a packet that it is too large (RFC 792, RFC 4443). Process context.
    pub fn tell_too_large(&mut self, mtu: u32) {
        // SAFETY: the packet is valid and owned.
        unsafe { bindings::ipoib_h_tell_too_large(self.as_ptr(), mtu) };
    }

    /// Frees a packet that was sent; in NAPI, `budget` is the poll's budget.
    pub fn consume(self, budget: u32) {
        // SAFETY: ownership goes to the callee.
        unsafe { bindings::napi_consume_skb(self.into_raw(), budget as i32) };
    }
}

impl Drop for Skb {
    fn drop(&mut self) {
        // SAFETY: the packet is owned; this function frees it in any context.
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.0.as_ptr(),
                bindings::SKB_DROP_REASON_NOT_SPECIFIED,
            );
        }
    }
}

/// Packets in order.
pub struct SkbQueue {
    first: *mut sk_buff,
    last: *mut sk_buff,
    len: u32,
    packets: u32,
}

// SAFETY: the queue owns its packets.
unsafe impl Send for SkbQueue {}
// SAFETY: shared access only reads the length.
unsafe impl Sync for SkbQueue {}

impl Default for SkbQueue {
    fn default() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            packets: 0,
        }
    }
}

impl SkbQueue {
    /// Returns the number of packets.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of packets that they make on the wire: a large one is as many as its segments.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Says whether there is no packet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a packet at the end.
    pub fn push(&mut self, skb: Skb) {
        self.packets = self.packets.wrapping_add(skb.segments());
        let raw = skb.into_raw();
        // SAFETY: the queue owns `raw` and its last packet.
        unsafe {
            (*raw).__bindgen_anon_1.__bindgen_anon_1.next = ptr::null_mut();
            if self.last.is_null() {
                self.first = raw;
            } else {
                (*self.last).__bindgen_anon_1.__bindgen_anon_1.next = raw;
            }
        }
        self.last = raw;
        self.len = self.len.wrapping_add(1);
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Skb> {
        let raw = self.first;
        if raw.is_null() {
            return None;
        }
        // SAFETY: the queue owns its first packet.
        unsafe {
            self.first = (*raw).__bindgen_anon_1.__bindgen_anon_1.next;
            (*raw).__bindgen_anon_1.__bindgen_anon_1.next = ptr::null_mut();
        }
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        self.len = self.len.wrapping_sub(1);
        // SAFETY: the queue gives up the packet.
        let skb = unsafe { Skb::from_raw(raw) };
        let packets = skb.as_ref().map_or(0, Skb::segments);
        self.packets = self.packets.wrapping_sub(packets);
        skb
    }

    /// Moves all packets of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        while let Some(skb) = other.pop() {
            self.push(skb);
        }
    }
}

impl Drop for SkbQueue {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
