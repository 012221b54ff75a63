// SPDX-License-Identifier: GPL-2.0-only
//! An interface on a port: its state and its resources.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ipoib_core::batch::Batch;
use ipoib_core::connect::IDLE_MS;
use ipoib_core::limits::{CM_COPYBREAK, RING_RX, RING_TX};
use ipoib_core::wire::ENCAP_LEN;
use kernel::alloc::Arc;
use kernel::error::Result;
use kernel::ethtool::{Coalesce, Rings};
use kernel::event::Handler;
use kernel::lock::{Mutex, SpinLock};
use kernel::napi::CqNapi;
use kernel::netdev::{Device, DeviceRef};
use kernel::verbs::{Hca, Qp};
use kernel::work::Work;
use kernel::{client, param};

use crate::cm::active::Answers;
use crate::cm::passive::Offers;
use crate::cm::send::Sending;
use crate::cm::{self, Cm};
use crate::multicast::{self, Groups};
use crate::neigh::Table;
use crate::rx::Rx;
use crate::stats::Counters;
use crate::tx::Tx;
use crate::{event, path, tx};

/// An interface as the kernel sees it.
pub(crate) type Dev = Device<Port>;

/// What the link is like.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Our GID.
    pub gid: [u8; 16],
    /// The last half of our GID, when the administrator set another than the port's first.
    pub chosen_id: Option<[u8; 8]>,
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
pub(crate) struct Verbs {
    /// The queue pair.
    pub qp: Arc<Qp>,
    /// Send completions.
    pub send: CqNapi<Port, tx::Wcs>,
    /// Receive completions.
    pub recv: CqNapi<Port, Rx>,
    /// The queue pair is ready and the pollers run.
    pub started: bool,
    /// Where its P_Key is in the port's table.
    pub pkey_index: u16,
    /// Events of the port; dropped with the rest, it ends them.
    pub _events: Handler<Port>,
}

/// What runs later.
pub(crate) struct Works {
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
    /// Looks at the send queue after the HCA refused a part of a chain.
    pub check: Work<Port>,
    /// Follows the broadcast group's MTU.
    pub mtu: Work<Port>,
    /// Announces our address to the neighbours.
    pub announce: Work<Port>,
    /// Looks at connections.
    pub cm: Work<Port>,
}

/// The driver's data of an interface.
pub(crate) struct Port {
    /// The interface that this one is a child of.
    pub parent: Option<DeviceRef<Self>>,
    /// A child that the file `create_child` made.
    pub by_file: bool,
    /// The HCA.
    pub hca: Hca,
    /// The port's number.
    pub number: u32,
    /// What the link is like.
    pub link: SpinLock<Link>,
    /// The queue pair, from `init` to `uninit`.
    pub verbs: Mutex<Option<Verbs>>,
    /// Connections, from `init` to `uninit`.
    pub cm: Mutex<Option<Cm>>,
    /// Requests to connect to us.
    pub offers: SpinLock<Offers>,
    /// Paths for connections of ours.
    pub answers: SpinLock<Answers>,
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
    /// Largest MTU of datagrams on this port.
    pub ud_mtu: u32,
    /// Milliseconds that a connection may be unused.
    pub idle_ms: u32,
    /// Payload bytes up to which a message is copied; 0 copies none.
    pub copybreak: AtomicU32,
    /// Receive buffers that the device holds.
    pub posted: AtomicU32,
    /// The port's LID.
    pub lid: AtomicU32,
    /// The queue pair's number.
    pub qpn: AtomicU32,
    /// The last half of our GID.
    pub interface_id: AtomicU64,
    /// Announcements of our address since the broadcast group was joined.
    pub announced: AtomicU32,
    /// Groups may be joined.
    pub oper: AtomicBool,
    /// Connected mode.
    pub connected: AtomicBool,
    /// Groups that user space joined by itself are ignored.
    pub umcast: AtomicBool,
    /// Receive buffers are to be posted.
    pub receiving: AtomicBool,
    /// A completion queue is in error: all is made anew at the next start.
    pub broken: AtomicBool,
    /// The interface is registered: works may use it.
    pub registered: AtomicBool,
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
    pub(crate) fn create(hca: &Hca, number: u32) -> Result {
        let state = hca.port(number)?;
        let gid = hca.gid(number, 0)?;
        let pkey = hca.pkey(number, 0)? | 0x8000;
        let mtu = state.max_mtu.saturating_sub(ENCAP_LEN as u32);
        let link = Link {
            gid,
            chosen_id: None,
            pkey,
            admin_mtu: mtu,
            group_mtu: None,
            traffic_class: 0,
            setting_mtu: false,
        };
        let make = || Self::with_tx(hca.clone(), number, link, None, mtu);
        client::create(hca, number, c"ib%d", make, prepare)
    }

    /// Makes the data of a child of an interface, with a P_Key of its own.
    pub(crate) fn child(parent: &Dev, pkey: u16) -> Result<(Self, Tx)> {
        let port = parent.data();
        let link = Link {
            pkey,
            admin_mtu: port.ud_mtu,
            group_mtu: None,
            ..*port.link.lock()
        };
        let parent = Some(parent.hold());
        Self::with_tx(port.hca.clone(), port.number, link, parent, port.ud_mtu)
    }

    fn with_tx(
        hca: Hca,
        number: u32,
        link: Link,
        parent: Option<DeviceRef<Self>>,
        ud_mtu: u32,
    ) -> Result<(Self, Tx)> {
        let tx = Tx {
            queue: None,
            batch: Batch::default(),
            neighs: Table::new()?,
            qkey: 0,
            mtu: link.admin_mtu,
            pkey: link.pkey,
            up: false,
            cm: Sending::new()?,
        };
        Ok((Self::new(hca, number, link, parent, ud_mtu)?, tx))
    }

    fn new(
        hca: Hca,
        number: u32,
        link: Link,
        parent: Option<DeviceRef<Self>>,
        ud_mtu: u32,
    ) -> Result<Self> {
        Ok(Self {
            parent,
            by_file: false,
            hca,
            number,
            link: SpinLock::new(link)?,
            verbs: Mutex::new(None)?,
            cm: Mutex::new(None)?,
            offers: SpinLock::new(Offers::new()?)?,
            answers: SpinLock::new(Answers::new()?)?,
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
                check: Work::new(event::check)?,
                mtu: Work::new(event::follow_mtu)?,
                announce: Work::new(event::announce)?,
                cm: Work::new(cm::run)?,
            },
            counters: Counters::default(),
            ud_mtu,
            idle_ms: param::cm_idle_ms().clamp(IDLE_MS.min, IDLE_MS.max),
            copybreak: AtomicU32::new(CM_COPYBREAK.default),
            posted: AtomicU32::new(0),
            lid: AtomicU32::new(0),
            qpn: AtomicU32::new(0),
            interface_id: AtomicU64::new(0),
            announced: AtomicU32::new(0),
            oper: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            umcast: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            registered: AtomicBool::new(false),
        })
    }

    /// Says whether the mode is connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Acquire)
    }

    /// Returns the largest IP packet that connections to us take.
    pub(crate) fn connected_mtu(&self) -> u32 {
        cm::mtu(&self.hca)
    }

    /// Returns the largest IP packet that datagrams carry.
    pub(crate) fn datagram_mtu(&self) -> u32 {
        self.link
            .lock()
            .group_mtu
            .unwrap_or(self.ud_mtu)
            .min(self.ud_mtu)
    }

    /// Says whether receive buffers are to be posted.
    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving.load(Ordering::Acquire)
    }

    /// Says whether a packet from this LID and queue pair is ours.
    pub(crate) fn is_own(&self, (lid, qpn): (u32, u32)) -> bool {
        lid == self.lid.load(Ordering::Relaxed) && qpn == self.qpn.load(Ordering::Relaxed)
    }

    /// Has a path found, or a group joined, for packets that wait. Any context.
    pub(crate) fn ask(&self, dev: &Dev, group: bool) {
        let work = if group {
            &self.works.multicast
        } else {
            &self.works.path
        };
        work.queue(dev, 0);
    }

    /// Returns the queue pair while it is ready.
    pub(crate) fn qp(&self) -> Option<Arc<Qp>> {
        let verbs = self.verbs.lock();
        verbs
            .as_ref()
            .filter(|verbs| verbs.started)
            .map(|verbs| verbs.qp.clone())
    }

    /// Reads our GID anew. RTNL is held, or the device is not registered.
    pub(crate) fn update_gid(&self, dev: &Dev) {
        let Ok(mut gid) = self.hca.gid(self.number, 0) else {
            return;
        };
        let mut link = self.link.lock();
        if let Some(id) = link.chosen_id {
            let [_, _, _, _, _, _, _, _, own @ ..] = &mut gid;
            if *own == id {
                // Back at the port's own: follow that again.
                link.chosen_id = None;
            }
            *own = id;
        }
        let changed = core::mem::replace(&mut link.gid, gid) != gid;
        drop(link);
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
pub(crate) fn prepare(dev: &Dev) {
    let port = dev.data();
    let link = *port.link.lock();
    dev.set_mtu_bounds(68, link.admin_mtu);
    dev.store_mtu(link.admin_mtu);
    dev.set_broadcast(&multicast::broadcast_address(link.pkey));
    dev.set_address(4, &link.gid);
    dev.add_offloads(port.hca.can_checksum(), port.hca.can_segment());
    dev.set_carrier(false);
}
