// SPDX-License-Identifier: GPL-2.0-only
//! The receive queue: buffers from being posted until a packet fills them.

use core::mem::ManuallyDrop;
use core::ptr;

use bindings::{ib_recv_wr, ib_sge};
use ipoib_core::refill::{POST_BATCH, is_due};
use ipoib_core::ring::Size;
use ipoib_core::wire::ADDRESS_LEN;

use crate::alloc::{Arc, KArray};
use crate::error::{Errno, Result};
use crate::pool::{Buffer, Pool};
use crate::skb::Skb;
use crate::verbs::{Qp, Reset, Wc};

/// Marks `wr_id` of ours.
const RECV_ID: u64 = 1 << 33;

struct Slot {
    buffer: Option<Buffer>,
    posted: bool,
}

/// A ring of receive buffers.
pub struct RecvQueue {
    qp: Arc<Qp>,
    slots: KArray<Slot>,
    /// Slots whose buffer can be posted: the first `waiting` of them.
    ready: KArray<u32>,
    waiting: u32,
    posted: u32,
    pool: ManuallyDrop<Pool>,
    wrs: KArray<ib_recv_wr>,
    sges: KArray<ib_sge>,
}

// SAFETY: the raw pointers of requests are used under `&mut self` only.
unsafe impl Send for RecvQueue {}
// SAFETY: shared access only reads counts.
unsafe impl Sync for RecvQueue {}

/// What a completion gives.
pub enum Received {
    /// A packet that begins with the space of a GRH.
    Packet(Skb),
    /// A packet that was dropped, because there is no memory for another buffer.
    NoMemory,
    /// Nothing: the request failed or is not ours.
    Nothing,
}

impl RecvQueue {
    /// Makes a queue without buffers; each will have `buffer` bytes.
    pub fn new(qp: Arc<Qp>, size: Size, buffer: u32) -> Result<Self> {
        let slots = size.slots() as usize;
        Ok(Self {
            qp,
            slots: KArray::new(slots, || Slot {
                buffer: None,
                posted: false,
            })?,
            ready: KArray::new(slots, || 0)?,
            waiting: 0,
            posted: 0,
            pool: ManuallyDrop::new(Pool::new(size.slots(), ADDRESS_LEN as u32, buffer)?),
            wrs: KArray::new(POST_BATCH as usize, ib_recv_wr::default)?,
            sges: KArray::new(POST_BATCH as usize, ib_sge::default)?,
        })
    }

    /// Returns the slots of the ring.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the buffers that the device holds.
    #[must_use]
    pub const fn posted(&self) -> u32 {
        self.posted
    }

    /// Gives each empty slot a buffer and posts all. The poller is disabled.
    pub fn fill(&mut self) -> Result {
        for index in 0..self.size() {
            let Some(slot) = self.slots.get_mut(index as usize) else {
                break;
            };
            if slot.buffer.is_none() {
                let hca = self.qp.pd().hca();
                slot.buffer = Some(self.pool.buffer(hca, false).ok_or(Errno::ENOMEM)?);
                self.make_ready(index);
            }
        }
        let mut attempts = 3_u32;
        while self.waiting > 0 {
            // Some buffers are enough to begin with: the rest is posted with the next completion.
            match self.post_chain() {
                Err(_) if self.posted == 0 && attempts > 0 => attempts = attempts.wrapping_sub(1),
                Err(errno) if self.posted == 0 => return Err(errno),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Posts buffers if it is time to; returns the doorbells rung.
    pub fn refill(&mut self, flush: bool) -> Result<u32> {
        let mut rung = 0_u32;
        while is_due(self.waiting, self.posted, self.size()) || (flush && self.waiting > 0) {
            self.post_chain()?;
            rung = rung.wrapping_add(1);
        }
        Ok(rung)
    }

    /// Takes the packet of a completion; its buffer is replaced. In the poller.
    pub fn complete(&mut self, wc: &Wc) -> Received {
        if wc.id() & !u64::from(u32::MAX) != RECV_ID || !wc.is_of(&self.qp) {
            return Received::Nothing;
        }
        let index = wc.id() as u32;
        let Some(slot) = self
            .slots
            .get_mut(index as usize)
            .filter(|slot| slot.posted)
        else {
            return Received::Nothing;
        };
        slot.posted = false;
        self.posted = self.posted.wrapping_sub(1);
        let hca = self.qp.pd().hca();
        if !wc.is_ok() {
            if let Some(buffer) = slot.buffer.take() {
                self.pool.free(hca, buffer);
            }
            return Received::Nothing;
        }
        let Some(new) = self.pool.buffer(hca, true) else {
            self.make_ready(index);
            return Received::NoMemory;
        };
        let full = slot.buffer.replace(new);
        let packet = full.and_then(|buffer| self.pool.packet(hca, buffer, wc.bytes()));
        self.make_ready(index);
        packet.map_or(Received::NoMemory, Received::Packet)
    }

    /// Drops all buffers.
    pub fn clear(&mut self, reset: &Reset<'_>) {
        if reset.is_of(&self.qp) {
            for slot in self.slots.iter_mut() {
                slot.posted = false;
                if let Some(buffer) = slot.buffer.take() {
                    self.pool.free(self.qp.pd().hca(), buffer);
                }
            }
            self.waiting = 0;
            self.posted = 0;
        }
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
        let lkey = self.qp.pd().lkey();
        let mut next: *mut ib_recv_wr = ptr::null_mut();
        // From the end, so that each request can point to the next.
        for i in (0..count).rev() {
            let Some(&index) = self.ready.get(base.wrapping_add(i) as usize) else {
                continue;
            };
            let (Some(slot), Some(wr), Some(sge)) = (
                self.slots.get_mut(index as usize),
                self.wrs.get_mut(i as usize),
                self.sges.get_mut(i as usize),
            ) else {
                continue;
            };
            let Some(buffer) = &slot.buffer else {
                continue;
            };
            slot.posted = true;
            *sge = ib_sge {
                addr: buffer.address(),
                length: self.pool.bytes(),
                lkey,
            };
            wr.next = next;
            wr.__bindgen_anon_1.wr_id = RECV_ID | u64::from(index);
            wr.sg_list = sge;
            wr.num_sge = 1;
            next = wr;
        }
        self.waiting = base;
        self.posted = self.posted.wrapping_add(count);
        let mut bad: *const ib_recv_wr = ptr::null();
        let qp = self.qp.as_ptr();
        // SAFETY: the QP is valid; the requests and their buffers stay in place until their completion.
        let ret = unsafe {
            match (*(*qp).device).ops.post_recv {
                Some(post_recv) => post_recv(qp, next, &raw mut bad),
                None => Errno::EOPNOTSUPP.raw(),
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
}

impl Drop for RecvQueue {
    fn drop(&mut self) {
        let qp = self.qp.clone();
        if self.slots.iter().any(|slot| slot.buffer.is_some()) {
            match qp.reset() {
                Ok(reset) => self.clear(&reset),
                Err(errno) => {
                    // The device may still write to them: a leak is better.
                    crate::error!("receive queue dropped in use, its buffers are lost: {errno}");
                    return;
                }
            }
        }
        // SAFETY: the pool is used no more.
        unsafe { ManuallyDrop::drop(&mut self.pool) };
    }
}
