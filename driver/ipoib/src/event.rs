// SPDX-License-Identifier: GPL-2.0-only
//! What follows an event of the HCA, by how much must be done anew. All works here take RTNL.

use core::sync::atomic::Ordering;

use ipoib_core::batch::Flush;
use kernel::event::Event;
use kernel::netdev::Rtnl;
use kernel::sendq::SendQueue;

use crate::port::Dev;
use crate::{life, multicast, path, tx};

/// Milliseconds between attempts to start the queue pair.
const RETRY_MS: u32 = 1000;

/// Milliseconds from each announcement of our address to the next: one alone can be lost, in a full receive ring of the
/// neighbour for example, and a neighbour that missed it sends to a queue pair that is gone.
const ANNOUNCE_MS: [u32; 3] = [100, 900, 2000];

/// Milliseconds between looks whether the stack has seen the carrier.
const LINK_WATCH_MS: u32 = 20;

/// Takes an event of the port. Any context.
pub(crate) fn notice(dev: &Dev, event: Event) {
    let port = dev.data();
    // A work for a device whose registration fails would outlive it.
    if !port.registered.load(Ordering::Acquire) {
        return;
    }
    let works = &port.works;
    match event {
        Event::ClientReregister | Event::SmChange | Event::GidChange => works.light.queue(dev, 0),
        Event::PortActive | Event::PortError | Event::LidChange => works.normal.queue(dev, 0),
        Event::PkeyChange => works.heavy.queue(dev, 0),
    }
}

/// Says whether the queue pair is ready.
fn is_started(dev: &Dev) -> bool {
    dev.data().qp().is_some()
}

/// Asks for paths and memberships anew; the carrier stays.
pub(crate) fn light(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    dev.data().update_gid(dev);
    if is_started(dev) {
        rejoin(dev);
    }
}

/// Takes another last half of our GID, which the subnet manager may know later; RTNL is held.
pub(crate) fn choose_id(dev: &Dev, id: [u8; 8]) {
    let port = dev.data();
    port.link.lock().chosen_id = Some(id);
    port.update_gid(dev);
    port.works.light.queue(dev, 0);
}

fn rejoin(dev: &Dev) {
    multicast::leave_all(dev);
    path::forget_all(dev);
    dev.data().works.multicast.queue(dev, 0);
}

/// Takes the carrier away until the broadcast group is joined again.
pub(crate) fn normal(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    dev.data().update_gid(dev);
    if is_started(dev) {
        dev.set_carrier(false);
        rejoin(dev);
    }
}

/// Follows the P_Key table: an interface has the P_Key of its first entry, a child its own, wherever that is.
pub(crate) fn heavy(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    let changed = follow_pkey(dev);
    if !dev.is_running() || (is_started(dev) && !changed) {
        return;
    }
    restart(dev);
}

/// Reads the P_Key table; RTNL is held. Says whether the queue pair has to follow.
pub(crate) fn follow_pkey(dev: &Dev) -> bool {
    let port = dev.data();
    if port.parent.is_some() {
        let pkey = port.link.lock().pkey;
        let index = port.hca.find_pkey(port.number, pkey).ok();
        return port.verbs.lock().as_ref().map(|verbs| verbs.pkey_index) != index;
    }
    let Ok(pkey) = port.hca.pkey(port.number, 0) else {
        return false;
    };
    let pkey = pkey | 0x8000;
    if core::mem::replace(&mut port.link.lock().pkey, pkey) == pkey {
        return false;
    }
    dev.set_broadcast(&multicast::broadcast_address(pkey));
    true
}

/// A completion queue was overrun, or failed otherwise: it takes no completions any more. Any context.
pub(crate) fn cq_failed(dev: &Dev) {
    let port = dev.data();
    kernel::limited_warning!("{}: a completion queue failed, making it anew", dev.name());
    port.broken.store(true, Ordering::Release);
    if port.registered.load(Ordering::Acquire) {
        port.works.recover.queue(dev, 0);
    }
}

/// Makes the queue pair work again after an error.
pub(crate) fn recover(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    if !dev.is_running() {
        return;
    }
    let port = dev.data();
    port.counters.restarts.add(1);
    // A failed send leaves the send queue in error: that is enough to get out of it. What is chained goes then.
    let broken = port.broken.load(Ordering::Acquire);
    if !broken && port.qp().is_some_and(|qp| qp.recover().unwrap_or(false)) {
        let mut tx = dev.tx_lock();
        tx::post(dev, &mut tx, &port.counters, Flush::Quiesce);
        return;
    }
    restart(dev);
}

/// The HCA refused sends a while ago. Restarts the queue pair only if it does not work any more, or if it holds packets
/// of which no completion will tell because nothing was sent since.
pub(crate) fn check(dev: &Dev) {
    let Some(qp) = dev.data().qp() else { return };
    let untold = dev
        .tx_lock()
        .queue
        .as_ref()
        .is_some_and(SendQueue::has_untold);
    if untold || !qp.is_ready().unwrap_or(false) {
        recover(dev);
    }
}

/// Stops and starts the queue pair, again and again until that succeeds; RTNL is held.
fn restart(dev: &Dev) {
    life::stop(dev);
    if let Err(errno) = life::start(dev) {
        kernel::warning!(
            "{}: the queue pair can't be started, {errno}; trying again",
            dev.name()
        );
        dev.data().works.recover.queue(dev, RETRY_MS);
    }
}

/// The broadcast group is joined: brings the MTU to the smaller of what is wanted and what the group takes, and tells
/// the neighbours our address, whose queue pair number may be new.
pub(crate) fn follow_mtu(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    if !is_started(dev) {
        return;
    }
    let port = dev.data();
    let mtu = {
        let mut link = port.link.lock();
        link.setting_mtu = true;
        if port.is_connected() {
            link.admin_mtu
        } else {
            link.admin_mtu.min(link.group_mtu.unwrap_or(link.admin_mtu))
        }
    };
    if dev.mtu() != mtu {
        if let Err(errno) = dev.set_mtu(mtu) {
            kernel::warning!(
                "{}: MTU {mtu} of the broadcast group can't be set, {errno}",
                dev.name()
            );
        }
    }
    port.link.lock().setting_mtu = false;
    port.announced.store(0, Ordering::Relaxed);
    port.works.announce.queue(dev, 0);
}

/// Has the stack announce our address, several times.
pub(crate) fn announce(dev: &Dev) {
    let _rtnl = Rtnl::lock();
    let port = dev.data();
    // Without carrier, the next join of the broadcast group begins anew.
    if !is_started(dev) || !dev.has_carrier() {
        return;
    }
    if !dev.has_queue() {
        // What is sent before the link watcher attached the queueing discipline goes nowhere.
        port.works.announce.queue(dev, LINK_WATCH_MS);
        return;
    }
    dev.notify_peers();
    let count = port.announced.fetch_add(1, Ordering::Relaxed);
    if let Some(pause) = ANNOUNCE_MS.get(count as usize) {
        port.works.announce.queue(dev, *pause);
    }
}
