// SPDX-License-Identifier: GPL-2.0-only
//! An interface on a port: its state, its resources, coming up and going down.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ipoib_core::batch::{Batch, Flush};
use ipoib_core::limits::{RING_RX, RING_TX};
use ipoib_core::ring::Size;
use ipoib_core::wire::{ENCAP_LEN, GRH_LEN};
use kernel::alloc::Arc;
use kernel::error::{Errno, Result};
use kernel::ethtool::{Coalesce, Rings};
use kernel::event::Handler;
use kernel::lock::{Mutex, SpinLock};
use kernel::napi::CqNapi;
use kernel::netdev::{Device, DeviceRef, nap};
use kernel::recvq::RecvQueue;
use kernel::sendq::SendQueue;
use kernel::verbs::{Hca, Pd, Qp, QpSize};
use kernel::work::Work;
use kernel::{client, param};

use crate::multicast::{self, Groups};
use crate::neigh::Table;
use crate::rx::{self, Rx};
use crate::stats::Counters;
use crate::tx::{self, Tx};
use crate::{event, path};

/// An interface as the kernel sees it.
pub type Dev = Device<Port>;

/// Milliseconds that flushed requests may take to complete.
const DRAIN_MS: u32 = 5000;

/// What the link is like.
#[derive(Clone, Copy)]
pub struct Link {
    /// Our GID.
    pub gid: [u8; 16],
    /// P_Key, with the bit of full membership.
    pub pkey: u16,
    /// MTU that the administrator wants.
    pub admin_mtu: u32,
    /// MTU of the broadcast group, once it is joined.
    pub group_mtu: Option<u32>,
    /// Traffic class of the broadcast group.
    pub traffic_class: u8,
    /// The driver itself is setting the MTU.
    pub setting_mtu: bool,
}

/// The interface's queue pair and what belongs to it.
pub struct Verbs {
    /// The queue pair.
    pub qp: Arc<Qp>,
    /// Send completions.
    pub send: CqNapi<Port, ()>,
    /// Receive completions.
    pub recv: CqNapi<Port, Rx>,
    /// The queue pair is ready and the pollers run.
    pub started: bool,
    /// Where its P_Key is in the port's table.
    pub pkey_index: u16,
    _events: Handler<Port>,
}

/// What runs later.
pub struct Works {
    /// Joins and leaves groups.
    pub multicast: Work<Port>,
    /// Asks for paths.
    pub path: Work<Port>,
    /// Forgets unused destinations.
    pub age: Work<Port>,
    /// Joins anew: the SM forgot us.
    pub light: Work<Port>,
    /// Goes down and up: the port changed.
    pub normal: Work<Port>,
    /// Restarts the queue pair if the P_Key table changed.
    pub heavy: Work<Port>,
    /// Restarts the queue pair after an error.
    pub recover: Work<Port>,
    /// Follows the broadcast group's MTU.
    pub mtu: Work<Port>,
}

/// The driver's data of an interface.
pub struct Port {
    /// The interface that this one is a child of.
    pub parent: Option<DeviceRef<Port>>,
    /// The HCA.
    pub hca: Hca,
    /// The port's number.
    pub number: u32,
    /// What the link is like.
    pub link: SpinLock<Link>,
    /// The queue pair, from `init` to `uninit`.
    pub verbs: Mutex<Option<Verbs>>,
    /// Joined groups.
    pub groups: Mutex<Groups>,
    /// Ring sizes.
    pub rings: Mutex<Rings>,
    /// Receive coalescing.
    pub coalesce: Mutex<Coalesce>,
    /// What runs later.
    pub works: Works,
    /// Counters.
    pub counters: Counters,
    /// Receive buffers that the device holds.
    pub posted: AtomicU32,
    /// The port's LID.
    pub lid: AtomicU32,
    /// The queue pair's number.
    pub qpn: AtomicU32,
    /// The last half of our GID.
    pub interface_id: AtomicU64,
    /// Groups may be joined.
    pub oper: AtomicBool,
    /// Groups that user space joined by itself are ignored.
    pub umcast: AtomicBool,
    receiving: AtomicBool,
}

/// Returns a ring size that the driver takes, near the wanted one.
fn ring_size(wanted: u32, limit: ipoib_core::limits::Limit) -> u32 {
    wanted
        .clamp(limit.min, limit.max)
        .next_power_of_two()
        .min(limit.max)
}

impl Port {
    /// Registers an interface on a port.
    pub fn create(hca: &Hca, number: u32) -> Result {
        let state = hca.port(number)?;
        let gid = hca.gid(number, 0)?;
        let pkey = hca.pkey(number, 0)? | 0x8000;
        let mtu = state.max_mtu.saturating_sub(ENCAP_LEN as u32);
        let link = Link {
            gid,
            pkey,
            admin_mtu: mtu,
            group_mtu: None,
            traffic_class: 0,
            setting_mtu: false,
        };
        let make = || Self::with_tx(hca.clone(), number, link, None);
        client::create(hca, number, c"ib%d", make, prepare)
    }

    /// Makes the data of a child of an interface, with a P_Key of its own.
    pub fn child(parent: &Dev, pkey: u16) -> Result<(Self, Tx)> {
        let port = parent.data();
        let link = Link {
            pkey,
            admin_mtu: parent.max_mtu(),
            group_mtu: None,
            ..*port.link.lock()
        };
        Self::with_tx(port.hca.clone(), port.number, link, Some(parent.hold()))
    }

    fn with_tx(
        hca: Hca,
        number: u32,
        link: Link,
        parent: Option<DeviceRef<Self>>,
    ) -> Result<(Self, Tx)> {
        let tx = Tx {
            queue: None,
            batch: Batch::default(),
            neighs: Table::new()?,
            qkey: 0,
            mtu: link.admin_mtu,
            pkey: link.pkey,
            up: false,
        };
        Ok((Self::new(hca, number, link, parent)?, tx))
    }

    fn new(hca: Hca, number: u32, link: Link, parent: Option<DeviceRef<Self>>) -> Result<Self> {
        Ok(Self {
            parent,
            hca,
            number,
            link: SpinLock::new(link)?,
            verbs: Mutex::new(None)?,
            groups: Mutex::new(Groups::default())?,
            rings: Mutex::new(Rings {
                rx: ring_size(param::recv_queue_size(), RING_RX),
                tx: ring_size(param::send_queue_size(), RING_TX),
            })?,
            coalesce: Mutex::new(Coalesce::default())?,
            works: Works {
                multicast: Work::new(multicast::run)?,
                path: Work::new(path::run)?,
                age: Work::new(path::age)?,
                light: Work::new(event::light)?,
                normal: Work::new(event::normal)?,
                heavy: Work::new(event::heavy)?,
                recover: Work::new(event::recover)?,
                mtu: Work::new(event::follow_mtu)?,
            },
            counters: Counters::default(),
            posted: AtomicU32::new(0),
            lid: AtomicU32::new(0),
            qpn: AtomicU32::new(0),
            interface_id: AtomicU64::new(0),
            oper: AtomicBool::new(false),
            umcast: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
        })
    }

    /// Says whether receive buffers are to be posted.
    pub fn is_receiving(&self) -> bool {
        self.receiving.load(Ordering::Acquire)
    }

    /// Says whether a packet from this LID and queue pair is ours.
    pub fn is_own(&self, (lid, qpn): (u32, u32)) -> bool {
        lid == self.lid.load(Ordering::Relaxed) && qpn == self.qpn.load(Ordering::Relaxed)
    }

    /// Has a path found, or a group joined, for packets that wait. Any context.
    pub fn ask(&self, dev: &Dev, group: bool) {
        let work = if group {
            &self.works.multicast
        } else {
            &self.works.path
        };
        work.queue(dev, 0);
    }

    /// Returns the queue pair while it is ready.
    pub fn qp(&self) -> Option<Arc<Qp>> {
        let verbs = self.verbs.lock();
        verbs
            .as_ref()
            .filter(|verbs| verbs.started)
            .map(|verbs| verbs.qp.clone())
    }

    /// Reads our GID anew. RTNL is held, or the device is not registered.
    pub fn update_gid(&self, dev: &Dev) {
        let Ok(gid) = self.hca.gid(self.number, 0) else {
            return;
        };
        let changed = core::mem::replace(&mut self.link.lock().gid, gid) != gid;
        let [.., a, b, c, d, e, f, g, h] = gid;
        self.interface_id.store(
            u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            Ordering::Relaxed,
        );
        if changed {
            dev.set_address(4, &gid);
        }
    }
}

/// Sets what must be in place before an interface is registered.
pub fn prepare(dev: &Dev) {
    let port = dev.data();
    let link = *port.link.lock();
    dev.set_mtu_bounds(68, link.admin_mtu);
    dev.store_mtu(link.admin_mtu);
    dev.set_broadcast(&multicast::broadcast_address(link.pkey));
    dev.set_address(4, &link.gid);
    dev.add_offloads(port.hca.can_checksum(), port.hca.can_segment());
    dev.set_carrier(false);
}

/// Makes the queue pair and its queues; RTNL is held.
pub fn init(dev: &Dev) -> Result {
    let port = dev.data();
    let hca = &port.hca;
    let rings = *port.rings.lock();
    let (Some(rx_size), Some(tx_size)) = (Size::new(rings.rx), Size::new(rings.tx)) else {
        return Err(Errno::EINVAL);
    };
    let pd = Pd::new(hca)?;
    // The two pollers of an interface, and the interfaces, use different vectors.
    let vector = (dev.ifindex() as u32).wrapping_mul(2);
    let recv = CqNapi::new(
        dev,
        hca,
        rings.rx.wrapping_add(1),
        vector,
        rx::poll,
        Rx::default(),
    )?;
    let send = CqNapi::new(dev, hca, rings.tx, vector.wrapping_add(1), tx::poll, ())?;
    let max_sge = hca.max_send_sge().clamp(1, 18);
    let size = QpSize {
        send: rings.tx,
        recv: rings.rx,
        send_sge: max_sge,
    };
    let qp = Qp::new(&pd, port.number, &send, &recv, size)?;
    let buffer = dev.max_mtu().wrapping_add((GRH_LEN + ENCAP_LEN) as u32);
    let queue = RecvQueue::new(qp.clone(), rx_size, buffer)?;
    let sends = SendQueue::new(qp.clone(), tx_size, max_sge)?;
    if let Some(mut rx) = recv.state() {
        rx.queue = Some(queue);
    }
    dev.tx_lock().queue = Some(sends);
    let [_, a, b, c] = qp.number().to_be_bytes();
    dev.set_address(1, &[a, b, c]);
    port.qpn.store(qp.number(), Ordering::Relaxed);
    port.update_gid(dev);
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
pub fn uninit(dev: &Dev) {
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
pub fn start(dev: &Dev) -> Result<bool> {
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
            let filled = queue.fill(dev);
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
    dev.wake_queue();
    port.works.multicast.queue(dev, 0);
    port.works.age.queue(dev, path::AGE_MS);
    Ok(true)
}

/// Takes the queue pair out of service; RTNL is held.
pub fn stop(dev: &Dev) {
    let port = dev.data();
    port.oper.store(false, Ordering::Release);
    port.works.multicast.cancel();
    port.works.age.cancel();
    dev.set_carrier(false);
    {
        let mut tx = dev.tx_lock();
        dev.stop_queue();
        tx.up = false;
        tx::post(dev, &mut tx, &port.counters, Flush::Quiesce);
    }
    multicast::leave_all(dev);
    let mut verbs = port.verbs.lock();
    let Some(verbs) = verbs.as_mut().filter(|verbs| verbs.started) else {
        return;
    };
    port.receiving.store(false, Ordering::Release);
    if let Err(errno) = verbs.qp.flush() {
        kernel::warning!("{}: the queue pair can't be flushed, {errno}", dev.name());
    }
    let begin = kernel::netdev::now_ms();
    let (mut sends, mut receives) = pending(dev);
    while (sends > 0 || receives > 0) && kernel::netdev::now_ms().wrapping_sub(begin) < DRAIN_MS {
        nap();
        verbs.send.kick();
        verbs.recv.kick();
        (sends, receives) = pending(dev);
    }
    if sends > 0 || receives > 0 {
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
                .map_or(0, |queue| queue.clear(&reset).skbs);
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
