// SPDX-License-Identifier: GPL-2.0-only
//! Receive buffers of connections: pages that are posted until a message fills them.

use core::ptr;

use bindings::{ib_recv_wr, ib_sge, ipoib_h_page};
use ipoib_core::connect::{MAX_PAGES, PAGE, head_bytes, pages};
use ipoib_core::refill::{POST_BATCH, is_copied, is_due};
use ipoib_core::wire::ENCAP_LEN;

use crate::alloc::{Arc, KArray};
use crate::error::{Errno, Result};
use crate::napi::Poll;
use crate::netdev::Driver;
use crate::pool::Raw;
use crate::rc::{RcQp, RcReset, Srq};
use crate::skb::Skb;
use crate::verbs::{Hca, Pd, Wc};

/// Where buffers are posted.
pub enum Place<D: Driver> {
    /// To a queue that connections share.
    Shared(Arc<Srq>),
    /// To one connection's own.
    Own(Arc<RcQp<D>>),
    /// Nowhere: the queue is being dropped.
    Nowhere,
}

/// A buffer: its mapped pages, or none.
struct Slot {
    pages: [ipoib_h_page; MAX_PAGES],
    sges: [ib_sge; MAX_PAGES],
    filled: bool,
    posted: bool,
}

/// Receive buffers of one place.
pub struct PageQueue<D: Driver> {
    place: Place<D>,
    pd: Arc<Pd>,
    pool: Raw,
    slots: KArray<Slot>,
    /// Slots that can be posted: the first `waiting` of them.
    ready: KArray<u32>,
    waiting: u32,
    posted: u32,
    wrs: KArray<ib_recv_wr>,
    /// Pages of a buffer.
    count: usize,
    /// Nothing is posted any more.
    closed: bool,
}

// SAFETY: pages and requests are used under `&mut self` only.
unsafe impl<D: Driver> Send for PageQueue<D> {}
// SAFETY: shared access only reads counts.
unsafe impl<D: Driver> Sync for PageQueue<D> {}

/// What a completion gives.
pub enum Message {
    /// A packet, copied so that its buffer could be posted again.
    Copied(Skb),
    /// A packet that took its pages along.
    Whole(Skb),
    /// A packet that was dropped for want of memory.
    NoMemory,
    /// Nothing: the request failed or is not ours.
    Nothing,
}

impl<D: Driver> PageQueue<D> {
    /// Makes a queue of `size` buffers of `pages` pages and fills it. Process context.
    pub fn new(pd: &Arc<Pd>, place: Place<D>, size: u32, pages: u32) -> Result<Self> {
        let count = (pages as usize).clamp(1, MAX_PAGES);
        let slots = size as usize;
        let most = size.saturating_mul(count as u32);
        // SAFETY: it was created for this queue alone.
        let pool = unsafe { Raw::new(bindings::ipoib_h_page_pool(most)) }?;
        let mut queue = Self {
            place,
            pd: pd.clone(),
            pool,
            slots: KArray::new(slots, || Slot {
                pages: [ipoib_h_page::default(); MAX_PAGES],
                sges: [ib_sge::default(); MAX_PAGES],
                filled: false,
                posted: false,
            })?,
            ready: KArray::new(slots, || 0)?,
            waiting: 0,
            posted: 0,
            wrs: KArray::new(POST_BATCH as usize, ib_recv_wr::default)?,
            count,
            closed: false,
        };
        for index in 0..size {
            let Some(slot) = queue.slots.get_mut(index as usize) else {
                break;
            };
            let lkey = pd.lkey();
            let pages = slot.pages.get_mut(..count).unwrap_or_default();
            if !take_pages(&queue.pool, pd.hca(), pages, false) {
                return Err(Errno::ENOMEM);
            }
            slot.filled = true;
            for (page, sge) in pages.iter().zip(&mut slot.sges) {
                *sge = ib_sge {
                    addr: page.address,
                    length: PAGE,
                    lkey,
                };
            }
            queue.make_ready(index);
        }
        Ok(queue)
    }

    /// Returns the buffers that the device holds.
    #[must_use]
    pub const fn posted(&self) -> u32 {
        self.posted
    }

    /// Returns the buffers.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Posts nothing any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Posts buffers if it is time to, or all with `flush`; returns the doorbells rung.
    pub fn refill(&mut self, flush: bool) -> Result<u32> {
        let mut rung = 0_u32;
        while !self.closed
            && (is_due(self.waiting, self.posted, self.size()) || (flush && self.waiting > 0))
        {
            self.post_chain()?;
            rung = rung.wrapping_add(1);
        }
        Ok(rung)
    }

    /// Takes the packet of a completion. A payload of up to `threshold` bytes is copied; any other one takes its pages
    /// along, and the buffer gets others.
    pub fn complete(&mut self, poll: &Poll, wc: &Wc, threshold: u32) -> Message {
        let index = wc.id() as u32;
        let Some(slot) = self
            .slots
            .get_mut(index as usize)
            .filter(|slot| slot.posted)
        else {
            return Message::Nothing;
        };
        slot.posted = false;
        self.posted = self.posted.wrapping_sub(1);
        let message = if wc.is_ok() {
            let most = (self.count as u32).wrapping_mul(PAGE);
            let bytes = wc.bytes().min(most);
            slot.take(&self.pool, self.pd.hca(), poll, bytes, threshold)
        } else {
            Message::Nothing
        };
        self.make_ready(index);
        message
    }

    fn make_ready(&mut self, index: u32) {
        if let Some(entry) = self.ready.get_mut(self.waiting as usize) {
            *entry = index;
            self.waiting = self.waiting.wrapping_add(1);
        }
    }

    fn post_chain(&mut self) -> Result {
        let count = self.waiting.min(POST_BATCH);
        let base = self.waiting.wrapping_sub(count);
        let entries = self.count as i32;
        let mut next: *mut ib_recv_wr = ptr::null_mut();
        // From the end, so that each request can point to the next.
        for i in (0..count).rev() {
            let Some(&index) = self.ready.get(base.wrapping_add(i) as usize) else {
                continue;
            };
            let (Some(slot), Some(wr)) = (
                self.slots.get_mut(index as usize),
                self.wrs.get_mut(i as usize),
            ) else {
                continue;
            };
            slot.posted = true;
            wr.next = next;
            wr.__bindgen_anon_1.wr_id = u64::from(index);
            wr.sg_list = slot.sges.as_mut_ptr();
            wr.num_sge = entries;
            next = wr;
        }
        self.waiting = base;
        self.posted = self.posted.wrapping_add(count);
        let mut bad: *const ib_recv_wr = ptr::null();
        // SAFETY: queue pair or shared queue are valid; the requests and their buffers stay in place until completion.
        let ret = unsafe {
            match &self.place {
                Place::Nowhere => Errno::ENODEV.raw(),
                Place::Shared(srq) => {
                    let srq = srq.as_ptr();
                    match (*(*srq).device).ops.post_srq_recv {
                        Some(post) => post(srq, next, &raw mut bad),
                        None => Errno::EOPNOTSUPP.raw(),
                    }
                }
                Place::Own(qp) => {
                    let qp = qp.as_ptr();
                    match (*(*qp).device).ops.post_recv {
                        Some(post) => post(qp, next, &raw mut bad),
                        None => Errno::EOPNOTSUPP.raw(),
                    }
                }
            }
        };
        if ret == 0 {
            return Ok(());
        }
        // What was not taken waits again.
        let taken = self
            .wrs
            .iter()
            .take(count as usize)
            .take_while(|wr| !ptr::eq(&raw const **wr, bad))
            .count() as u32;
        let taken = if bad.is_null() { 0 } else { taken };
        for i in taken..count {
            let Some(&index) = self.ready.get(base.wrapping_add(i) as usize) else {
                continue;
            };
            if let Some(slot) = self.slots.get_mut(index as usize) {
                slot.posted = false;
            }
            self.posted = self.posted.wrapping_sub(1);
            self.make_ready(index);
        }
        Err(Errno::check(ret).err().unwrap_or(Errno::EIO))
    }

    /// Notes that a queue pair of its own holds no buffers any more.
    pub fn taken_back(&mut self, reset: &RcReset<'_, D>) {
        if matches!(&self.place, Place::Own(qp) if reset.is_of(qp)) {
            for slot in self.slots.iter_mut() {
                slot.posted = false;
            }
            self.posted = 0;
            self.closed = true;
        }
    }
}

impl<D: Driver> Drop for PageQueue<D> {
    fn drop(&mut self) {
        let returned = match core::mem::replace(&mut self.place, Place::Nowhere) {
            // The device gives the buffers back when the queue is destroyed, which dropping the last reference does.
            Place::Shared(srq) => srq.is_unique(),
            Place::Own(qp) => self.posted == 0 || qp.reset().is_ok(),
            Place::Nowhere => true,
        };
        if !returned {
            crate::error!(
                "{}: receive buffers of connections dropped in use, they are lost",
                self.pd.hca().name()
            );
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.filled) {
            let pages = slot.pages.get(..self.count).unwrap_or_default();
            // SAFETY: the pages are of this pool, owned, and mapped for this HCA, which no longer uses them.
            unsafe {
                bindings::ipoib_h_pages_free(
                    self.pool.as_ptr(),
                    self.pd.hca().as_ptr(),
                    pages.as_ptr(),
                    pages.len() as u32,
                );
            }
        }
    }
}

/// Takes a page for each entry, or none and returns false; `in_poll` says that this is the poller.
fn take_pages(pool: &Raw, hca: &Hca, pages: &mut [ipoib_h_page], in_poll: bool) -> bool {
    // SAFETY: pool and HCA are valid, the slice has so many entries, and nobody else takes pages: the queue is its caller's.
    unsafe {
        bindings::ipoib_h_pages_new(
            pool.as_ptr(),
            hca.as_ptr(),
            pages.as_mut_ptr(),
            pages.len() as u32,
            in_poll,
        )
    }
}

impl Slot {
    /// Makes a packet of the first `bytes`.
    fn take(&mut self, pool: &Raw, hca: &Hca, poll: &Poll, bytes: u32, threshold: u32) -> Message {
        let payload = bytes.saturating_sub(ENCAP_LEN as u32);
        let copied = is_copied(payload, threshold) && bytes <= PAGE;
        let head = if copied { bytes } else { head_bytes(bytes) };
        let Some(first) = self.pages.first().copied() else {
            return Message::Nothing;
        };
        // SAFETY: the HCA is done with the page, which has at least `head` bytes.
        let skb = unsafe {
            Skb::from_raw(bindings::ipoib_h_rc_head(
                poll.napi(),
                hca.as_ptr(),
                first.page,
                first.address,
                head,
            ))
        };
        let Some(skb) = skb else {
            return Message::NoMemory;
        };
        if copied {
            return Message::Copied(skb);
        }
        let mut fresh = [ipoib_h_page::default(); MAX_PAGES];
        let fresh = fresh.get_mut(..pages(bytes) as usize).unwrap_or_default();
        if !take_pages(pool, hca, fresh, true) {
            return Message::NoMemory;
        }
        // SAFETY: the pages are owned, given to the packet, and mapped for this HCA, which is done with them; they have as
        // many bytes.
        unsafe {
            bindings::ipoib_h_rc_frags(
                skb.as_ptr(),
                hca.as_ptr(),
                self.pages.as_ptr(),
                head,
                bytes.wrapping_sub(head),
            );
        }
        for ((old, new), sge) in self.pages.iter_mut().zip(fresh).zip(&mut self.sges) {
            *old = *new;
            sge.addr = new.address;
        }
        Message::Whole(skb)
    }
}
