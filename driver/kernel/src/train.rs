// SPDX-License-Identifier: GPL-2.0-only
//! Large packets: cut into requests of one packet each, which share the large one's payload. Only headers are made anew;
//! packets of their own would each cost the stack an allocation, a copy of its bookkeeping and a way through the driver.

use bindings::ib_sge;
use ipoib_core::limits::BATCH_LIMIT;
use ipoib_core::segment::{Headers, MAX_HEADER, Piece, Sums};

use crate::alloc::{Arc, Context, KArray, KBox};
use crate::error::{Errno, Result};
use crate::sendq::{MAX_SGE, Request, SendQueue, Target};
use crate::skb::Skb;
use crate::verbs::{Ah, Hca};

/// Packets that a large one is cut into at most.
pub const MAX_TRAIN: u32 = 64;

/// Headers in one piece of memory that the device reads.
const BLOCK: usize = 8;

/// Memory for the headers of each slot.
pub(crate) struct HeaderRing(KArray<Option<KBox<[[u8; MAX_HEADER]; BLOCK]>>>);

impl HeaderRing {
    /// Makes it for so many slots.
    pub(crate) fn new(slots: u32) -> Result<Self> {
        let blocks = (slots as usize).div_ceil(BLOCK);
        let blocks = KArray::new(blocks, || {
            KBox::new([[0; MAX_HEADER]; BLOCK], Context::Process).ok()
        })?;
        if blocks.iter().any(Option::is_none) {
            return Err(Errno::ENOMEM);
        }
        Ok(Self(blocks))
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut [u8; MAX_HEADER]> {
        let slot = slot as usize;
        let block = self.0.get_mut(slot.checked_div(BLOCK)?)?.as_mut()?;
        block.get_mut(slot.checked_rem(BLOCK)?)
    }
}

/// Where a large packet is for the device.
pub(crate) struct Mapping {
    sges: [ib_sge; MAX_SGE],
    count: u32,
    head: bool,
}

impl Mapping {
    fn new(hca: &Hca, lkey: u32, skb: &Skb) -> Result<KBox<Self>> {
        let mapping = Self {
            sges: [ib_sge::default(); MAX_SGE],
            count: 0,
            head: skb.head_len() > 0,
        };
        let mut mapping = KBox::new(mapping, Context::Atomic)?;
        // SAFETY: HCA and packet are valid; a packet has at most MAX_SGE parts.
        let count = unsafe {
            bindings::ipoib_h_map_tx(hca.as_ptr(), skb.as_ptr(), mapping.sges.as_mut_ptr(), lkey)
        };
        mapping.count = u32::try_from(count).map_err(|_| Errno::EIO)?;
        Ok(mapping)
    }

    /// Takes it away from the device, which no longer uses it.
    pub(crate) fn unmap(&self, hca: &Hca) {
        // SAFETY: these entries were mapped, for this HCA.
        unsafe {
            bindings::ipoib_h_unmap_tx(hca.as_ptr(), self.head, self.sges.as_ptr(), self.count);
        }
    }
}

/// A large packet that is being cut. Give it to [`SendQueue::segment`] until that says that it was the last, or to
/// [`SendQueue::give_up`].
pub struct Train {
    /// What the last slot of the train takes over.
    load: Option<(Skb, KBox<Mapping>)>,
    ah: Arc<Ah>,
    qpn: u32,
    qkey: u32,
    headers: Headers,
    sums: Sums,
    mss: u32,
    payload: u32,
    bytes: u32,
    index: u32,
    offset: u32,
    /// Where the next piece begins: entry of the mapping, and bytes of it that are done.
    entry: usize,
    done: u32,
    /// Position of the first segment.
    first: u32,
}

impl Train {
    /// Returns the bytes of the longest segment, encapsulation header included.
    #[must_use]
    pub const fn longest(&self) -> u32 {
        self.mss.saturating_add(self.headers.length as u32)
    }

    /// Returns the packets that are not in the ring yet.
    #[must_use]
    pub fn left(&self) -> u32 {
        let left = self.payload.saturating_sub(self.offset);
        left.div_ceil(self.mss.max(1))
    }
}

impl SendQueue {
    /// Begins to cut a packet that starts with its encapsulation header.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the ring has no room for all of it, `EMSGSIZE` when it is no packet that can be cut, or makes more
    /// than [`MAX_TRAIN`], `ENOMEM`, `EIO` when it can't be mapped. The packet is dropped.
    pub fn begin(&mut self, skb: Skb, to: Target) -> Result<Train> {
        let mut shape = bindings::ipoib_h_train::default();
        // SAFETY: the packet is valid.
        let is_train = unsafe { bindings::ipoib_h_shape(skb.as_ptr(), &raw mut shape) };
        let headers = Headers {
            ip: usize::from(shape.ip),
            transport: usize::from(shape.transport),
            length: usize::from(shape.length),
            tcp: shape.tcp,
        };
        let payload = skb.len().saturating_sub(u32::from(shape.length));
        let segments = payload.div_ceil(shape.mss.max(1));
        let fits = headers.length <= MAX_HEADER && headers.length <= skb.head_len() as usize;
        let parts = skb.fragments().saturating_add(2);
        if !is_train || !fits || payload == 0 || segments > MAX_TRAIN || parts > self.max_sge {
            return Err(Errno::EMSGSIZE);
        }
        let sums = headers.sums(skb.head()).ok_or(Errno::EMSGSIZE)?;
        if self.free() < segments {
            return Err(Errno::EBUSY);
        }
        let pd = self.qp.pd();
        let mapping = Mapping::new(pd.hca(), pd.lkey(), &skb)?;
        let bytes = skb.len();
        Ok(Train {
            load: Some((skb, mapping)),
            ah: to.ah,
            qpn: to.qpn,
            qkey: to.qkey,
            headers,
            sums,
            mss: shape.mss,
            payload,
            bytes,
            index: 0,
            offset: 0,
            entry: 0,
            // The headers are in front of the first piece.
            done: u32::from(shape.length),
            first: self.ring.chain_end(),
        })
    }

    /// Adds the next segment to the chain; says whether more follow.
    ///
    /// # Errors
    ///
    /// `EIO` when its headers can't be mapped, `EBUSY` when there is no room in the chain or in the ring.
    pub fn segment(&mut self, train: &mut Train) -> Result<bool> {
        if self.ring.pending() >= BATCH_LIMIT.max {
            return Err(Errno::EBUSY);
        }
        let position = self.ring.reserve(&self.retired).ok_or(Errno::EBUSY)?;
        let added = self.fill(train, position);
        if added.is_err() {
            self.ring.unreserve();
        }
        added
    }

    fn fill(&mut self, train: &mut Train, position: u32) -> Result<bool> {
        // The slot reserved just now is a part of the chain already.
        let at = self.ring.pending().wrapping_sub(1);
        let index = self.ring.size().slot(position);
        let (Some(slot), Some(header), Some((skb, mapping))) = (
            self.slots.get_mut(index as usize),
            self.headers.get_mut(index),
            &train.load,
        ) else {
            return Err(Errno::EBUSY);
        };
        let length = train.mss.min(train.payload.saturating_sub(train.offset));
        let last = train.offset.saturating_add(length) >= train.payload;
        let size = train.headers.length;
        let (Some(original), Some(header)) = (skb.head().get(..size), header.get_mut(..size))
        else {
            return Err(Errno::EMSGSIZE);
        };
        header.copy_from_slice(original);
        let from = (size as u32).saturating_add(train.offset);
        while mapping
            .sges
            .get(train.entry)
            .is_some_and(|part| part.length <= train.done)
        {
            train.entry = train.entry.wrapping_add(1);
            train.done = 0;
        }
        let piece = Piece {
            index: train.index,
            offset: train.offset,
            length,
            last,
            // SAFETY: the packet is valid and has these bytes.
            sum: unsafe {
                bindings::ipoib_h_sum(
                    skb.as_ptr(),
                    mapping.head,
                    train.entry as u32,
                    train.done,
                    from,
                    length,
                )
            },
        };
        if !train.headers.write(header, &train.sums, piece) {
            return Err(Errno::EMSGSIZE);
        }
        let pd = self.qp.pd();
        let lkey = pd.lkey();
        let mut sges = slot.sges.iter_mut();
        let Some(first) = sges.next() else {
            return Err(Errno::EMSGSIZE);
        };
        // SAFETY: the headers are in the kernel's memory and stay where they are while the queue lives.
        let address = unsafe { map_header(pd.hca(), header) }?;
        *first = ib_sge {
            addr: address,
            length: size as u32,
            lkey,
        };
        let mut count = 1_i32;
        let mut left = length;
        while left > 0 {
            let Some(part) = mapping.sges.get(train.entry) else {
                break;
            };
            let here = part.length.saturating_sub(train.done).min(left);
            if here == 0 {
                train.entry = train.entry.wrapping_add(1);
                train.done = 0;
                continue;
            }
            let Some(sge) = sges.next() else { break };
            *sge = ib_sge {
                addr: part.addr.wrapping_add(u64::from(train.done)),
                length: here,
                lkey,
            };
            count = count.wrapping_add(1);
            left = left.wrapping_sub(here);
            train.done = train.done.wrapping_add(here);
        }
        if left > 0 {
            // SAFETY: mapped above.
            unsafe { bindings::ipoib_h_unmap_tx(pd.hca().as_ptr(), true, slot.sges.as_ptr(), 1) };
            return Err(Errno::EMSGSIZE);
        }
        let sg_list = slot.sges.as_mut_ptr();
        slot.head = true;
        slot.count = 1;
        slot.bytes = length.saturating_add(size as u32);
        slot.segments = 1;
        slot.owed = 0;
        slot.parts = train.index.wrapping_add(1);
        train.index = slot.parts;
        train.offset = train.offset.saturating_add(length);
        if last {
            if let Some((skb, mapping)) = train.load.take() {
                slot.skb = Some(skb);
                slot.train = Some(mapping);
            }
            slot.ah = Some(train.ah.clone());
            slot.owed = train.bytes;
        }
        let request = Request {
            ah: train.ah.as_ptr(),
            qpn: train.qpn,
            qkey: train.qkey,
            sg_list,
            count,
            flags: 0,
            large: None,
        };
        self.chain(at, position, &request);
        Ok(!last)
    }

    /// Ends a train early, after the device refused a part of it. Segments that it took keep the packet until they are
    /// sent; says whether there are such.
    pub fn give_up(&mut self, mut train: Train) -> bool {
        let Some((skb, mapping)) = train.load.take() else {
            return true;
        };
        let taken = self.ring.chain_end().wrapping_sub(train.first);
        if taken == 0 || taken > train.index {
            mapping.unmap(self.qp.pd().hca());
            return false;
        }
        let index = self.ring.size().slot(self.ring.chain_end().wrapping_sub(1));
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.skb = Some(skb);
            slot.train = Some(mapping);
            slot.ah = Some(train.ah);
            slot.owed = train.bytes;
        }
        true
    }
}

/// # Safety
///
/// The bytes stay where they are until the device no longer reads them.
unsafe fn map_header(hca: &Hca, header: &mut [u8]) -> Result<u64> {
    let mut address = 0;
    // SAFETY: the HCA is valid; the rest is as the caller says.
    let mapped = unsafe {
        bindings::ipoib_h_map_header(
            hca.as_ptr(),
            header.as_mut_ptr().cast(),
            header.len(),
            &raw mut address,
        )
    };
    if mapped { Ok(address) } else { Err(Errno::EIO) }
}
