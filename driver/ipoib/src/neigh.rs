// SPDX-License-Identifier: GPL-2.0-only
//! Destinations: link-layer addresses and how to reach them. The transmit lock protects the table.

use ipoib_core::wire::Address;
use kernel::alloc::{Arc, Context, KArray};
use kernel::error::Result;
use kernel::list::List;
use kernel::skb::SkbQueue;
use kernel::verbs::Ah;

/// Buckets; a power of two.
const BUCKETS: usize = 256;

/// Where a destination stands.
pub(crate) enum State {
    /// Packets wait for a path or for a join.
    Waiting {
        /// The packets, link-layer header in front.
        queue: SkbQueue,
        /// Somebody was asked.
        asked: bool,
    },
    /// Packets can go.
    Ready(Arc<Ah>),
    /// It can't be reached; what comes before this time (milliseconds) is dropped.
    Failed(u32),
}

/// A destination.
pub(crate) struct Neigh {
    /// Its address, see [`Address::destination`].
    pub address: Address,
    /// How to reach it.
    pub state: State,
    /// Used since the last round of aging.
    pub used: bool,
}

/// The table of destinations.
pub(crate) struct Table {
    buckets: KArray<List<Neigh>>,
}

impl Table {
    /// Makes an empty table.
    pub(crate) fn new() -> Result<Self> {
        KArray::new(BUCKETS, List::default).map(|buckets| Self { buckets })
    }

    fn bucket(address: &Address) -> usize {
        usize::from(address.hash()) % BUCKETS
    }

    /// Returns a destination.
    pub(crate) fn find(&mut self, address: &Address) -> Option<&mut Neigh> {
        let bucket = self.buckets.get_mut(Self::bucket(address))?;
        bucket.iter_mut().find(|neigh| neigh.address == *address)
    }

    /// Adds a destination that is not yet known. Any context.
    pub(crate) fn add(&mut self, address: Address, state: State) -> Result<&mut Neigh> {
        let neigh = Neigh {
            address,
            state,
            used: true,
        };
        // The bucket exists: its index is less than the number of buckets.
        let index = Self::bucket(&address);
        match self.buckets.get_mut(index) {
            Some(bucket) => bucket.push(neigh, Context::Atomic),
            None => Err(kernel::error::Errno::EINVAL),
        }
    }

    /// Returns all destinations.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Neigh> {
        self.buckets.iter_mut().flat_map(List::iter_mut)
    }

    /// Drops the destinations that `keep` refuses, and returns the number of packets, as on the wire, that waited for them.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut Neigh) -> bool) -> u32 {
        let mut lost = 0_u32;
        for bucket in self.buckets.iter_mut() {
            bucket.retain(|neigh| {
                let kept = keep(neigh);
                if let (false, State::Waiting { queue, .. }) = (kept, &neigh.state) {
                    lost = lost.wrapping_add(queue.packets());
                }
                kept
            });
        }
        lost
    }
}
