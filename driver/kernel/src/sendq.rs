// SPDX-License-Identifier: GPL-2.0-only
//! The send queue: packets from being chained until their completion.

use core::ptr;

use bindings::{ib_send_wr, ib_sge, ib_ud_wr};
use ipoib_core::limits::BATCH_LIMIT;
use ipoib_core::ring::{Producer, Retired, Size};

use crate::alloc::{Arc, KArray, KBox};
use crate::error::{Errno, Result};
use crate::skb::Skb;
use crate::train::{HeaderRing, Mapping};
use crate::verbs::{Ah, Qp, Reset, Wc};

/// Entries that one packet can need.
pub(crate) const MAX_SGE: usize = bindings::MAX_SKB_FRAGS as usize + 1;

/// Marks `wr_id` of ours.
const SEND_ID: u64 = 1 << 32;

/// A packet in the ring, with what the device reads while it sends it.
///
/// The segments of a train share a packet, which the last of them has.
pub(crate) struct Slot {
    pub(crate) skb: Option<Skb>,
    pub(crate) ah: Option<Arc<Ah>>,
    pub(crate) train: Option<KBox<Mapping>>,
    /// Number of the segment in its train, from 1.
    pub(crate) parts: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    /// Bytes to give back to the byte queue limits.
    pub(crate) owed: u32,
    pub(crate) segments: u32,
    pub(crate) sges: [ib_sge; MAX_SGE],
    /// Entries to unmap, of which the first is the linear part if `head` says so.
    pub(crate) count: u32,
    pub(crate) head: bool,
}

impl Slot {
    /// Says whether the device may hold it, or the chain does.
    fn is_used(&self) -> bool {
        self.count > 0 || self.skb.is_some()
    }
}

/// A send request.
pub(crate) struct Request {
    pub(crate) ah: *mut bindings::ib_ah,
    pub(crate) qpn: u32,
    pub(crate) qkey: u32,
    pub(crate) sg_list: *mut ib_sge,
    pub(crate) count: i32,
    pub(crate) flags: i32,
    /// For a packet that the device cuts: its headers, their bytes, and the payload of a segment.
    pub(crate) large: Option<(*const u8, u32, u32)>,
}

/// Where a packet goes.
pub struct Target {
    /// Address handle.
    pub ah: Arc<Ah>,
    /// Queue pair number.
    pub qpn: u32,
    /// Q_Key.
    pub qkey: u32,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amount {
    /// Packets as the stack counts them: a segmented one is one.
    pub skbs: u32,
    /// Packets on the wire.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u32,
    /// Bytes of `skbs` as the byte queue limits count them.
    pub owed: u32,
}

impl Amount {
    fn add(&mut self, slot: &Slot) {
        if slot.skb.is_some() {
            self.skbs = self.skbs.wrapping_add(1);
            self.owed = self.owed.wrapping_add(slot.owed);
        }
        self.packets = self.packets.wrapping_add(slot.segments);
        self.bytes = self.bytes.wrapping_add(slot.bytes);
    }
}

/// What became of a chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Posted {
    /// Requests that the device took.
    pub taken: u32,
    /// What was dropped because it did not take the rest, and why.
    pub refused: Option<(Amount, Errno)>,
}

/// A ring of packets and the chain of requests that is not yet posted.
pub struct SendQueue {
    pub(crate) qp: Arc<Qp>,
    pub(crate) ring: Producer,
    pub(crate) retired: Retired,
    pub(crate) slots: KArray<Slot>,
    pub(crate) headers: HeaderRing,
    wrs: KArray<ib_ud_wr>,
    pub(crate) max_sge: u32,
    /// Requests at the end of what the device took that no completion will tell of.
    untold: u32,
}

// SAFETY: the raw pointers of requests are used under `&mut self` only.
unsafe impl Send for SendQueue {}
// SAFETY: shared access only reads positions.
unsafe impl Sync for SendQueue {}

impl SendQueue {
    /// Makes an empty queue.
    pub fn new(qp: Arc<Qp>, size: Size, max_sge: u32) -> Result<Self> {
        Ok(Self {
            qp,
            ring: Producer::new(size),
            retired: Retired::default(),
            slots: KArray::new(size.slots() as usize, || Slot {
                skb: None,
                ah: None,
                train: None,
                parts: 0,
                bytes: 0,
                owed: 0,
                segments: 0,
                sges: [ib_sge::default(); MAX_SGE],
                count: 0,
                head: false,
            })?,
            headers: HeaderRing::new(size.slots())?,
            wrs: KArray::new(BATCH_LIMIT.max as usize, ib_ud_wr::default)?,
            max_sge,
            untold: 0,
        })
    }

    /// Returns the slots of the ring.
    #[must_use]
    pub const fn size(&self) -> Size {
        self.ring.size()
    }

    /// Returns the free slots.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.ring.free(&self.retired)
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

    /// Returns the requests whose completion is still to come. The device holds more when it took a part of a chain
    /// only: those are retired with the next chain that it takes whole.
    #[must_use]
    pub fn awaited(&self) -> u32 {
        self.outstanding().saturating_sub(self.untold)
    }

    /// Says whether the device holds requests that no completion will tell of.
    #[must_use]
    pub fn has_untold(&self) -> bool {
        self.outstanding() > 0 && self.awaited() == 0
    }

    /// Adds a packet to the chain; `header` bytes of it, when not 0, are repeated in front of each segment.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the ring or the chain is full, `EIO` when the packet can't be mapped, `EMSGSIZE` when it has more
    /// parts than a request takes. The packet is dropped.
    #[inline]
    pub fn push(&mut self, mut skb: Skb, to: Target, header: u32) -> Result<u32> {
        let limit = self.max_sge.saturating_sub(1);
        if skb.fragments() > limit {
            skb.linearize().map_err(|_| Errno::EMSGSIZE)?;
        }
        let bytes = skb.len();
        let head = skb.head().as_ptr();
        let mss = if header > 0 { skb.gso_size() } else { 0 };
        if header > 0 && !skb.pull(header) {
            return Err(Errno::EMSGSIZE);
        }
        let pending = self.ring.pending();
        if pending as usize >= self.wrs.len() {
            return Err(Errno::EBUSY);
        }
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
        slot.owed = bytes;
        slot.parts = 1;
        slot.segments = skb.segments();
        let request = Request {
            ah: to.ah.as_ptr(),
            qpn: to.qpn,
            qkey: to.qkey,
            sg_list: slot.sges.as_mut_ptr(),
            count: count as i32,
            flags: if pd.hca().can_checksum() && skb.wants_checksum() {
                bindings::IB_SEND_IP_CSUM as i32
            } else {
                0
            },
            large: (header > 0).then_some((head, header, mss)),
        };
        slot.skb = Some(skb);
        slot.ah = Some(to.ah);
        self.chain(pending, position, &request);
        Ok(bytes)
    }

    /// Puts a request, number `at` of the chain, behind the others.
    pub(crate) fn chain(&mut self, at: u32, position: u32, request: &Request) {
        let Some(wr) = self.wrs.get_mut(at as usize) else {
            return;
        };
        let (head, header, mss) = request.large.unwrap_or((ptr::null(), 0, 0));
        wr.ah = request.ah;
        wr.remote_qpn = request.qpn;
        wr.remote_qkey = request.qkey;
        wr.header = head.cast_mut().cast();
        wr.hlen = header as i32;
        wr.mss = mss as i32;
        wr.wr.next = ptr::null_mut();
        wr.wr.__bindgen_anon_1.wr_id = SEND_ID | u64::from(position.wrapping_add(1));
        wr.wr.sg_list = request.sg_list;
        wr.wr.num_sge = request.count;
        wr.wr.opcode = if header > 0 {
            bindings::IB_WR_LSO
        } else {
            bindings::IB_WR_SEND
        };
        wr.wr.send_flags = request.flags;
        let wr: *mut ib_send_wr = &raw mut wr.wr;
        let before = at.checked_sub(1).and_then(|i| self.wrs.get_mut(i as usize));
        if let Some(before) = before {
            before.wr.next = wr;
        }
    }

    /// Posts the chain with one doorbell; its last request is signalled.
    ///
    /// What the device refuses is dropped, and what it took before ends in a request that is not signalled: it is
    /// retired with the next completion, and [`Posted::refused`] tells the caller to care for one.
    #[inline]
    pub fn post(&mut self) -> Posted {
        let pending = self.ring.pending();
        let (Some(last), true) = (pending.checked_sub(1), pending > 0) else {
            return Posted {
                taken: 0,
                refused: None,
            };
        };
        if let Some(last) = self.wrs.get_mut(last as usize) {
            last.wr.send_flags |= bindings::IB_SEND_SIGNALED as i32;
        }
        let first: *const ib_send_wr = self.wrs.first().map_or(ptr::null(), |wr| &raw const wr.wr);
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
            self.untold = 0;
            return Posted {
                taken: pending,
                refused: None,
            };
        }
        self.partly(pending, bad, ret)
    }

    /// The device took only what comes before the `bad` one of a chain.
    #[cold]
    fn partly(&mut self, pending: u32, bad: *const ib_send_wr, ret: i32) -> Posted {
        let taken = self
            .wrs
            .iter()
            .take(pending as usize)
            .take_while(|wr| !ptr::eq(&raw const wr.wr, bad))
            .count();
        // A provider that names no bad request took none.
        let taken = if bad.is_null() { 0 } else { taken as u32 };
        self.untold = self.untold.wrapping_add(taken);
        let size = self.ring.size();
        let mut amount = Amount::default();
        let refused = self.ring.posted(taken);
        let start = self.ring.chain_end();
        let outstanding = self.outstanding();
        for position in refused {
            let Some(slot) = self.slots.get_mut(size.slot(position) as usize) else {
                continue;
            };
            let number = position.wrapping_sub(start).wrapping_add(1);
            if slot.skb.is_some() && number < slot.parts && outstanding > 0 {
                // The device holds the train's first segments, which need the packet until they are sent.
                let (skb, ah, train) = (slot.skb.take(), slot.ah.take(), slot.train.take());
                let owed = slot.owed;
                amount.add(slot);
                drop(Self::empty(&self.qp, slot));
                let before = size.slot(start.wrapping_sub(1));
                if let Some(slot) = self.slots.get_mut(before as usize) {
                    (slot.skb, slot.ah, slot.train) = (skb, ah, train);
                    slot.owed = owed;
                }
            } else {
                amount.add(slot);
                drop(Self::empty(&self.qp, slot));
            }
        }
        let errno = Errno::check(ret).err().unwrap_or(Errno::EIO);
        Posted {
            taken,
            refused: Some((amount, errno)),
        }
    }

    /// Retires what a completion covers: adds that to `all`, and gives each packet to `done`.
    ///
    /// Returns the completion's own packet, which is the only one that an error is about: what it covers besides was sent,
    /// or it would have a completion of its own.
    pub fn retire(&mut self, wc: &Wc, all: &mut Amount, mut done: impl FnMut(Skb)) -> Amount {
        let mut own = Amount::default();
        if wc.id() & !u64::from(u32::MAX) != SEND_ID || !wc.is_of(&self.qp) {
            return own;
        }
        let end = wc.id() as u32;
        let size = self.ring.size();
        let outstanding = self.outstanding();
        if end.wrapping_sub(self.retired.position()) > outstanding {
            return own;
        }
        for position in self.retired.positions_to(end, size) {
            if let Some(slot) = self.slots.get_mut(size.slot(position) as usize) {
                all.add(slot);
                if position.wrapping_add(1) == end {
                    own.add(slot);
                }
                if let Some(skb) = Self::empty(&self.qp, slot) {
                    done(skb);
                }
            }
        }
        self.retired.retire_to(end, size);
        // A request that was to have no completion has one after all when it fails, or is flushed.
        self.untold = self.untold.min(self.outstanding());
        own
    }

    /// Drops everything, chained or posted.
    pub fn clear(&mut self, reset: &Reset<'_>) -> Amount {
        let mut amount = Amount::default();
        if !reset.is_of(&self.qp) {
            return amount;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.is_used()) {
            amount.add(slot);
            drop(Self::empty(&self.qp, slot));
        }
        self.untold = 0;
        self.ring = Producer::new(self.ring.size());
        self.retired.reset();
        amount
    }

    #[inline]
    fn empty(qp: &Qp, slot: &mut Slot) -> Option<Skb> {
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
        if let Some(train) = slot.train.take() {
            train.unmap(qp.pd().hca());
        }
        slot.ah = None;
        slot.skb.take()
    }
}

impl Drop for SendQueue {
    fn drop(&mut self) {
        let qp = self.qp.clone();
        if !self.slots.iter().any(Slot::is_used) {
            return;
        }
        match qp.reset() {
            Ok(reset) => {
                self.clear(&reset);
            }
            Err(errno) => {
                // The device may still read them: a leak is better.
                crate::error!("send queue dropped in use, its packets are lost: {errno}");
                for slot in self.slots.iter_mut() {
                    core::mem::forget((slot.skb.take(), slot.ah.take(), slot.train.take()));
                }
            }
        }
    }
}
