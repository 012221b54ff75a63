// SPDX-License-Identifier: GPL-2.0-only
//! The receive path, in NAPI.

use core::sync::atomic::Ordering;

use ipoib_core::wire::{BadFrame, ENCAP_LEN, GRH_LEN, check_frame};
use kernel::napi::Poll;
use kernel::recvq::{Received, RecvQueue};
use kernel::skb::{PacketType, Skb};
use kernel::verbs::Wc;

use crate::port::{Dev, Port};
use crate::tx::Wcs;

/// What the receive poller owns.
#[derive(Default)]
pub(crate) struct Rx {
    /// The receive queue, from `init` to `uninit`.
    pub queue: Option<RecvQueue>,
    /// Room for completions.
    wcs: Wcs,
}

/// Serves receive completions.
pub(crate) fn poll(dev: &Dev, poll: &Poll, rx: &mut Rx, budget: u32) -> u32 {
    let port = dev.data();
    let counters = &port.counters;
    let wcs = &mut rx.wcs;
    let Some(queue) = &mut rx.queue else { return 0 };
    let mut done = 0_u32;
    counters.rx_polls.add(1);
    while done < budget {
        let room = budget.saturating_sub(done).min(wcs.len() as u32);
        let n = poll.fetch(wcs.get_mut(..room as usize).unwrap_or_default());
        for wc in wcs.iter().take(n) {
            counters.rx_cqes.add(1);
            if !wc.is_ok() {
                failed(dev, port, wc);
            }
            match queue.complete(wc) {
                Received::Packet(skb) => receive(dev, port, poll, wc, skb),
                Received::NoMemory => counters.rx_drop_memory.add(1),
                Received::Nothing => {}
            }
        }
        done = done.wrapping_add(n as u32);
        if port.is_receiving() {
            match queue.refill(false) {
                Ok(rung) => counters.rx_doorbells.add(rung),
                Err(errno) => {
                    // They are tried again with the next completion, if one can come.
                    counters.rx_errors.add(1);
                    if queue.posted() == 0 {
                        kernel::warning!(
                            "{}: the HCA refused the last receive buffers, {errno}; restarting",
                            dev.name()
                        );
                        port.works.recover.queue(dev, 10);
                    }
                }
            }
        }
        if n < room as usize {
            break;
        }
    }
    port.posted.store(queue.posted(), Ordering::Release);
    done
}

/// A receive fails when its queue pair is in error, or puts it there.
fn failed(dev: &Dev, port: &Port, wc: &Wc) {
    if !wc.is_flushed() {
        port.counters.rx_errors.add(1);
        let (status, vendor) = wc.status();
        kernel::limited_warning!(
            "{}: a receive failed, status {status}, vendor error {vendor:#x}; restarting",
            dev.name()
        );
    }
    if port.is_receiving() {
        port.works.recover.queue(dev, 10);
    }
}

fn receive(dev: &Dev, port: &Port, poll: &Poll, wc: &Wc, mut skb: Skb) {
    let counters = &port.counters;
    let head = skb.head();
    let (Some(grh), Some(frame)) = (head.get(..GRH_LEN), head.get(GRH_LEN..)) else {
        counters.rx_drop_short.add(1);
        return;
    };
    let limit = port.ud_mtu as usize;
    match check_frame(frame, frame.len(), limit) {
        Ok(_) => {}
        Err(BadFrame::Short) => return counters.rx_drop_short.add(1),
        Err(BadFrame::Long) => return counters.rx_drop_long.add(1),
        Err(BadFrame::EtherType) => return counters.rx_drop_ethertype.add(1),
    }
    let mut to = PacketType::Host;
    let grh = grh.first_chunk::<GRH_LEN>().filter(|_| wc.has_grh());
    // The GRH ends with the GIDs of source and destination.
    if let Some(grh) = grh {
        let (sgid, dgid) = (
            grh.get(8..24).unwrap_or_default(),
            grh.get(24..40).unwrap_or_default(),
        );
        if dgid.first() == Some(&0xff) {
            let broadcast = dev.broadcast();
            let is_broadcast = broadcast.get(4..20).is_some_and(|gid| gid == dgid);
            to = if is_broadcast {
                PacketType::Broadcast
            } else {
                PacketType::Multicast
            };
        }
        // A multicast packet of ours that the HCA replicated.
        let own = sgid
            .get(8..16)
            .is_some_and(|id| id == port.interface_id.load(Ordering::Relaxed).to_be_bytes());
        if own && to != PacketType::Host && port.is_own(wc.source()) {
            counters.rx_drop_own.add(1);
            return;
        }
    }
    let checksum_ok = wc.checksum_ok() && kernel::netdev::has_rx_checksum(dev);
    counters.rx_packets.add(1);
    counters
        .rx_bytes
        .add(skb.len().wrapping_sub((GRH_LEN + ENCAP_LEN) as u32));
    if to == PacketType::Multicast {
        counters.rx_multicast.add(1);
    }
    if skb.pull(GRH_LEN as u32) {
        poll.receive(skb, to, checksum_ok);
    }
}
