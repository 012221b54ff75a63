// SPDX-License-Identifier: GPL-2.0-only
//! One multicast group: its membership, and the packets that go to it.

use ipoib_core::wire::Address;
use kernel::alloc::Arc;
use kernel::clock::now_ms;
use kernel::error::{Errno, Result};
use kernel::sa::{Group as Record, Join, Membership};
use kernel::skb::SkbQueue;
use kernel::verbs::{Ah, Qp};

use crate::neigh::State;
use crate::port::{Dev, Port};

/// Longest pause between attempts to join, in milliseconds.
pub(crate) const MAX_BACKOFF_MS: u32 = 16_000;

/// Where a group stands.
pub(crate) enum Progress {
    /// To be joined, not before this time (milliseconds).
    Wanted(u32),
    /// ib_sa was asked.
    Joining(Join<Port>),
    /// Joined.
    Member {
        /// Dropping it leaves the group.
        _join: Join<Port>,
        /// How packets get there.
        ah: Arc<Ah>,
    },
}

/// A group.
pub(crate) struct Group {
    /// Its GID.
    pub mgid: [u8; 16],
    /// How it is joined.
    pub membership: Membership,
    /// Where it stands.
    pub progress: Progress,
    /// The LID under which the queue pair is attached.
    pub attached: Option<u16>,
    /// Pause before the next attempt, in milliseconds.
    pub backoff: u32,
    /// Found in the last comparison with what is wanted.
    pub wanted: bool,
}

/// Returns the address under which the transmit path keeps a group.
fn address(mgid: [u8; 16]) -> Address {
    Address::new(0, 0x00ff_ffff, mgid)
}

impl Group {
    /// Makes a group that is to be joined at once.
    pub(crate) fn new(mgid: [u8; 16], membership: Membership) -> Self {
        Self {
            mgid,
            membership,
            progress: Progress::Wanted(now_ms()),
            attached: None,
            backoff: 0,
            wanted: true,
        }
    }

    /// Stops receiving what is sent to it.
    pub(crate) fn detach(&mut self, dev: &Dev, qp: Option<&Qp>) {
        if let (Some(mlid), Some(qp)) = (self.attached.take(), qp) {
            if let Err(errno) = qp.detach(&self.mgid, mlid) {
                kernel::warning!(
                    "{}: can't detach from group {:x?}, {errno}",
                    dev.name(),
                    self.mgid
                );
            }
        }
    }

    /// Tries again, later than the last time.
    pub(crate) fn retry(&mut self) {
        self.backoff = self.backoff.saturating_mul(2).clamp(1000, MAX_BACKOFF_MS);
        self.progress = Progress::Wanted(now_ms().wrapping_add(self.backoff));
    }
}

/// Attaches the queue pair to a joined group and makes the address handle.
pub(crate) fn finish(
    dev: &Dev,
    qp: &Arc<Qp>,
    group: &mut Group,
    record: &mut Record,
    is_broadcast: bool,
) -> Result<Arc<Ah>> {
    let port = dev.data();
    if is_broadcast {
        let bytes = port.hca.mtu_bytes(port.number, record.mtu());
        let mtu = bytes
            .checked_sub(4)
            .filter(|mtu| *mtu >= 68)
            .ok_or(Errno::EINVAL)?;
        qp.set_qkey(record.qkey())?;
        {
            let mut link = port.link.lock();
            link.group_mtu = Some(mtu);
            link.traffic_class = record.traffic_class();
        }
        let mut tx = dev.tx_lock();
        tx.qkey = record.qkey();
        tx.mtu = mtu;
    }
    if group.membership == Membership::Full && group.attached.is_none() {
        qp.attach(&group.mgid, record.mlid())?;
        group.attached = Some(record.mlid());
    }
    record.handle(qp.pd(), port.number)
}

/// Lets packets go to a group.
pub(crate) fn install(dev: &Dev, mgid: [u8; 16], ah: Arc<Ah>, waited: &mut SkbQueue) {
    let mut tx = dev.tx_lock();
    let to = address(mgid);
    match tx.neighs.find(&to) {
        Some(neigh) => {
            if let State::Waiting { queue, .. } = &mut neigh.state {
                // Counted under the transmit lock, as the others.
                dev.data().counters.tx_waited.add(queue.packets());
                waited.append(queue);
            }
            neigh.state = State::Ready(ah);
        }
        // Without memory for it, the next packet asks again.
        None => {
            let _added = tx.neighs.add(to, State::Ready(ah)).is_ok();
        }
    }
}

/// Drops what waited for a group.
pub(crate) fn fail(dev: &Dev, mgid: [u8; 16]) {
    let mut lost = SkbQueue::default();
    let mut tx = dev.tx_lock();
    if let Some(neigh) = tx.neighs.find(&address(mgid)) {
        if let State::Waiting { queue, .. } = &mut neigh.state {
            dev.data().counters.tx_drop_multicast.add(queue.packets());
            lost.append(queue);
        }
        neigh.state = State::Failed(now_ms().wrapping_add(crate::path::RETRY_MS));
    }
    drop(tx);
}

/// Says whether an address of the stack is that of an IPoIB group of this partition (RFC 4391, 4).
pub(crate) fn is_valid(address: &[u8; 20], broadcast: &[u8; 20]) -> bool {
    // The first six bytes: queue pair number, ff, flags and scope; then signature, and P_Key.
    let same = |range: core::ops::Range<usize>| address.get(range.clone()) == broadcast.get(range);
    same(0..6) && same(7..10)
}
