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
pub enum State {
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
pub struct Neigh {
    /// Its address, see [`key`].
    pub address: Address,
    /// How to reach it.
    pub state: State,
    /// Used since the last round of aging.
    pub used: bool,
}

/// The table of destinations.
pub struct Table {
    buckets: KArray<List<Neigh>>,
}

/// Returns the address under which a destination is kept: without flags, and with the queue pair number that multicast
/// packets carry.
pub fn key(address: &Address, pkey: u16) -> Address {
    if !address.is_multicast() {
        let mut own = *address;
        let Address([flags, ..]) = &mut own;
        *flags = 0;
        return own;
    }
    let mut gid = address.gid();
    // The stack maps IP groups to GIDs with the P_Key that the broadcast address had at that time.
    let [high, low] = pkey.to_be_bytes();
    let [_, _, _, _, a, b, ..] = &mut gid;
    *a = high;
    *b = low;
    Address::new(0, 0x00ff_ffff, gid)
}

impl Table {
    /// Makes an empty table.
    pub fn new() -> Result<Self> {
        KArray::new(BUCKETS, List::default).map(|buckets| Self { buckets })
    }

    fn bucket(address: &Address) -> usize {
        // What differs between ports and groups are the queue pair number and the GID's last bytes.
        let Address([_, _, a, b, .., c, d, e, f]) = address;
        let word = u32::from_be_bytes([*c ^ *a, *d ^ *b, *e, *f]);
        (word.wrapping_mul(0x9e37_79b1) >> 24) as usize % BUCKETS
    }

    /// Returns a destination.
    pub fn find(&mut self, address: &Address) -> Option<&mut Neigh> {
        let bucket = self.buckets.get_mut(Self::bucket(address))?;
        bucket.iter_mut().find(|neigh| neigh.address == *address)
    }

    /// Adds a destination that is not yet known. Any context.
    pub fn add(&mut self, address: Address, state: State) -> Result<&mut Neigh> {
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
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Neigh> {
        self.buckets.iter_mut().flat_map(List::iter_mut)
    }

    /// Drops the destinations that `keep` refuses, and returns the number of packets, as on the wire, that waited for them.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Neigh) -> bool) -> u32 {
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
