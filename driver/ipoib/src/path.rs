// SPDX-License-Identifier: GPL-2.0-only
//! Paths to unicast destinations.

use core::sync::atomic::Ordering;

use kernel::alloc::Arc;
use kernel::clock::now_ms;
use kernel::error::{Errno, Result};
use kernel::sa::{self, PathRequest};
use kernel::skb::SkbQueue;
use kernel::verbs::Ah;

use crate::neigh::State;
use crate::port::Dev;

/// Milliseconds that the SA has to answer.
const QUERY_MS: u32 = 1000;
/// Milliseconds before a destination that can't be reached is asked for again.
pub(crate) const RETRY_MS: u32 = 1000;
/// Milliseconds between rounds of aging: a destination not used for two rounds is forgotten.
pub(crate) const AGE_MS: u32 = 60_000;

/// Asks for the paths that packets wait for.
pub(crate) fn run(dev: &Dev) {
    while let Some(gid) = next(dev) {
        let port = dev.data();
        let link = *port.link.lock();
        let request = PathRequest {
            port: port.number,
            sgid: link.gid,
            dgid: gid,
            pkey: link.pkey,
            traffic_class: link.traffic_class,
        };
        port.counters.path_queries.add(1);
        if let Err(errno) = sa::query_path(dev, &port.hca, &request, QUERY_MS, done) {
            fail(dev, gid, errno);
        }
    }
}

/// Takes the next GID to ask for. Destinations at a port whose path is known are served at once.
fn next(dev: &Dev) -> Option<[u8; 16]> {
    loop {
        let mut tx = dev.tx_lock();
        let gid = tx
            .neighs
            .iter_mut()
            .find_map(|neigh| match &mut neigh.state {
                State::Waiting { asked, .. } if !*asked && !neigh.address.is_multicast() => {
                    Some(neigh.address.gid())
                }
                _ => None,
            })?;
        let mut asked_before = false;
        let mut known = None;
        for neigh in tx
            .neighs
            .iter_mut()
            .filter(|neigh| neigh.address.gid() == gid)
        {
            match &mut neigh.state {
                State::Waiting { asked, .. } => asked_before |= core::mem::replace(asked, true),
                State::Ready(ah) => known = Some(ah.clone()),
                State::Failed(_) => {}
            }
        }
        drop(tx);
        match known {
            Some(ah) => install(dev, gid, &ah),
            None if asked_before => {}
            None => return Some(gid),
        }
    }
}

fn done(dev: &Dev, gid: [u8; 16], result: Result<sa::Path>) {
    let port = dev.data();
    let handle = result.and_then(|mut path| {
        let pd = port.qp().map(|qp| qp.pd().clone()).ok_or(Errno::ENODEV)?;
        path.handle(&pd, port.number)
    });
    match handle {
        Ok(ah) => install(dev, gid, &ah),
        Err(errno) => fail(dev, gid, errno),
    }
}

/// Sends what waited for a path.
fn install(dev: &Dev, gid: [u8; 16], ah: &Arc<Ah>) {
    let mut waited = SkbQueue::default();
    let mut tx = dev.tx_lock();
    if tx.up {
        for neigh in tx
            .neighs
            .iter_mut()
            .filter(|neigh| neigh.address.gid() == gid)
        {
            if let State::Waiting { queue, .. } = &mut neigh.state {
                waited.append(queue);
                neigh.state = State::Ready(ah.clone());
            }
        }
    }
    dev.data().counters.tx_waited.add(waited.packets());
    drop(tx);
    while let Some(skb) = waited.pop() {
        dev.queue_xmit(skb);
    }
}

/// Drops what waited for a path.
fn fail(dev: &Dev, gid: [u8; 16], errno: Errno) {
    let counters = &dev.data().counters;
    let retry = now_ms().wrapping_add(RETRY_MS);
    let mut lost = SkbQueue::default();
    let mut tx = dev.tx_lock();
    counters.path_failures.add(1);
    for neigh in tx
        .neighs
        .iter_mut()
        .filter(|neigh| neigh.address.gid() == gid)
    {
        if let State::Waiting { queue, .. } = &mut neigh.state {
            counters.tx_drop_path.add(queue.packets());
            lost.append(queue);
            neigh.state = State::Failed(retry);
        }
    }
    drop(tx);
    if dev.data().oper.load(Ordering::Acquire) {
        kernel::info!("{}: no path to {:x?}, {errno}", dev.name(), gid);
    }
}

/// Forgets destinations that nobody used lately.
pub(crate) fn age(dev: &Dev) {
    let port = dev.data();
    if !port.oper.load(Ordering::Acquire) {
        return;
    }
    let mut tx = dev.tx_lock();
    let mut groups = false;
    tx.neighs.retain(|neigh| {
        let used = core::mem::replace(&mut neigh.used, false);
        let waits = matches!(neigh.state, State::Waiting { .. });
        let keep = used || waits;
        groups |= !keep && neigh.address.is_multicast();
        keep
    });
    drop(tx);
    if groups {
        // Leaves the send-only groups, and keeps those that are joined for receiving.
        port.works.multicast.queue(dev, 0);
    }
    port.works.age.queue(dev, AGE_MS);
}

/// Forgets all destinations.
pub(crate) fn forget_all(dev: &Dev) {
    let mut tx = dev.tx_lock();
    let lost = tx.neighs.retain(|_| false);
    dev.data().counters.tx_drop_down.add(lost);
}
