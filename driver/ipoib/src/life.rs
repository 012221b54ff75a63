// SPDX-License-Identifier: GPL-2.0-only
//! The queue pair's life: made and unmade, started and stopped. RTNL is held throughout.

use core::sync::atomic::{AtomicU32, Ordering};

use ipoib_core::batch::Flush;
use ipoib_core::ring::Size;
use ipoib_core::wire::{Address, ENCAP_LEN, GRH_LEN};
use kernel::clock::{nap, now_ms};
use kernel::error::{Errno, Result};
use kernel::event::Handler;
use kernel::napi::{CqNapi, Number};
use kernel::recvq::RecvQueue;
use kernel::sendq::SendQueue;
use kernel::verbs::{Pd, Qp, QpSize};

use crate::port::{Dev, Verbs};
use crate::rx::{self, Rx};
use crate::{cm, event, multicast, path, tx};

/// Milliseconds that flushed requests may take to complete.
const DRAIN_MS: u32 = 5000;

/// Completion vector of the next interface.
static VECTOR: AtomicU32 = AtomicU32::new(0);

/// Makes the queue pair and its queues; RTNL is held.
pub(crate) fn init(dev: &Dev) -> Result {
    let port = dev.data();
    let hca = &port.hca;
    let rings = *port.rings.lock();
    let (Some(rx_size), Some(tx_size)) = (Size::new(rings.rx), Size::new(rings.tx)) else {
        return Err(Errno::EINVAL);
    };
    port.broken.store(false, Ordering::Release);
    let pd = Pd::new(hca)?;
    // The two pollers of an interface, and the interfaces, use different vectors.
    let vector = VECTOR.fetch_add(2, Ordering::Relaxed);
    let recv = CqNapi::new(
        dev,
        hca,
        Number::Receive,
        (rings.rx.wrapping_add(1), vector),
        rx::poll,
        Rx::default(),
    )?;
    let send = CqNapi::new(
        dev,
        hca,
        Number::Send,
        (rings.tx, vector.wrapping_add(1)),
        tx::poll,
        tx::Wcs::default(),
    )?;
    let max_sge = hca.send_entries();
    let size = QpSize {
        send: rings.tx,
        recv: rings.rx,
        send_sge: max_sge,
    };
    let qp = Qp::new(&pd, port.number, &send, &recv, size)?;
    let buffer = port.ud_mtu.wrapping_add((GRH_LEN + ENCAP_LEN) as u32);
    let queue = RecvQueue::new(qp.clone(), rx_size, buffer)?;
    let sends = SendQueue::new(qp.clone(), tx_size, max_sge)?;
    if let Some(mut rx) = recv.state() {
        rx.queue = Some(queue);
    }
    dev.tx_lock().queue = Some(sends);
    // Connections are taken in either mode.
    let [_, a, b, c] = qp.number().to_be_bytes();
    dev.set_address(0, &[Address::FLAG_RC, a, b, c]);
    port.qpn.store(qp.number(), Ordering::Relaxed);
    port.update_gid(dev);
    let moderation = *port.coalesce.lock();
    if (moderation.rx_usecs, moderation.rx_frames) != (0, 0) {
        recv.moderate(moderation.rx_usecs as u16, moderation.rx_frames as u16)?;
    }
    cm::init(dev, &pd, vector)?;
    let events = Handler::new(dev, hca, port.number, event::notice)?;
    *port.verbs.lock() = Some(Verbs {
        qp,
        send,
        recv,
        started: false,
        pkey_index: 0,
        _events: events,
    });
    Ok(())
}

/// Gives back what `init` took; RTNL is held, the queue pair is stopped.
pub(crate) fn uninit(dev: &Dev) {
    cm::uninit(dev);
    let port = dev.data();
    let verbs = port.verbs.lock().take();
    // Dropped without the lock: it frees memory, and completions may still run.
    let queue = dev.tx_lock().queue.take();
    drop(queue);
    if let Some(mut rx) = verbs.as_ref().and_then(|verbs| verbs.recv.state()) {
        rx.queue = None;
    }
    drop(verbs);
}

/// Makes the queue pair ready; RTNL is held. Says whether it is: without its P_Key, it waits for that.
pub(crate) fn start(dev: &Dev) -> Result<bool> {
    let port = dev.data();
    let link = *port.link.lock();
    let Ok(index) = port.hca.find_pkey(port.number, link.pkey) else {
        kernel::warning!(
            "{}: P_Key {:#06x} is not in the port's table, waiting for it",
            dev.name(),
            link.pkey
        );
        return Ok(false);
    };
    // Or an attempt to make it anew failed.
    let broken = port.broken.load(Ordering::Acquire);
    let dead = |verbs: &Verbs| broken && !verbs.started;
    if port.verbs.lock().as_ref().is_none_or(dead) {
        uninit(dev);
        init(dev)?;
    }
    let mut verbs = port.verbs.lock();
    let Some(verbs) = verbs.as_mut() else {
        return Err(Errno::ENODEV);
    };
    if verbs.started {
        return Ok(true);
    }
    verbs.qp.start(index)?;
    let filled = match verbs.recv.state() {
        Some(mut rx) => rx.queue.as_mut().map_or(Err(Errno::ENODEV), |queue| {
            let filled = queue.fill();
            port.posted.store(queue.posted(), Ordering::Release);
            filled
        }),
        None => Err(Errno::EBUSY),
    };
    if let Err(errno) = filled {
        kernel::error!("{}: no receive buffers, {errno}", dev.name());
        clear(dev, verbs);
        return Err(errno);
    }
    port.receiving.store(true, Ordering::Release);
    verbs.started = true;
    verbs.pkey_index = index;
    {
        let mut tx = dev.tx_lock();
        tx.pkey = link.pkey;
        tx.up = true;
    }
    verbs.recv.enable();
    verbs.send.enable();
    port.oper.store(true, Ordering::Release);
    cm::start(dev);
    dev.wake_queue();
    port.works.multicast.queue(dev, 0);
    port.works.age.queue(dev, path::AGE_MS);
    Ok(true)
}

/// Takes the queue pair out of service; RTNL is held.
pub(crate) fn stop(dev: &Dev) {
    let port = dev.data();
    port.oper.store(false, Ordering::Release);
    port.works.multicast.cancel();
    port.works.age.cancel();
    // It takes RTNL, so that waiting for it here would never end.
    port.works.announce.withdraw();
    dev.set_carrier(false);
    {
        let mut tx = dev.tx_lock();
        dev.stop_queue();
        tx.up = false;
        tx::post(dev, &mut tx, &port.counters, Flush::Quiesce);
    }
    cm::stop(dev);
    multicast::leave_all(dev);
    let mut verbs = port.verbs.lock();
    let Some(verbs) = verbs.as_mut().filter(|verbs| verbs.started) else {
        return;
    };
    port.receiving.store(false, Ordering::Release);
    if let Err(errno) = verbs.qp.flush() {
        kernel::warning!("{}: the queue pair can't be flushed, {errno}", dev.name());
    }
    let begin = now_ms();
    let (mut sends, mut receives) = pending(dev);
    // A completion queue in error tells of nothing any more.
    let is_broken = || port.broken.load(Ordering::Acquire);
    while (sends > 0 || receives > 0) && now_ms().wrapping_sub(begin) < DRAIN_MS && !is_broken() {
        nap();
        verbs.send.kick();
        verbs.recv.kick();
        (sends, receives) = pending(dev);
    }
    if (sends > 0 || receives > 0) && !is_broken() {
        kernel::warning!(
            "{}: {sends} sends and {receives} receives were not flushed",
            dev.name()
        );
    }
    verbs.send.disable();
    verbs.recv.disable();
    clear(dev, verbs);
    verbs.started = false;
}

fn pending(dev: &Dev) -> (u32, u32) {
    let sends = dev.tx_lock().queue.as_ref().map_or(0, SendQueue::awaited);
    (sends, dev.data().posted.load(Ordering::Acquire))
}

/// Empties the queues of a queue pair whose pollers are disabled.
fn clear(dev: &Dev, verbs: &Verbs) {
    let port = dev.data();
    match verbs.qp.reset() {
        Ok(reset) => {
            let mut tx = dev.tx_lock();
            let lost = tx
                .queue
                .as_mut()
                .map_or(0, |queue| queue.clear(&reset).packets);
            port.counters.tx_drop_down.add(lost);
            drop(tx);
            if let Some(mut rx) = verbs.recv.state() {
                if let Some(queue) = &mut rx.queue {
                    queue.clear(&reset);
                }
            }
        }
        Err(errno) => kernel::error!("{}: the queue pair can't be reset, {errno}", dev.name()),
    }
    port.posted.store(0, Ordering::Release);
    path::forget_all(dev);
    dev.reset_limits();
}
