// SPDX-License-Identifier: GPL-2.0-only
//! Connected mode (RFC 4755). One work looks at all that happened to connections; interrupts and callbacks only leave
//! word for it. What the transmit path needs is in [`links`], under the transmit lock; the rest is in [`Cm`].
//!
//! - [`passive`]: connections to us, [`active`]: connections of ours
//! - [`receive`], [`send`]: the data path
//! - [`mode`]: the mode of the interface

pub(crate) mod active;
pub(crate) mod links;
pub(crate) mod mode;
pub(crate) mod passive;
pub(crate) mod receive;
pub(crate) mod send;

use core::sync::atomic::Ordering;

use ipoib_core::batch::Flush;
use ipoib_core::connect::{
    MAX_PAGES, MOST_ACTIVE, SEND_TOTAL, most_passive, mtu_of_pages, receive_buffers, service_id,
};
use kernel::alloc::Arc;
use kernel::clock::nap;
use kernel::cm::Id;
use kernel::error::Result;
use kernel::list::List;
use kernel::napi::{CqNapi, Number};
use kernel::rc::{self, RcLimits, Srq};
use kernel::verbs::{Hca, Pd};

use crate::port::{Dev, Port};
use active::Active;
use passive::Passive;
use receive::CmRx;

/// Rounds of a millisecond or two that connections have to end when the interface goes down.
const END_ROUNDS: u32 = 6000;

/// What connections of an interface share; from `init` to `uninit`.
pub(crate) struct Cm {
    pd: Arc<Pd>,
    limits: RcLimits,
    send_sge: u32,
    /// Receive buffers of the shared queue, or of each connection.
    buffers: u32,
    /// Pages of each.
    pages: u32,
    listener: Option<Id<Port>>,
    actives: List<Active>,
    passives: List<Passive>,
    kept: List<Passive>,
    srq: Option<Arc<Srq>>,
    send: CqNapi<Port, ()>,
    recv: CqNapi<Port, CmRx>,
    started: bool,
}

/// Returns the largest MTU of connections to an interface of an HCA.
#[must_use]
pub(crate) fn mtu(hca: &Hca) -> u32 {
    mtu_of_pages(rc::limits(hca).recv_sge.min(MAX_PAGES as u32))
}

/// Something happened to a connection. Any context.
pub(crate) fn changed(dev: &Dev) {
    dev.data().works.cm.queue(dev, 0);
}

pub(crate) fn soonest(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}

/// Makes completion queues; RTNL is held.
pub(crate) fn init(dev: &Dev, pd: &Arc<Pd>, vector: u32) -> Result {
    let port = dev.data();
    let limits = rc::limits(&port.hca);
    let buffers = receive_buffers(port.rings.lock().rx, limits.shared);
    let most = most_passive(limits.shared);
    let receives = if limits.shared {
        buffers.saturating_add(most)
    } else {
        buffers.saturating_add(1).saturating_mul(most)
    };
    let cqe = |wanted: u32| wanted.min(limits.cqe.max(1));
    let recv = CqNapi::new(
        dev,
        &port.hca,
        Number::ConnectedReceive,
        (cqe(receives), vector),
        receive::poll,
        CmRx::new()?,
    )?;
    let sends = SEND_TOTAL.saturating_add(MOST_ACTIVE);
    let send = CqNapi::new(
        dev,
        &port.hca,
        Number::ConnectedSend,
        (cqe(sends), vector.wrapping_add(1)),
        send::poll,
        (),
    )?;
    *port.cm.lock() = Some(Cm {
        pd: pd.clone(),
        limits,
        send_sge: port.hca.max_send_sge().clamp(1, 18),
        buffers,
        pages: limits.recv_sge.clamp(1, MAX_PAGES as u32),
        listener: None,
        actives: List::default(),
        passives: List::default(),
        kept: List::default(),
        srq: None,
        send,
        recv,
        started: false,
    });
    Ok(())
}

/// Gives back what `init` took; RTNL is held, the interface is down.
pub(crate) fn uninit(dev: &Dev) {
    let cm = dev.data().cm.lock().take();
    drop(cm);
}

/// Takes connections from now on, and makes them if the mode is connected; RTNL is held.
pub(crate) fn start(dev: &Dev) {
    let port = dev.data();
    let mut cm = port.cm.lock();
    let Some(cm) = cm.as_mut().filter(|cm| !cm.started) else {
        return;
    };
    cm.recv.enable();
    cm.send.enable();
    let service = service_id(port.qpn.load(Ordering::Relaxed));
    match Id::listen(dev, &port.hca, service, passive::requested, changed) {
        Ok(id) => cm.listener = Some(id),
        Err(errno) => kernel::warning!(
            "{}: takes no connections, {errno}; neighbours in connected mode send datagrams",
            dev.name()
        ),
    }
    cm.started = true;
    dev.tx_lock().cm.on = port.is_connected();
}

/// Ends all connections; RTNL is held.
pub(crate) fn stop(dev: &Dev) {
    let port = dev.data();
    {
        let mut tx = dev.tx_lock();
        send::flush(dev, &mut tx, Flush::Quiesce);
        tx.cm.on = false;
    }
    let listener = port.cm.lock().as_mut().and_then(|cm| cm.listener.take());
    // Without the lock: it waits for callbacks.
    drop(listener);
    port.works.cm.cancel();
    passive::refuse_offers(dev);
    active::forget_answers(dev);
    let mut guard = port.cm.lock();
    let Some(cm) = guard.as_mut().filter(|cm| cm.started) else {
        return;
    };
    // The work, which signals still queue, finds nothing to do.
    cm.started = false;
    let mut rounds = 0_u32;
    loop {
        let busy = active::end(dev, cm, true) | passive::end(dev, cm);
        if !busy {
            break;
        }
        if rounds >= END_ROUNDS {
            kernel::error!("{}: connections are still in use", dev.name());
            break;
        }
        rounds = rounds.wrapping_add(1);
        nap();
        cm.send.kick();
        cm.recv.kick();
    }
    release_buffers(cm);
    cm.send.disable();
    cm.recv.disable();
    drop(guard);
    // Without the lock, for which the work may wait.
    port.works.cm.cancel();
    loop {
        let large = dev.tx_lock().cm.take_large();
        if large.is_none() {
            break;
        }
    }
}

/// Frees the shared receive buffers: nobody is connected.
fn release_buffers(cm: &mut Cm) {
    if cm.srq.take().is_some() {
        let shared = cm.recv.with_state(|rx| rx.shared.take());
        drop(shared);
    }
}

/// Looks at all that happened.
pub(crate) fn run(dev: &Dev) {
    tell_too_large(dev);
    let port = dev.data();
    let mut guard = port.cm.lock();
    let Some(cm) = guard.as_mut().filter(|cm| cm.started) else {
        return;
    };
    if !port.is_connected() {
        active::end(dev, cm, false);
    }
    let active = active::run(dev, cm);
    let passive = passive::run(dev, cm);
    starved(dev, cm);
    drop(guard);
    if let Some(pause) = soonest(active, passive) {
        port.works.cm.queue(dev, pause.max(1));
    }
}

/// Posts receive buffers for which no completion comes.
fn starved(dev: &Dev, cm: &Cm) {
    let counters = &dev.data().counters;
    cm.recv.with_state(|rx| {
        if let Some(shared) = rx.shared.as_mut().filter(|shared| shared.posted() == 0) {
            if let Ok(rung) = shared.refill(true) {
                counters.cm_rx_doorbells.add(rung);
            } else {
                dev.data().works.cm.queue(dev, 100);
            }
        }
    });
}

/// Tells the senders of packets that were too large.
fn tell_too_large(dev: &Dev) {
    loop {
        let large = dev.tx_lock().cm.take_large();
        let Some((mut skb, mtu)) = large else { break };
        skb.tell_too_large(mtu);
        dev.data().counters.cm_told_too_large.add(1);
    }
}
