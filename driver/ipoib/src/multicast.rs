// SPDX-License-Identifier: GPL-2.0-only
//! Multicast groups: one work brings what is joined to what is wanted.

use core::sync::atomic::Ordering;

use ipoib_core::wire::{Address, broadcast_gid};
use kernel::alloc::{Arc, Context, KArray};
use kernel::clock::left_ms;
use kernel::error::{Errno, Result};
use kernel::list::List;
use kernel::sa::{Group as Record, Join, JoinRequest, Membership};
use kernel::skb::SkbQueue;
use kernel::verbs::Qp;

use crate::group::{Group, MAX_BACKOFF_MS, Progress, fail, finish, install, is_valid};
use crate::neigh::State;
use crate::port::Dev;

/// The groups of an interface.
#[derive(Default)]
pub(crate) struct Groups {
    list: List<Group>,
    /// The broadcast group's record, once it is joined.
    broadcast: Option<Record>,
    /// Pause before groups left to user space are looked at again, in milliseconds; 0 when there are none.
    look_again_ms: u32,
    /// The last comparison left groups to user space.
    left_alone: bool,
}

/// Returns the broadcast address of a partition (RFC 4391, 4): scope link-local.
pub(crate) fn broadcast_address(pkey: u16) -> [u8; 20] {
    Address::new(0, 0x00ff_ffff, broadcast_gid(pkey, 2)).bytes()
}

/// Joins what is wanted, leaves what is not.
pub(crate) fn run(dev: &Dev) {
    let port = dev.data();
    let active = match port.hca.port(port.number) {
        Ok(state) if state.active => {
            port.lid.store(state.lid, Ordering::Relaxed);
            true
        }
        _ => false,
    };
    // An event comes when the port gets active.
    if !active || !port.oper.load(Ordering::Acquire) {
        return;
    }
    let Some(qp) = port.qp() else { return };
    let mut waited = SkbQueue::default();
    let mut groups = port.groups.lock();
    groups.collect(dev, &qp, &mut waited);
    groups.left_alone = false;
    let result = groups.want_all(dev, &qp, &mut waited);
    let pause = soonest(groups.start(dev), groups.look_again());
    drop(groups);
    while let Some(skb) = waited.pop() {
        dev.queue_xmit(skb);
    }
    if let Err(errno) = result {
        kernel::warning!(
            "{}: multicast groups can't be compared, {errno}",
            dev.name()
        );
        port.works.multicast.queue(dev, 1000);
    } else if let Some(pause) = pause {
        port.works.multicast.queue(dev, pause.max(1));
    }
}

fn soonest(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}

/// A join has a result.
fn changed(dev: &Dev) {
    dev.data().works.multicast.queue(dev, 0);
}

/// Leaves all groups. They stay in the list, to be joined anew: until their leave is over, ib_sa knows them, and with
/// umcast they would be taken for groups of user space.
pub(crate) fn leave_all(dev: &Dev) {
    let port = dev.data();
    let qp = port.qp();
    let mut groups = port.groups.lock();
    groups.broadcast = None;
    for group in groups.list.iter_mut() {
        group.detach(dev, qp.as_deref());
        *group = Group::new(group.mgid, group.membership);
    }
}

impl Groups {
    /// Takes the results of joins.
    fn collect(&mut self, dev: &Dev, qp: &Arc<Qp>, waited: &mut SkbQueue) {
        let counters = &dev.data().counters;
        let broadcast_mgid = Address::from_bytes(&dev.broadcast()).gid();
        for group in self.list.iter_mut() {
            let Progress::Joining(join) = &group.progress else {
                continue;
            };
            let Some(result) = join.result() else {
                continue;
            };
            let is_broadcast = group.mgid == broadcast_mgid;
            match result.and_then(|mut record| {
                finish(dev, qp, group, &mut record, is_broadcast).map(|ah| (record, ah))
            }) {
                Ok((record, ah)) => {
                    let progress = core::mem::replace(&mut group.progress, Progress::Wanted(0));
                    if let Progress::Joining(join) = progress {
                        group.progress = Progress::Member {
                            _join: join,
                            ah: ah.clone(),
                        };
                    }
                    group.backoff = 0;
                    install(dev, group.mgid, ah, waited);
                    if is_broadcast {
                        counters.broadcast_joins.add(1);
                        self.broadcast = Some(record);
                        dev.set_carrier(true);
                        // After the carrier, without which nothing is announced.
                        dev.data().works.mtu.queue(dev, 0);
                    }
                }
                Err(errno) => {
                    counters.multicast_failures.add(1);
                    if group.backoff < MAX_BACKOFF_MS && errno != Errno::EAGAIN {
                        kernel::info!(
                            "{}: can't join group {:x?}, {errno}",
                            dev.name(),
                            group.mgid
                        );
                    }
                    group.detach(dev, Some(qp));
                    group.retry();
                    if group.membership == Membership::SendOnly {
                        fail(dev, group.mgid);
                        group.wanted = false;
                    }
                }
            }
        }
    }

    /// Compares the list with what the stack, and packets that wait, want.
    fn want_all(&mut self, dev: &Dev, qp: &Arc<Qp>, waited: &mut SkbQueue) -> Result {
        let broadcast = Address::from_bytes(&dev.broadcast()).gid();
        if !self.list.iter().any(|group| group.mgid == broadcast) {
            self.list
                .push(Group::new(broadcast, Membership::Full), Context::Process)?;
        }
        // RFC 4391, 5: nothing else before the broadcast group is joined.
        if self.broadcast.is_none() {
            return Ok(());
        }
        for group in self.list.iter_mut() {
            group.wanted = group.mgid == broadcast;
        }
        let count = dev.multicast(&mut []) as usize;
        let mut addresses = KArray::new(count.saturating_add(8), || [0_u8; 20])?;
        let count = (dev.multicast(&mut addresses) as usize).min(addresses.len());
        for raw in addresses
            .iter()
            .take(count)
            .filter(|raw| is_valid(raw, &dev.broadcast()))
        {
            self.want(dev, qp, Address::from_bytes(raw).gid(), Membership::Full)?;
        }
        // Groups that packets go to.
        let is_group = |address: &Address, state: &State| {
            address.is_multicast() && !matches!(state, State::Failed(_))
        };
        let count = dev
            .tx_lock()
            .neighs
            .iter_mut()
            .filter(|neigh| is_group(&neigh.address, &neigh.state))
            .count();
        let mut groups = KArray::new(count.saturating_add(8), || [0_u8; 16])?;
        let mut tx = dev.tx_lock();
        let found = tx
            .neighs
            .iter_mut()
            .filter(|neigh| is_group(&neigh.address, &neigh.state));
        let mut count = 0_usize;
        for (slot, neigh) in groups.iter_mut().zip(found) {
            *slot = neigh.address.gid();
            count = count.wrapping_add(1);
            if let State::Waiting { asked, .. } = &mut neigh.state {
                *asked = true;
            }
        }
        drop(tx);
        for mgid in groups.iter().take(count) {
            self.want(dev, qp, *mgid, Membership::SendOnly)?;
            // A member already, whose destination was forgotten in between.
            let group = self.list.iter().find(|group| group.mgid == *mgid);
            if let Some(Progress::Member { ah, .. }) = group.map(|group| &group.progress) {
                install(dev, *mgid, ah.clone(), waited);
            }
        }
        // What is no longer wanted.
        self.list.retain(|group| {
            if !group.wanted {
                group.detach(dev, Some(qp));
            }
            group.wanted
        });
        Ok(())
    }

    fn want(&mut self, dev: &Dev, qp: &Arc<Qp>, mgid: [u8; 16], membership: Membership) -> Result {
        if let Some(group) = self.list.iter_mut().find(|group| group.mgid == mgid) {
            group.wanted = true;
            if group.membership == Membership::SendOnly && membership == Membership::Full {
                group.detach(dev, Some(qp));
                *group = Group::new(mgid, Membership::Full);
            }
            return Ok(());
        }
        let port = dev.data();
        // What we only send to is nothing that user space could receive for us.
        if membership == Membership::Full
            && port.umcast.load(Ordering::Relaxed)
            && kernel::sa::is_known(&port.hca, port.number, &mgid)
        {
            // User space joined it by itself, and the administrator wants that left alone. But it may also be one that
            // we are just leaving.
            self.left_alone = true;
            return Ok(());
        }
        self.list
            .push(Group::new(mgid, membership), Context::Process)
            .map(|_| ())
    }

    /// Returns the milliseconds until groups left to user space are to be looked at again: nobody tells when it leaves.
    fn look_again(&mut self) -> Option<u32> {
        self.look_again_ms = if self.left_alone {
            self.look_again_ms
                .saturating_mul(2)
                .clamp(1000, MAX_BACKOFF_MS)
        } else {
            0
        };
        self.left_alone.then_some(self.look_again_ms)
    }

    /// Starts joins that are due; returns the milliseconds until the next is.
    fn start(&mut self, dev: &Dev) -> Option<u32> {
        let port = dev.data();
        let link = *port.link.lock();
        let broadcast = Address::from_bytes(&dev.broadcast()).gid();
        let mut pause: Option<u32> = None;
        for group in self.list.iter_mut() {
            let Progress::Wanted(at) = group.progress else {
                continue;
            };
            let like = if group.mgid == broadcast {
                None
            } else {
                self.broadcast.as_ref()
            };
            if like.is_none() && group.mgid != broadcast {
                continue;
            }
            let left = left_ms(at);
            if left > 0 {
                pause = soonest(pause, Some(left));
                continue;
            }
            let request = JoinRequest {
                port: port.number,
                mgid: group.mgid,
                port_gid: link.gid,
                pkey: link.pkey,
                membership: group.membership,
                like,
            };
            match Join::start(dev, &port.hca, &request, changed) {
                Ok(join) => group.progress = Progress::Joining(join),
                Err(errno) => {
                    kernel::info!(
                        "{}: can't ask to join group {:x?}, {errno}",
                        dev.name(),
                        group.mgid
                    );
                    group.retry();
                    pause = soonest(pause, Some(group.backoff));
                }
            }
        }
        pause
    }
}
