// SPDX-License-Identifier: GPL-2.0-only
//! The send queue of a connection: packets from being chained until their completion.

use core::ptr;

use bindings::{ib_send_wr, ib_sge};
use ipoib_core::limits::BATCH_LIMIT;
use ipoib_core::ring::{Producer, Retired, Size};

use crate::alloc::{Arc, KArray};
use crate::error::{Errno, Result};
use crate::netdev::Driver;
use crate::rc::{RcQp, RcReset};
use crate::skb::Skb;
use crate::verbs::Wc;

/// Entries that one packet can need.
const MAX_SGE: usize = bindings::MAX_SKB_FRAGS as usize + 1;

struct Slot {
    skb: Option<Skb>,
    bytes: u32,
    sges: [ib_sge; MAX_SGE],
    count: u32,
    head: bool,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Packets.
    pub packets: u32,
    /// Their bytes, encapsulation headers included.
    pub bytes: u32,
}

impl Sum {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    fn one(slot: &Slot) -> Self {
        Self {
            packets: 1,
            bytes: slot.bytes,
        }
    }
}

/// A ring of packets and the chain of requests that is not yet posted.
pub struct RcSends<D: Driver> {
    qp: Arc<RcQp<D>>,
    number: u32,
    ring: Producer,
    retired: Retired,
    slots: KArray<Slot>,
    wrs: KArray<ib_send_wr>,
    max_sge: u32,
}

// SAFETY: the raw pointers of requests are used under `&mut self` only.
unsafe impl<D: Driver> Send for RcSends<D> {}
// SAFETY: shared access only reads positions.
unsafe impl<D: Driver> Sync for RcSends<D> {}

impl<D: Driver> RcSends<D> {
    /// Makes an empty queue; its completions carry `number`.
    pub fn new(qp: Arc<RcQp<D>>, number: u32, size: Size, max_sge: u32) -> Result<Self> {
        Ok(Self {
            qp,
            number,
            ring: Producer::new(size),
            retired: Retired::default(),
            slots: KArray::new(size.slots() as usize, || Slot {
                skb: None,
                bytes: 0,
                sges: [ib_sge::default(); MAX_SGE],
                count: 0,
                head: false,
            })?,
            wrs: KArray::new(BATCH_LIMIT.max as usize, ib_send_wr::default)?,
            max_sge,
        })
    }

    /// Returns the free slots.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.ring.free(&self.retired)
    }

    /// Returns the slots.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.ring.size().slots()
    }

    /// Returns the requests that are chained and not posted.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.ring.pending()
    }

    /// Returns the requests that the device holds.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.ring.outstanding(&self.retired)
    }

    /// Adds a packet, from its encapsulation header on, to the chain; returns its bytes.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the ring or the chain is full, `EIO` when the packet can't be mapped, `EMSGSIZE` when it has more
    /// parts than a request takes. The packet is dropped.
    pub fn push(&mut self, mut skb: Skb) -> Result<u32> {
        if skb.fragments() > self.max_sge.saturating_sub(1) {
            skb.linearize().map_err(|_| Errno::EMSGSIZE)?;
        }
        if skb.wants_checksum() && !skb.fill_checksum() {
            return Err(Errno::EIO);
        }
        let bytes = skb.len();
        let pending = self.ring.pending();
        let wr = self.wrs.get_mut(pending as usize).ok_or(Errno::EBUSY)?;
        let position = self.ring.reserve(&self.retired).ok_or(Errno::EBUSY)?;
        let size = self.ring.size();
        let Some(slot) = self.slots.get_mut(size.slot(position) as usize) else {
            self.ring.unreserve();
            return Err(Errno::EBUSY);
        };
        let pd = self.qp.pd();
        slot.head = skb.head_len() > 0;
        // SAFETY: HCA and packet are valid; a packet has at most MAX_SGE parts.
        let count = unsafe {
            bindings::ipoib_h_map_tx(
                pd.hca().as_ptr(),
                skb.as_ptr(),
                slot.sges.as_mut_ptr(),
                pd.lkey(),
            )
        };
        let Ok(count) = u32::try_from(count) else {
            self.ring.unreserve();
            return Err(Errno::EIO);
        };
        slot.count = count;
        slot.bytes = bytes;
        wr.next = ptr::null_mut();
        wr.__bindgen_anon_1.wr_id =
            u64::from(self.number) << 32 | u64::from(position.wrapping_add(1));
        wr.sg_list = slot.sges.as_mut_ptr();
        wr.num_sge = count as i32;
        wr.opcode = bindings::IB_WR_SEND;
        wr.send_flags = 0;
        slot.skb = Some(skb);
        let wr: *mut ib_send_wr = wr;
        if let Some(before) = pending
            .checked_sub(1)
            .and_then(|i| self.wrs.get_mut(i as usize))
        {
            before.next = wr;
        }
        Ok(bytes)
    }

    /// Posts the chain with one doorbell; its last request is signalled. Returns the requests that the device took, and
    /// what was dropped because it did not take the rest: after that, the queue pair must be put into error.
    pub fn post(&mut self) -> (u32, Option<(Sum, Errno)>) {
        let pending = self.ring.pending();
        let Some(last) = pending.checked_sub(1) else {
            return (0, None);
        };
        if let Some(last) = self.wrs.get_mut(last as usize) {
            last.send_flags |= bindings::IB_SEND_SIGNALED as i32;
        }
        let first: *const ib_send_wr = self.wrs.first().map_or(ptr::null(), |wr| &raw const *wr);
        let mut bad: *const ib_send_wr = ptr::null();
        let qp = self.qp.as_ptr();
        // SAFETY: the QP is valid and its device has the function, or it would be no kernel provider. The chain's
        // requests, with all that they point to, are in `wrs` and in slots that stay filled until they are retired.
        let ret = unsafe {
            match (*(*qp).device).ops.post_send {
                Some(post_send) => post_send(qp, first, &raw mut bad),
                None => Errno::EOPNOTSUPP.raw(),
            }
        };
        if ret == 0 {
            let _none = self.ring.posted(pending);
            return (pending, None);
        }
        let taken = self
            .wrs
            .iter()
            .take(pending as usize)
            .take_while(|wr| !ptr::eq(&raw const **wr, bad))
            .count();
        // A provider that names no bad request took none.
        let taken = if bad.is_null() { 0 } else { taken as u32 };
        let size = self.ring.size();
        let mut lost = Sum::default();
        for position in self.ring.posted(taken) {
            if let Some(slot) = self.slots.get_mut(size.slot(position) as usize) {
                lost.add(Sum::one(slot));
                drop(Self::empty(&self.qp, slot));
            }
        }
        let errno = Errno::check(ret).err().unwrap_or(Errno::EIO);
        (taken, Some((lost, errno)))
    }

    /// Retires what a completion covers; each packet goes to `done`. Returns all that it covers, and its own packet: the
    /// only one that an error is about.
    pub fn retire(&mut self, wc: &Wc, done: impl FnMut(Skb)) -> (Sum, Sum) {
        if !ptr::eq(wc.queue_pair(), self.qp.as_ptr()) {
            return (Sum::default(), Sum::default());
        }
        self.retire_to(wc.id() as u32, done)
    }

    /// Retires all that the device held, after the marker came back.
    pub fn retire_all(&mut self, done: impl FnMut(Skb)) -> Sum {
        let end = self.retired.position().wrapping_add(self.outstanding());
        self.retire_to(end, done).0
    }

    fn retire_to(&mut self, end: u32, mut done: impl FnMut(Skb)) -> (Sum, Sum) {
        let (mut all, mut own) = (Sum::default(), Sum::default());
        if end.wrapping_sub(self.retired.position()) > self.outstanding() {
            return (all, own);
        }
        let size = self.ring.size();
        for position in self.retired.positions_to(end, size) {
            if let Some(slot) = self.slots.get_mut(size.slot(position) as usize) {
                own = Sum::one(slot);
                all.add(own);
                if let Some(skb) = Self::empty(&self.qp, slot) {
                    done(skb);
                }
            }
        }
        self.retired.retire_to(end, size);
        (all, own)
    }

    /// Drops the chain that is not posted.
    pub fn drop_pending(&mut self) -> Sum {
        let mut lost = Sum::default();
        let size = self.ring.size();
        for position in self.ring.posted(0) {
            if let Some(slot) = self.slots.get_mut(size.slot(position) as usize) {
                lost.add(Sum::one(slot));
                drop(Self::empty(&self.qp, slot));
            }
        }
        lost
    }

    /// Drops everything, chained or posted.
    pub fn clear(&mut self, reset: &RcReset<'_, D>) -> Sum {
        let mut lost = Sum::default();
        if reset.is_of(&self.qp) {
            for slot in self.slots.iter_mut().filter(|slot| slot.skb.is_some()) {
                lost.add(Sum::one(slot));
                drop(Self::empty(&self.qp, slot));
            }
            self.ring = Producer::new(self.ring.size());
            self.retired.reset();
        }
        lost
    }

    fn empty(qp: &RcQp<D>, slot: &mut Slot) -> Option<Skb> {
        // SAFETY: these entries were mapped, for this HCA, and the device no longer uses them.
        unsafe {
            bindings::ipoib_h_unmap_tx(
                qp.pd().hca().as_ptr(),
                slot.head,
                slot.sges.as_ptr(),
                slot.count,
            )
        };
        slot.count = 0;
        slot.skb.take()
    }
}

impl<D: Driver> Drop for RcSends<D> {
    fn drop(&mut self) {
        if self.slots.iter().all(|slot| slot.skb.is_none()) {
            return;
        }
        let qp = self.qp.clone();
        match qp.reset() {
            Ok(reset) => {
                self.clear(&reset);
            }
            Err(errno) => {
                // The device may still read them: a leak is better.
                crate::error!("connection dropped in use, its packets are lost: {errno}");
                for slot in self.slots.iter_mut() {
                    core::mem::forget(slot.skb.take());
                }
            }
        }
    }
}
