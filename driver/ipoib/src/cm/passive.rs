// SPDX-License-Identifier: GPL-2.0-only
//! Connections to us: accepted, watched, given up when nobody uses them.

use ipoib_core::connect::{Happening, Hello, Passive as State, Step, is_idle};
use ipoib_core::connect::{RETRIES, RNR_RETRIES, most_passive};
use kernel::alloc::{Arc, Context, KArray};
use kernel::clock::{left_ms, now_ms};
use kernel::cm::{Id, Terms};
use kernel::error::{Errno, Result};
use kernel::pages::{PageQueue, Place};
use kernel::rc::{CqRef, RcQp, RcSize, Srq};
use kernel::signal::{Signal, Signals};

use super::receive::Peer;
use super::{Cm, soonest};
use crate::port::{Dev, Port};

/// Requests that wait to be looked at.
const OFFERS: usize = 64;

/// Milliseconds that a step of the end may take.
const LATE_MS: u32 = 5000;

/// Milliseconds between looks for unused connections.
const LOOK_MS: u32 = 60_000;

/// Requests to connect that the connection manager handed over.
pub(crate) struct Offers(KArray<Option<(Id<Port>, Hello)>>);

impl Offers {
    /// Makes room for them.
    pub(crate) fn new() -> Result<Self> {
        KArray::new(OFFERS, || None).map(Self)
    }

    fn take(&mut self) -> Option<(Id<Port>, Hello)> {
        self.0.iter_mut().find_map(Option::take)
    }
}

/// A connection to us.
pub(crate) struct Passive {
    state: State,
    qp: Arc<RcQp<Port>>,
    id: Id<Port>,
    signal: Arc<Signal<Port>>,
    /// When the step under way is late.
    deadline: Option<u32>,
    /// When a message was seen last.
    used: u32,
    last_receive: bool,
}

/// Takes a request, for the work to look at.
pub(crate) fn requested(
    dev: &Dev,
    id: Id<Port>,
    private: [u8; 8],
) -> core::result::Result<(), Id<Port>> {
    let port = dev.data();
    let mut offers = port.offers.lock();
    let free = offers.0.iter_mut().find(|slot| slot.is_none());
    let (Some(slot), Some(hello)) = (free, Hello::decode(private)) else {
        return Err(id);
    };
    *slot = Some((id, hello));
    drop(offers);
    port.works.cm.queue(dev, 0);
    Ok(())
}

/// Rejects all requests that nobody looked at.
pub(crate) fn refuse_offers(dev: &Dev) {
    loop {
        let offer = dev.data().offers.lock().take();
        // Dropped without the lock: it waits for callbacks.
        if offer.is_none() {
            break;
        }
    }
}

/// Looks at requests and connections; returns the milliseconds until it is to be called again.
pub(crate) fn run(dev: &Dev, cm: &mut Cm) -> Option<u32> {
    loop {
        let offer = dev.data().offers.lock().take();
        let Some((id, hello)) = offer else { break };
        accept(dev, cm, id, hello);
    }
    let mut pause = None;
    let mut passives = core::mem::take(&mut cm.passives);
    for passive in passives.iter_mut() {
        passive.look(dev, cm);
        pause = soonest(pause, passive.deadline.map(left_ms));
    }
    let over = |passive: &Passive| passive.state == State::Over;
    while let Some(passive) = passives.take() {
        if over(&passive) {
            free(dev, cm, passive);
        } else if cm.kept.push(passive, Context::Process).is_err() {
            // Without memory for a list entry, which was freed just now, there is nothing left to do but to drop it.
            kernel::error!("{}: no memory to keep a connection", dev.name());
        }
    }
    core::mem::swap(&mut cm.passives, &mut cm.kept);
    if cm.passives.is_empty() {
        super::release_buffers(cm);
        return pause;
    }
    soonest(pause, Some(LOOK_MS.min(dev.data().idle_ms / 2)))
}

/// Puts all connections into error, for the interface goes down; says whether one is left.
pub(crate) fn end(dev: &Dev, cm: &mut Cm) -> bool {
    let mut passives = core::mem::take(&mut cm.passives);
    for passive in passives.iter_mut() {
        passive.on(dev, cm, Happening::Unwanted);
    }
    cm.passives = passives;
    run(dev, cm);
    !cm.passives.is_empty()
}

fn accept(dev: &Dev, cm: &mut Cm, id: Id<Port>, hello: Hello) {
    let counters = &dev.data().counters;
    match prepare(cm, &id) {
        Ok(passive) => {
            let terms = cm.terms(dev);
            let answered = id.reply(&passive.0, &terms);
            let passive = Passive {
                state: State::default(),
                qp: passive.0,
                id,
                signal: passive.1,
                deadline: None,
                used: now_ms(),
                last_receive: false,
            };
            if let Err(errno) = answered {
                counters.cm_passive_refused.add(1);
                kernel::limited_warning!(
                    "{}: a connection of queue pair {:#x} can't be answered, {errno}",
                    dev.name(),
                    hello.qpn
                );
                free(dev, cm, passive);
                return;
            }
            counters.cm_passive_accepted.add(1);
            let identity = passive.qp.identity();
            if cm.passives.push(passive, Context::Process).is_err() {
                forget(cm, identity);
            }
        }
        Err(errno) => {
            counters.cm_passive_refused.add(1);
            id.reject();
            kernel::limited_warning!(
                "{}: a connection of queue pair {:#x} is refused, {errno}",
                dev.name(),
                hello.qpn
            );
        }
    }
}

type Prepared = (Arc<RcQp<Port>>, Arc<Signal<Port>>);

/// Makes the queue pair of a connection, ready to receive.
fn prepare(cm: &mut Cm, id: &Id<Port>) -> Result<Prepared> {
    let signal = id.signal().ok_or(Errno::EINVAL)?.clone();
    let shared = cm.limits.shared;
    if cm.passives.iter().count() as u32 >= most_passive(shared) {
        return Err(Errno::EBUSY);
    }
    if shared && cm.srq.is_none() {
        let size = cm.buffers;
        let srq = Srq::new(&cm.pd, size, cm.pages)?;
        let mut queue = PageQueue::new(&cm.pd, Place::Shared(srq.clone()), size, cm.pages)?;
        queue.refill(true)?;
        cm.recv.with_state(|rx| rx.shared = Some(queue));
        cm.srq = Some(srq);
    }
    let size = RcSize {
        send: 0,
        send_sge: 1,
        recv: cm.buffers,
        recv_sge: cm.pages,
        srq: cm.srq.clone(),
    };
    // The marker completes behind the receives, on the same queue.
    let cq = CqRef::of(&cm.recv);
    let qp = RcQp::new(&cm.pd, cq, cq, &size, &signal)?;
    qp.prepare(id)?;
    let mut own = None;
    if !shared {
        let place = Place::Own(qp.clone());
        let mut queue = PageQueue::new(&cm.pd, place, cm.buffers, cm.pages)?;
        queue.refill(true)?;
        own = Some(queue);
    }
    qp.receive(id)?;
    // Some HCAs complete the marker of a queue pair only if it could send before. It need not.
    let _sends = qp.send(id);
    let peer = Peer {
        identity: qp.identity(),
        signal: signal.clone(),
        own,
    };
    cm.recv
        .with_state(|rx| rx.add(peer))
        .unwrap_or(Err(Errno::ENODEV))?;
    Ok((qp, signal))
}

fn forget(cm: &Cm, identity: usize) {
    cm.recv.with_state(|rx| rx.remove(identity));
}

/// Frees a connection that nothing uses any more.
fn free(dev: &Dev, cm: &mut Cm, passive: Passive) {
    dev.data().counters.cm_passive_closed.add(1);
    let Passive { qp, id, .. } = passive;
    // DREQ first: the other end stops sending.
    drop(id);
    forget(cm, qp.identity());
    drop(qp);
}

impl Passive {
    fn look(&mut self, dev: &Dev, cm: &Cm) {
        let bits = self.signal.take();
        self.last_receive |= bits.has(Signals::LAST_RECEIVE);
        if bits.has(Signals::MESSAGE) {
            self.id.established();
        }
        if bits.has(Signals::READY) || bits.has(Signals::MESSAGE) {
            self.on(dev, cm, Happening::Answer);
        }
        if bits.has(Signals::DISCONNECT) {
            self.id.disconnected();
        }
        for loss in [
            Signals::DISCONNECT,
            Signals::REJECT,
            Signals::TIMEOUT,
            Signals::GONE,
            Signals::BROKEN,
        ] {
            if bits.has(loss) {
                self.on(dev, cm, Happening::Loss);
            }
        }
        let now = now_ms();
        if self.signal.take_use() {
            self.used = now;
        } else if is_idle(now.wrapping_sub(self.used), dev.data().idle_ms)
            && matches!(self.state, State::Answered | State::Up)
        {
            dev.data().counters.cm_passive_reaped.add(1);
            self.on(dev, cm, Happening::Unwanted);
        }
        if self.last_receive {
            self.on(dev, cm, Happening::LastReceive);
        }
        if bits.has(Signals::DRAINED) {
            self.on(dev, cm, Happening::Drained);
        }
        if self.deadline.is_some_and(|at| left_ms(at) == 0) {
            dev.data().counters.cm_late.add(1);
            self.on(dev, cm, Happening::Late);
        }
    }

    fn on(&mut self, dev: &Dev, cm: &Cm, what: Happening) {
        let shared = cm.limits.shared;
        let (next, step) = self.state.on(what, shared);
        if next != self.state {
            self.deadline = match next {
                State::Flushing | State::Draining => Some(now_ms().wrapping_add(LATE_MS)),
                State::Answered | State::Up | State::Over => None,
            };
        }
        self.state = next;
        match step {
            Step::Break => {
                let failed = self.qp.fail();
                if let Err(errno) = failed {
                    kernel::warning!("{}: a connection can't be flushed, {errno}", dev.name());
                }
                if !shared {
                    // Nothing posted, nothing to wait for.
                    let identity = self.qp.identity();
                    let empty = cm.recv.with_state(|rx| {
                        rx.find(identity)
                            .and_then(|peer| peer.own.as_mut())
                            .is_none_or(|own| {
                                own.close();
                                own.posted() == 0
                            })
                    });
                    if empty == Some(true) {
                        self.on(dev, cm, Happening::Drained);
                    }
                }
            }
            Step::Mark => {
                if self.qp.mark(0).is_err() {
                    self.deadline = Some(now_ms());
                    dev.data().works.cm.queue(dev, 1);
                }
            }
            Step::Free | Step::Nothing | Step::Open | Step::Ask | Step::Request | Step::Close => {}
        }
    }
}

/// Says what REP and REQ offer.
impl Cm {
    pub(super) fn terms(&self, dev: &Dev) -> Terms {
        let port = dev.data();
        let hello = Hello {
            qpn: port.qpn.load(core::sync::atomic::Ordering::Relaxed),
            bytes: port
                .connected_mtu()
                .saturating_add(ipoib_core::wire::ENCAP_LEN as u32),
        };
        Terms {
            hello: hello.encode(),
            shared: self.limits.shared,
            retries: RETRIES,
            rnr_retries: RNR_RETRIES,
        }
    }
}
