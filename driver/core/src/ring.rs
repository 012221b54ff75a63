// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Positions of the transmit ring.
//!
//! Positions are free-running 32-bit counters; a slot's index is its position modulo the ring's size.
//! One ring has two sides. The transmit side, under the transmit lock, reserves slots and posts them:
//! [`Producer`]. The completion side, in NAPI, retires them: [`Retired`]. They share one atomic.
//!
//! ```text
//!  retired          posted              head
//!     |   with the    |     pending      |   free
//!     |    device     | (chain not rung) |
//! ```
//!
//! Only the last work request of a chain is signalled, and a completion retires every position up to
//! its own: rule R7. A queue pair completes in order, so nothing else needs to be remembered.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// The position that an empty ring starts at: shortly before the counters overflow, so that each
/// interface goes through the overflow in its first moments and not after weeks.
const START: u32 = 0_u32.wrapping_sub(1000);

/// The completion side's progress, read by the transmit side.
#[derive(Debug)]
pub struct Retired {
    position: AtomicU32,
}

impl Default for Retired {
    fn default() -> Self {
        Self {
            position: AtomicU32::new(START),
        }
    }
}

impl Retired {
    /// Returns the first position that is not retired.
    pub fn position(&self) -> u32 {
        // Pairs with the release in `retire_to`: a slot seen as free has been emptied.
        self.position.load(Ordering::Acquire)
    }

    /// Retires every position before `end`, which is the end of a posted chain, and returns how many.
    ///
    /// Empty the slots first: the transmit side may fill them as soon as this returns. A stale or
    /// foreign `end` (one not within the `posted` positions) retires nothing.
    pub fn retire_to(&self, end: u32, size: Size) -> u32 {
        let start = self.position.load(Ordering::Relaxed);
        let count = end.wrapping_sub(start);
        if count > size.slots() {
            return 0;
        }
        self.position.store(end, Ordering::Release);
        count
    }

    /// Returns the positions that `end` would retire, the oldest first.
    pub fn positions_to(&self, end: u32, size: Size) -> Positions {
        let start = self.position.load(Ordering::Relaxed);
        let count = end.wrapping_sub(start);
        Positions {
            next: start,
            left: if count > size.slots() { 0 } else { count },
        }
    }

    /// Starts anew with empty rings on both sides. No completion may be under way.
    pub fn reset(&self) {
        self.position.store(START, Ordering::Release);
    }
}

/// The number of slots of a ring.
///
/// # Invariants
///
/// A power of two, at most 2^31.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Size(u32);

impl Size {
    /// Returns `None` for what is not a power of two.
    #[must_use]
    pub const fn new(slots: u32) -> Option<Self> {
        if slots.is_power_of_two() {
            Some(Self(slots))
        } else {
            None
        }
    }

    /// Returns the number of slots.
    #[must_use]
    pub const fn slots(self) -> u32 {
        self.0
    }

    /// Returns the slot of a position.
    #[must_use]
    pub const fn slot(self, position: u32) -> u32 {
        position & self.0.wrapping_sub(1)
    }
}

/// Positions in ascending order.
#[derive(Clone, Debug)]
pub struct Positions {
    next: u32,
    left: u32,
}

impl Iterator for Positions {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let position = self.next;
        self.next = position.wrapping_add(1);
        Some(position)
    }
}

/// The transmit side. It belongs to the holder of the transmit lock.
#[derive(Debug)]
pub struct Producer {
    size: Size,
    posted: u32,
    head: u32,
}

impl Producer {
    /// Returns an empty ring.
    #[must_use]
    pub const fn new(size: Size) -> Self {
        Self {
            size,
            posted: START,
            head: START,
        }
    }

    /// Returns the ring's size.
    #[must_use]
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Returns the slots that can be reserved. Pending ones count as used: rule R5.
    pub fn free(&self, retired: &Retired) -> u32 {
        let used = self.head.wrapping_sub(retired.position());
        self.size.slots().saturating_sub(used)
    }

    /// Reserves the next slot and returns its position, or `None` when the ring is full.
    pub fn reserve(&mut self, retired: &Retired) -> Option<u32> {
        if self.free(retired) == 0 {
            return None;
        }
        let position = self.head;
        self.head = position.wrapping_add(1);
        Some(position)
    }

    /// Gives back the slot reserved last, unless nothing is pending.
    pub fn unreserve(&mut self) {
        if self.pending() > 0 {
            self.head = self.head.wrapping_sub(1);
        }
    }

    /// Returns the work requests that were reserved and not yet posted.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.head.wrapping_sub(self.posted)
    }

    /// Returns the positions of the pending chain, the oldest first.
    #[must_use]
    pub const fn chain(&self) -> Positions {
        Positions {
            next: self.posted,
            left: self.pending(),
        }
    }

    /// Returns the position after the pending chain: the `wr_id` of its signalled last request.
    #[must_use]
    pub const fn chain_end(&self) -> u32 {
        self.head
    }

    /// Notes that the device took the first `count` requests of the pending chain, and returns the
    /// positions that it did not take; they are free again: rule R6.
    ///
    /// `count` is the whole chain on success.
    pub fn posted(&mut self, count: u32) -> Positions {
        let taken = count.min(self.pending());
        self.posted = self.posted.wrapping_add(taken);
        let rest = Positions {
            next: self.posted,
            left: self.pending(),
        };
        self.head = self.posted;
        rest
    }

    /// Returns the requests that the device holds.
    pub fn outstanding(&self, retired: &Retired) -> u32 {
        self.posted.wrapping_sub(retired.position())
    }
}
