// SPDX-License-Identifier: GPL-2.0-only
//! The transmit path. Everything here runs under the transmit lock, but the polling itself.

use ipoib_core::batch::{Batch, Flush, Moment};
use ipoib_core::wire::{ADDRESS_LEN, Address, ENCAP_LEN, EtherType, read_header};
use kernel::alloc::Arc;
use kernel::clock::left_ms;
use kernel::error::Errno;
use kernel::napi::Poll;
use kernel::sendq::{Amount, Posted, SendQueue, Target};
use kernel::skb::{Skb, SkbQueue};
use kernel::train::MAX_TRAIN;
use kernel::verbs::{Ah, Wc};

use crate::cm;
use crate::neigh::{State, Table};
use crate::port::{Dev, Port};
use crate::stats::Counters;
use crate::train;

/// Packets that wait for one path.
const PATH_QUEUE: u32 = 16;
/// Packets that wait for one group.
const GROUP_QUEUE: u32 = 64;

/// Milliseconds from a refused send until the send queue is looked at.
const CHECK_MS: u32 = 100;

/// What the transmit lock protects.
pub(crate) struct Tx {
    /// The send queue, from `init` to `uninit`.
    pub queue: Option<SendQueue>,
    /// Batching.
    pub batch: Batch,
    /// Destinations.
    pub neighs: Table,
    /// Q_Key of the broadcast group.
    pub qkey: u32,
    /// Largest IP packet that the broadcast group takes.
    pub mtu: u32,
    /// P_Key, with the bit of full membership.
    pub pkey: u16,
    /// The queue pair is ready.
    pub up: bool,
    /// Connected mode.
    pub cm: cm::send::Sending,
}

/// What became of a packet.
pub(crate) enum Outcome {
    /// It joined the chain.
    Chained {
        /// The queue is stopped.
        stopped: bool,
    },
    /// It waits, or was dropped.
    Gone,
}

/// Sends a packet, or lets it wait, or drops it; the pending chain is not left without an event that posts it.
pub(crate) fn start_xmit(dev: &Dev, tx: &mut Tx, skb: Skb, more: bool) {
    let Some(skb) = cm::send::start_xmit(dev, tx, skb, more) else {
        return;
    };
    let counters = &dev.data().counters;
    let outcome = submit(dev, tx, skb, more);
    let Some(queue) = &tx.queue else { return };
    let mut moment = Moment {
        more,
        stopped: false,
        pending: queue.pending(),
        outstanding: queue.awaited(),
    };
    let flush = match outcome {
        Outcome::Chained { stopped } => {
            moment.stopped = stopped;
            tx.batch.sent(moment)
        }
        Outcome::Gone => {
            moment.stopped = dev.is_queue_stopped();
            tx.batch.not_sent(moment)
        }
    };
    if let Some(reason) = flush {
        post(dev, tx, counters, reason);
    }
}

fn submit(dev: &Dev, tx: &mut Tx, skb: Skb, more: bool) -> Outcome {
    let counters = &dev.data().counters;
    // What the stack counts: a large packet is as many as its segments.
    let packets = skb.segments();
    let Some((address, ether_type)) = read_header(skb.head()) else {
        counters.tx_drop_header.add(packets);
        return Outcome::Gone;
    };
    if EtherType::from_raw(ether_type).is_none() {
        counters.tx_drop_ethertype.add(packets);
        return Outcome::Gone;
    }
    let to = address.destination(tx.pkey);
    let Some(neigh) = tx.neighs.find(&to) else {
        wait_for_new(dev, tx, to, skb);
        return Outcome::Gone;
    };
    neigh.used = true;
    match &mut neigh.state {
        State::Ready(ah) => {
            let ah = ah.clone();
            return send(dev, tx, skb, (ah, to.qpn()), more);
        }
        State::Waiting { queue, asked } => {
            let group = to.is_multicast();
            if queue.len() < if group { GROUP_QUEUE } else { PATH_QUEUE } {
                queue.push(skb);
                if !*asked {
                    dev.data().ask(dev, group);
                }
            } else if group {
                counters.tx_drop_multicast.add(packets);
            } else {
                counters.tx_drop_path.add(packets);
            }
        }
        State::Failed(until) => {
            if left_ms(*until) > 0 {
                let lost = if to.is_multicast() {
                    &counters.tx_drop_multicast
                } else {
                    &counters.tx_drop_path
                };
                lost.add(packets);
            } else {
                let mut queue = SkbQueue::default();
                queue.push(skb);
                neigh.state = State::Waiting {
                    queue,
                    asked: false,
                };
                dev.data().ask(dev, to.is_multicast());
            }
        }
    }
    Outcome::Gone
}

/// Puts a packet into the chain, with its link-layer address still in front.
#[inline]
fn send(dev: &Dev, tx: &mut Tx, mut skb: Skb, (ah, qpn): (Arc<Ah>, u32), more: bool) -> Outcome {
    let counters = &dev.data().counters;
    let hca = &dev.data().hca;
    let qkey = tx.qkey;
    let packets = skb.segments();
    let Some(queue) = tx.queue.as_mut().filter(|_| tx.up) else {
        counters.tx_drop_down.add(packets);
        return Outcome::Gone;
    };
    skb.pull(ADDRESS_LEN as u32);
    let target = Target { ah, qpn, qkey };
    let is_large = skb.gso_size() > 0;
    if is_large && !hca.can_segment() {
        return train::send(dev, tx, skb, target, more);
    }
    let header = if is_large { skb.tcp_headers() } else { 0 };
    if header == 0 && skb.len() > tx.mtu.saturating_add(ENCAP_LEN as u32) {
        counters.tx_drop_too_long.add(packets);
        return Outcome::Gone;
    }
    if !hca.can_checksum() && !skb.fill_checksum() {
        counters.tx_drop_memory.add(packets);
        return Outcome::Gone;
    }
    match queue.push(skb, target, header) {
        Ok(bytes) => return chained(dev, tx, bytes, more),
        Err(Errno::EBUSY) => counters.tx_drop_ring.add(packets),
        Err(_) => counters.tx_drop_map.add(packets),
    }
    Outcome::Gone
}

/// A packet is in the ring: tells the byte queue limits, and stops the queue when the next might not fit.
pub(crate) fn chained(dev: &Dev, tx: &Tx, bytes: u32, more: bool) -> Outcome {
    if tx
        .queue
        .as_ref()
        .is_none_or(|queue| queue.free() < MAX_TRAIN)
    {
        dev.stop_queue();
        dev.data().counters.tx_queue_stops.add(1);
    }
    Outcome::Chained {
        stopped: dev.sent(bytes, more),
    }
}

fn wait_for_new(dev: &Dev, tx: &mut Tx, to: Address, skb: Skb) {
    let port = dev.data();
    let packets = skb.segments();
    if !tx.up {
        port.counters.tx_drop_down.add(packets);
        return;
    }
    let mut queue = SkbQueue::default();
    queue.push(skb);
    if tx
        .neighs
        .add(
            to,
            State::Waiting {
                queue,
                asked: false,
            },
        )
        .is_ok()
    {
        port.ask(dev, to.is_multicast());
    } else {
        port.counters.tx_drop_memory.add(packets);
    }
}

/// Rings the doorbell for the pending chain.
pub(crate) fn post(dev: &Dev, tx: &mut Tx, counters: &Counters, reason: Flush) {
    let posted = ring(tx, counters, reason);
    if posted.refused.is_some() {
        lose(dev, tx, counters, posted);
    }
}

/// Rings the doorbell, and leaves what is lost to [`lose`].
pub(crate) fn ring(tx: &mut Tx, counters: &Counters, reason: Flush) -> Posted {
    let Some(queue) = &mut tx.queue else {
        return Posted::default();
    };
    let posted = queue.post();
    if posted.taken > 0 || posted.refused.is_some() {
        counters.doorbell(posted.taken, reason);
    }
    posted
}

/// Counts what the HCA refused.
#[cold]
pub(crate) fn lose(dev: &Dev, tx: &Tx, counters: &Counters, posted: Posted) {
    let (Some(queue), Some((lost, errno))) = (&tx.queue, posted.refused) else {
        return;
    };
    counters.tx_drop_post.add(lost.packets);
    counters.tx_errors.add(1);
    dev.completed(lost.skbs, lost.owed);
    wake(dev, tx, queue, counters);
    if tx.up {
        kernel::limited_warning!(
            "{}: the HCA refused {} of {} sends, {errno}",
            dev.name(),
            lost.packets,
            lost.packets.wrapping_add(posted.taken)
        );
        // What it took goes on, and the next chain tells of it. Is there one, and does the queue pair still work?
        dev.data().works.check.queue(dev, CHECK_MS);
    }
}

/// Lets the stack go on when half of the ring is free.
fn wake(dev: &Dev, tx: &Tx, queue: &SendQueue, counters: &Counters) {
    let room = queue.free() >= queue.size().slots() / 2 && !tx.cm.is_full();
    if dev.is_queue_stopped() && tx.up && room {
        counters.tx_queue_wakes.add(1);
        dev.wake_queue();
    }
}

/// What the send poller owns: room for completions, which would be filled with zeros for each poll if it were on the stack.
pub(crate) type Wcs = [Wc; 16];

/// Serves send completions.
pub(crate) fn poll(dev: &Dev, poll: &Poll, wcs: &mut Wcs, budget: u32) -> u32 {
    let port = dev.data();
    let counters = &port.counters;
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
        counters.tx_polls.add(1);
        serve(dev, &mut tx, port, wcs.iter().take(n), &mut freed);
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

fn serve<'a>(
    dev: &Dev,
    tx: &mut Tx,
    port: &Port,
    wcs: impl Iterator<Item = &'a Wc>,
    freed: &mut SkbQueue,
) {
    let counters = &port.counters;
    let Some(queue) = &mut tx.queue else { return };
    let (mut total, mut lost) = (Amount::default(), Amount::default());
    let mut cqes = 0_u32;
    for wc in wcs {
        cqes = cqes.wrapping_add(1);
        let own = queue.retire(wc, &mut total, |skb| freed.push(skb));
        if !wc.is_ok() {
            lost.packets = lost.packets.wrapping_add(own.packets);
            lost.bytes = lost.bytes.wrapping_add(own.bytes);
            failed(dev, port, wc, own.packets, tx.up);
        }
    }
    counters.tx_cqes.add(cqes);
    if total.packets == 0 {
        return;
    }
    counters
        .tx_packets
        .add(total.packets.wrapping_sub(lost.packets));
    counters.tx_bytes.add(total.bytes.wrapping_sub(lost.bytes));
    dev.completed(total.skbs, total.owed);
    let pending = queue.pending();
    if let Some(queue) = &tx.queue {
        wake(dev, tx, queue, counters);
    }
    if let Some(reason) = tx.batch.completed(pending) {
        post(dev, tx, counters, reason);
    }
}

/// A send failed, which takes its queue pair out of service, or was flushed because of that.
fn failed(dev: &Dev, port: &Port, wc: &Wc, packets: u32, up: bool) {
    let counters = &port.counters;
    if wc.is_flushed() {
        counters.tx_drop_down.add(packets);
        if up {
            // Nobody asked for that: the queue pair is in error.
            port.works.recover.queue(dev, 10);
        }
        return;
    }
    counters.tx_drop_send.add(packets);
    counters.tx_errors.add(1);
    let (status, vendor) = wc.status();
    kernel::limited_warning!(
        "{}: a send failed, status {status}, vendor error {vendor:#x}",
        dev.name()
    );
    port.works.recover.queue(dev, 0);
}
