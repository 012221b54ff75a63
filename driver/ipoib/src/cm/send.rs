// SPDX-License-Identifier: GPL-2.0-only
//! The transmit path of connections. All but the polling itself runs under the transmit lock.

use ipoib_core::batch::{Flush, Moment};
use ipoib_core::connect::{SEND_TOTAL, WAITING};
use ipoib_core::wire::{ADDRESS_LEN, Address, ENCAP_LEN, EtherType, read_header};
use kernel::alloc::Context;
use kernel::error::{Errno, Result};
use kernel::list::List;
use kernel::napi::Poll;
use kernel::rc;
use kernel::rcsend::Sum;
use kernel::signal::Signals;
use kernel::skb::{Skb, SkbQueue};
use kernel::train::MAX_TRAIN;
use kernel::verbs::Wc;

use super::links::{Links, Phase};
use crate::port::Dev;
use crate::tx::{self, Tx};

/// Packets whose senders are still to be told that they are too large.
const LARGE: u32 = 64;

/// `IB_WC_RNR_RETRY_EXC_ERR` and `IB_WC_RETRY_EXC_ERR` (include/rdma/ib_verbs.h).
const RNR_EXHAUSTED: u32 = 13;
const RETRIES_EXHAUSTED: u32 = 12;

/// What the transmit lock protects of connected mode.
pub(crate) struct Sending {
    /// Connected mode is on, and the interface up.
    pub on: bool,
    /// Our connections.
    pub links: Links,
    /// The one whose chain is not posted.
    current: Option<u16>,
    /// Requests that all of them have, chained or posted.
    under_way: u32,
    /// The one for which the queue is stopped.
    full: Option<u16>,
    /// Packets that were too large, and for what.
    large: List<(Skb, u32)>,
    large_count: u32,
}

impl Sending {
    /// Makes it without connections.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            on: false,
            links: Links::new()?,
            current: None,
            under_way: 0,
            full: None,
            large: List::default(),
            large_count: 0,
        })
    }

    /// Says whether the queue is stopped for want of room for connections.
    pub(crate) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Takes a packet that was too large.
    pub(crate) fn take_large(&mut self) -> Option<(Skb, u32)> {
        self.large_count = self.large_count.saturating_sub(1);
        self.large.take()
    }

    /// Takes requests off the count of all.
    pub(crate) fn finished(&mut self, packets: u32) {
        self.under_way = self.under_way.saturating_sub(packets);
    }
}

/// Sends a packet over a connection, or lets it wait for one; gives it back when it is to go in a datagram.
pub(crate) fn start_xmit(dev: &Dev, tx: &mut Tx, mut skb: Skb, more: bool) -> Option<Skb> {
    if !tx.cm.on || !tx.up {
        return Some(skb);
    }
    // What can't be sent at all is for the datagram path to count.
    let Some((address, ether_type)) = read_header(skb.head()) else {
        return datagram(dev, tx, skb);
    };
    let known = EtherType::from_raw(ether_type).is_some();
    let bytes = skb.len().saturating_sub(ADDRESS_LEN as u32);
    let fits = bytes <= tx.mtu.saturating_add(ENCAP_LEN as u32) || skb.gso_size() > 0;
    let mut told = true;
    if known
        && !address.is_multicast()
        && address.flags() & Address::FLAG_RC != 0
        && skb.gso_size() == 0
    {
        let to = address.destination(tx.pkey);
        let number = tx.cm.links.find(&to).or_else(|| {
            let added = tx.cm.links.add(to).ok();
            if added.is_some() {
                dev.data().works.cm.queue(dev, 0);
            }
            added
        });
        if let Some((number, link)) =
            number.and_then(|n| tx.cm.links.get_mut(n).map(|link| (n, link)))
        {
            link.used = true;
            match &mut link.phase {
                Phase::Up(_) => {
                    if bytes > link.bytes {
                        let mtu = link.bytes.saturating_sub(ENCAP_LEN as u32);
                        too_large(dev, tx, skb, mtu);
                        dropped(dev, tx, more);
                    } else {
                        push(dev, tx, number, skb, more);
                    }
                    return None;
                }
                Phase::Waiting(queue) if !fits => {
                    if queue.len() < WAITING {
                        queue.push(skb);
                    } else {
                        dev.data().counters.tx_drop_path.add(1);
                    }
                    dropped(dev, tx, more);
                    return None;
                }
                Phase::Down { lasting } => told = *lasting,
                Phase::Waiting(_) => {}
                Phase::Closing(_) => told = false,
            }
        }
        if fits {
            dev.data().counters.cm_tx_datagrams.add(1);
        }
    }
    if !fits {
        if told {
            let mtu = tx.mtu;
            too_large(dev, tx, skb, mtu);
        } else {
            // A connection will soon take such packets again: the stack had better not remember a small MTU.
            dev.data().counters.tx_drop_path.add(1);
            drop(skb);
        }
        dropped(dev, tx, more);
        return None;
    }
    skb.drop_route();
    datagram(dev, tx, skb)
}

/// The next packet goes in a datagram.
fn datagram(dev: &Dev, tx: &mut Tx, skb: Skb) -> Option<Skb> {
    flush(dev, tx, Flush::Peer);
    Some(skb)
}

/// A packet joined no chain: what was chained before must not be left behind.
fn dropped(dev: &Dev, tx: &mut Tx, more: bool) {
    if more && !dev.is_queue_stopped() {
        return;
    }
    flush(dev, tx, Flush::Drop);
    if tx.queue.as_ref().is_some_and(|queue| queue.pending() > 0) {
        tx::post(dev, tx, &dev.data().counters, Flush::Drop);
    }
}

/// Drops a packet that nothing carries and has its sender told.
fn too_large(dev: &Dev, tx: &mut Tx, mut skb: Skb, mtu: u32) {
    let counters = &dev.data().counters;
    counters.tx_drop_too_long.add(1);
    skb.learn_mtu(mtu);
    if tx.cm.large_count < LARGE && tx.cm.large.push((skb, mtu), Context::Atomic).is_ok() {
        tx.cm.large_count = tx.cm.large_count.wrapping_add(1);
        dev.data().works.cm.queue(dev, 0);
    }
}

fn push(dev: &Dev, tx: &mut Tx, number: u16, mut skb: Skb, more: bool) {
    let counters = &dev.data().counters;
    // A chain goes to one queue pair.
    if tx.queue.as_ref().is_some_and(|queue| queue.pending() > 0) {
        tx::post(dev, tx, counters, Flush::Peer);
    }
    if tx.cm.current != Some(number) {
        flush(dev, tx, Flush::Peer);
    }
    let Some(Phase::Up(sends)) = tx.cm.links.get_mut(number).map(|link| &mut link.phase) else {
        return;
    };
    skb.drop_route();
    skb.pull(ADDRESS_LEN as u32);
    let pushed = sends.push(skb);
    let mut moment = Moment {
        more,
        stopped: false,
        pending: sends.pending(),
        outstanding: sends.outstanding(),
    };
    let full = sends.free() == 0;
    let reason = match pushed {
        Ok(bytes) => {
            tx.cm.current = Some(number);
            tx.cm.under_way = tx.cm.under_way.wrapping_add(1);
            if full || tx.cm.under_way >= SEND_TOTAL {
                tx.cm.full = Some(number);
                dev.stop_queue();
                counters.tx_queue_stops.add(1);
            }
            moment.stopped = dev.sent(bytes, more);
            tx.batch.sent(moment)
        }
        Err(errno) => {
            if errno == Errno::EBUSY {
                counters.tx_drop_ring.add(1);
            } else {
                counters.tx_drop_map.add(1);
            }
            moment.stopped = dev.is_queue_stopped();
            tx.batch.not_sent(moment)
        }
    };
    if let Some(reason) = reason {
        flush(dev, tx, reason);
    }
}

/// Rings the doorbell for the chain of a connection, if there is one.
pub(crate) fn flush(dev: &Dev, tx: &mut Tx, reason: Flush) {
    let counters = &dev.data().counters;
    let Some(link) = tx
        .cm
        .current
        .take()
        .and_then(|number| tx.cm.links.get_mut(number))
    else {
        return;
    };
    let (Phase::Up(sends) | Phase::Closing(sends)) = &mut link.phase else {
        return;
    };
    let (taken, refused) = sends.post();
    if taken > 0 || refused.is_some() {
        counters.doorbell(taken, reason);
    }
    let Some((lost, errno)) = refused else {
        return;
    };
    // What it took has no completion of its own: putting the queue pair into error brings it back.
    if let Some(signal) = &link.signal {
        signal.raise(Signals::BROKEN);
    }
    tx.cm.finished(lost.packets);
    counters.tx_drop_post.add(lost.packets);
    counters.tx_errors.add(1);
    dev.completed(lost.packets, lost.bytes);
    kernel::limited_warning!(
        "{}: the HCA refused {} sends of a connection, {errno}",
        dev.name(),
        lost.packets
    );
    wake(dev, tx);
}

/// Lets the queue run again, once there is room.
pub(crate) fn wake(dev: &Dev, tx: &mut Tx) {
    let Some(number) = tx.cm.full else { return };
    let room = match tx.cm.links.get_mut(number).map(|link| &link.phase) {
        Some(Phase::Up(sends)) => sends.free() >= sends.size() / 2,
        _ => true,
    };
    if !room || tx.cm.under_way > SEND_TOTAL / 2 {
        return;
    }
    tx.cm.full = None;
    let datagrams = tx
        .queue
        .as_ref()
        .is_some_and(|queue| queue.free() >= MAX_TRAIN);
    if dev.is_queue_stopped() && tx.up && datagrams {
        dev.data().counters.tx_queue_wakes.add(1);
        dev.wake_queue();
    }
}

/// Serves send completions of connections.
pub(crate) fn poll(dev: &Dev, poll: &Poll, _state: &mut (), budget: u32) -> u32 {
    let mut wcs = [Wc::default(); 16];
    let mut done = 0_u32;
    let mut freed = SkbQueue::default();
    loop {
        // A poll without budget (netpoll) serves some, too.
        let room = budget.saturating_sub(done).clamp(1, wcs.len() as u32);
        let n = poll.fetch(wcs.get_mut(..room as usize).unwrap_or_default());
        if n == 0 {
            break;
        }
        let mut tx = dev.tx_lock();
        dev.data().counters.tx_polls.add(1);
        for wc in wcs.iter().take(n) {
            serve(dev, &mut tx, wc, &mut freed);
        }
        wake(dev, &mut tx);
        drop(tx);
        done = done.wrapping_add(n as u32);
        while let Some(skb) = freed.pop() {
            skb.consume(budget);
        }
        if done >= budget {
            break;
        }
    }
    done
}

fn serve(dev: &Dev, tx: &mut Tx, wc: &Wc, freed: &mut SkbQueue) {
    let counters = &dev.data().counters;
    counters.tx_cqes.add(1);
    let number = rc::connection(wc) as u16;
    let Some(link) = tx.cm.links.get_mut(number) else {
        return;
    };
    let (Phase::Up(sends) | Phase::Closing(sends)) = &mut link.phase else {
        return;
    };
    let (all, mut lost) = if rc::is_marker(wc) {
        // What had no completion of its own was sent before the queue pair failed.
        (sends.retire_all(|skb| freed.push(skb)), Sum::default())
    } else {
        sends.retire(wc, |skb| freed.push(skb))
    };
    let pending = sends.pending();
    if rc::is_marker(wc) {
        if let Some(signal) = &link.signal {
            signal.raise(Signals::DRAINED);
        }
    } else if wc.is_ok() {
        lost = Sum::default();
    } else {
        if let Some(signal) = &link.signal {
            signal.raise(Signals::BROKEN);
        }
        failed(dev, wc, lost);
    }
    tx.cm.finished(all.packets);
    let sent = all.packets.wrapping_sub(lost.packets);
    counters.tx_packets.add(sent);
    counters.cm_tx_packets.add(sent);
    counters.tx_bytes.add(all.bytes.wrapping_sub(lost.bytes));
    if all.packets > 0 {
        dev.completed(all.packets, all.bytes);
    }
    if tx.cm.current == Some(number) && wc.is_ok() {
        if let Some(reason) = tx.batch.completed(pending) {
            flush(dev, tx, reason);
        }
    }
}

/// A send failed, which ends its connection, or was flushed because of that.
fn failed(dev: &Dev, wc: &Wc, lost: Sum) {
    let counters = &dev.data().counters;
    if wc.is_flushed() {
        counters.tx_drop_connection.add(lost.packets);
        return;
    }
    counters.tx_drop_send.add(lost.packets);
    counters.tx_errors.add(1);
    let (status, vendor) = wc.status();
    match status {
        RNR_EXHAUSTED => counters.cm_rnr_exhausted.add(1),
        RETRIES_EXHAUSTED => counters.cm_retries_exhausted.add(1),
        _ => kernel::limited_warning!(
            "{}: a send over a connection failed, status {status}, vendor error {vendor:#x}",
            dev.name()
        ),
    }
}
