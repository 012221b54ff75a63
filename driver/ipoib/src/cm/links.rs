// SPDX-License-Identifier: GPL-2.0-only
//! What the transmit path knows of our connections. The transmit lock protects it.

use ipoib_core::connect::MOST_ACTIVE;
use ipoib_core::wire::Address;
use kernel::alloc::{Arc, Context, KArray, KBox};
use kernel::error::{Errno, Result};
use kernel::rcsend::RcSends;
use kernel::signal::Signal;
use kernel::skb::SkbQueue;

use crate::port::Port;

/// Hash chains; a power of two.
const CHAINS: usize = 256;

/// The end of a chain.
const NONE: u16 = u16::MAX;

/// Where a connection stands for packets.
pub(crate) enum Phase {
    /// It is being made; what no datagram carries waits.
    Waiting(SkbQueue),
    /// It carries packets.
    Up(RcSends<Port>),
    /// It takes no more of them; datagrams do.
    Closing(RcSends<Port>),
    /// There is none. `lasting` says that the stack is told the size of datagrams.
    Down {
        /// Several attempts failed.
        lasting: bool,
    },
}

/// A connection of ours.
pub(crate) struct Link {
    /// The neighbour's address, see [`Address::destination`].
    pub address: Address,
    /// Where it stands.
    pub phase: Phase,
    /// Who is told that it broke.
    pub signal: Option<Arc<Signal<Port>>>,
    /// Largest message that the neighbour takes, encapsulation header included.
    pub bytes: u32,
    /// Used since somebody last looked.
    pub used: bool,
    /// Nobody makes the connection yet.
    pub fresh: bool,
    next: u16,
}

/// All of them, by number and by address.
pub(crate) struct Links {
    slots: KArray<Option<KBox<Link>>>,
    chains: KArray<u16>,
    last: usize,
}

impl Links {
    /// Makes an empty table.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            slots: KArray::new(MOST_ACTIVE as usize, || None)?,
            chains: KArray::new(CHAINS, || NONE)?,
            last: 0,
        })
    }

    fn chain(address: &Address) -> usize {
        usize::from(address.hash()) % CHAINS
    }

    /// Returns the number of the connection to a neighbour.
    pub(crate) fn find(&self, address: &Address) -> Option<u16> {
        let mut number = *self.chains.get(Self::chain(address))?;
        while let Some(link) = self.slots.get(usize::from(number)).and_then(Option::as_ref) {
            if link.address == *address {
                return Some(number);
            }
            number = link.next;
        }
        None
    }

    /// Returns a connection.
    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut Link> {
        self.slots
            .get_mut(usize::from(number))
            .and_then(Option::as_mut)
            .map(|link| &mut **link)
    }

    /// Adds a connection that is not yet known. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EBUSY` when there are too many.
    pub(crate) fn add(&mut self, address: Address) -> Result<u16> {
        let count = self.slots.len();
        let free = (0..count)
            .map(|i| self.last.wrapping_add(i) % count.max(1))
            .find(|i| matches!(self.slots.get(*i), Some(None)))
            .ok_or(Errno::EBUSY)?;
        let chain = Self::chain(&address);
        let link = Link {
            address,
            phase: Phase::Waiting(SkbQueue::default()),
            signal: None,
            bytes: 0,
            used: true,
            fresh: true,
            next: self.chains.get(chain).copied().unwrap_or(NONE),
        };
        let link = KBox::new(link, Context::Atomic)?;
        let number = u16::try_from(free).map_err(|_| Errno::EBUSY)?;
        if let (Some(slot), Some(head)) = (self.slots.get_mut(free), self.chains.get_mut(chain)) {
            *slot = Some(link);
            *head = number;
            self.last = free.wrapping_add(1);
        }
        Ok(number)
    }

    /// Takes a connection off the table.
    pub(crate) fn remove(&mut self, number: u16) -> Option<KBox<Link>> {
        let link = self.slots.get_mut(usize::from(number))?.take()?;
        let head = self.chains.get_mut(Self::chain(&link.address))?;
        if *head == number {
            *head = link.next;
            return Some(link);
        }
        let mut at = *head;
        while let Some(before) = self.get_mut(at) {
            if before.next == number {
                before.next = link.next;
                break;
            }
            at = before.next;
        }
        Some(link)
    }

    /// Returns the next connection, from `from` on, that nobody makes yet.
    pub(crate) fn next_fresh(&mut self, from: u16) -> Option<(u16, Address)> {
        let found = self
            .slots
            .iter_mut()
            .enumerate()
            .skip(usize::from(from))
            .find_map(|(i, slot)| {
                slot.as_mut()
                    .filter(|link| link.fresh)
                    .map(|link| (i, link))
            });
        let (number, link) = found?;
        link.fresh = false;
        u16::try_from(number)
            .ok()
            .map(|number| (number, link.address))
    }
}
