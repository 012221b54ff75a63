// SPDX-License-Identifier: GPL-2.0-only
//! The receive path of connections, in NAPI.

use core::sync::atomic::Ordering;

use ipoib_core::wire::{BadFrame, ENCAP_LEN, check_frame};
use kernel::alloc::{Arc, Context, KArray};
use kernel::error::Result;
use kernel::list::List;
use kernel::napi::Poll;
use kernel::pages::{Message, PageQueue};
use kernel::rc;
use kernel::signal::{Signal, Signals};
use kernel::skb::{PacketType, Skb};
use kernel::verbs::Wc;

use crate::port::{Dev, Port};

/// Hash chains; a power of two.
const CHAINS: usize = 64;

/// A connection to us.
pub(crate) struct Peer {
    /// Its queue pair, as completions name it.
    pub identity: usize,
    /// Who is told that nothing comes any more.
    pub signal: Arc<Signal<Port>>,
    /// Its receive buffers, when they are not shared.
    pub own: Option<PageQueue<Port>>,
}

/// What the receive poller owns.
pub(crate) struct CmRx {
    /// Receive buffers that connections share.
    pub shared: Option<PageQueue<Port>>,
    peers: KArray<List<Peer>>,
}

impl CmRx {
    /// Makes it without connections.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            shared: None,
            peers: KArray::new(CHAINS, List::default)?,
        })
    }

    fn chain(identity: usize) -> usize {
        // Queue pairs are allocated memory: the low bits are the same.
        ((identity >> 6) ^ (identity >> 12)) % CHAINS
    }

    /// Adds a connection. Process context.
    pub(crate) fn add(&mut self, peer: Peer) -> Result {
        match self.peers.get_mut(Self::chain(peer.identity)) {
            Some(chain) => chain.push(peer, Context::Process).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Returns a connection.
    pub(crate) fn find(&mut self, identity: usize) -> Option<&mut Peer> {
        self.peers
            .get_mut(Self::chain(identity))?
            .iter_mut()
            .find(|peer| peer.identity == identity)
    }

    /// Drops a connection.
    pub(crate) fn remove(&mut self, identity: usize) {
        if let Some(chain) = self.peers.get_mut(Self::chain(identity)) {
            chain.retain(|peer| peer.identity != identity);
        }
    }
}

/// Serves receive completions of connections.
pub(crate) fn poll(dev: &Dev, poll: &Poll, rx: &mut CmRx, budget: u32) -> u32 {
    let counters = &dev.data().counters;
    let threshold = dev.data().copybreak.load(Ordering::Relaxed);
    let mut wcs = [Wc::default(); 16];
    let mut done = 0_u32;
    counters.cm_rx_polls.add(1);
    while done < budget {
        let room = budget.saturating_sub(done).min(wcs.len() as u32);
        let n = poll.fetch(wcs.get_mut(..room as usize).unwrap_or_default());
        for wc in wcs.iter().take(n) {
            counters.cm_rx_cqes.add(1);
            serve(dev, poll, rx, wc, threshold);
        }
        done = done.wrapping_add(n as u32);
        if let Some(shared) = &mut rx.shared {
            refill(dev, shared);
        }
        if n < room as usize {
            break;
        }
    }
    done
}

fn refill(dev: &Dev, queue: &mut PageQueue<Port>) {
    let counters = &dev.data().counters;
    match queue.refill(false) {
        Ok(rung) => counters.cm_rx_doorbells.add(rung),
        // They are tried again with the next completion; the work looks after a queue that has none.
        Err(_) => {
            counters.cm_rx_errors.add(1);
            if queue.posted() == 0 {
                dev.data().works.cm.queue(dev, 0);
            }
        }
    }
}

fn serve(dev: &Dev, poll: &Poll, rx: &mut CmRx, wc: &Wc, threshold: u32) {
    let counters = &dev.data().counters;
    let Some(chain) = rx.peers.get_mut(CmRx::chain(rc::source(wc))) else {
        return;
    };
    let peer = chain
        .iter_mut()
        .find(|peer| peer.identity == rc::source(wc));
    if rc::is_marker(wc) {
        if let Some(peer) = peer {
            peer.signal.raise(Signals::DRAINED);
        }
        return;
    }
    if !wc.is_ok() && !wc.is_flushed() {
        counters.cm_rx_errors.add(1);
        let (status, vendor) = wc.status();
        kernel::limited_warning!(
            "{}: a receive over a connection failed, status {status}, vendor error {vendor:#x}",
            dev.name()
        );
    }
    let message = match (peer, &mut rx.shared) {
        (
            Some(Peer {
                own: Some(own),
                signal,
                ..
            }),
            _,
        ) => {
            let message = own.complete(poll, wc, threshold);
            if wc.is_ok() {
                signal.touch();
                refill(dev, own);
            } else {
                // The queue pair is in error: what is posted would come right back.
                own.close();
                signal.raise(if own.posted() == 0 {
                    Signals::DRAINED
                } else {
                    Signals::BROKEN
                });
            }
            message
        }
        (peer, Some(shared)) => {
            if let Some(peer) = peer {
                if wc.is_ok() {
                    peer.signal.touch();
                } else {
                    peer.signal.raise(Signals::BROKEN);
                }
            }
            shared.complete(poll, wc, threshold)
        }
        _ => Message::Nothing,
    };
    match message {
        Message::Copied(skb) => {
            counters.cm_rx_copied.add(1);
            receive(dev, poll, skb);
        }
        Message::Whole(skb) => receive(dev, poll, skb),
        Message::NoMemory => counters.cm_rx_drop_memory.add(1),
        Message::Nothing => {}
    }
}

fn receive(dev: &Dev, poll: &Poll, skb: Skb) {
    let port = dev.data();
    let counters = &port.counters;
    let limit = port.connected_mtu() as usize;
    match check_frame(skb.head(), skb.len() as usize, limit) {
        Ok(_) => {}
        Err(BadFrame::Short) => return counters.cm_rx_drop_short.add(1),
        Err(BadFrame::Long) => return counters.cm_rx_drop_long.add(1),
        Err(BadFrame::EtherType) => return counters.cm_rx_drop_ethertype.add(1),
    }
    counters.cm_rx_packets.add(1);
    counters
        .cm_rx_bytes
        .add(skb.len().wrapping_sub(ENCAP_LEN as u32));
    poll.receive(skb, PacketType::Host, false);
}
