// SPDX-License-Identifier: GPL-2.0-only
//! Connections of ours: made for neighbours that take them, given up when they break or nobody uses them.

use ipoib_core::batch::Flush;
use ipoib_core::connect::{Active as State, Backoff, Happening, Hello, SEND_RING, Step};
use ipoib_core::connect::{is_idle, service_id};
use ipoib_core::ring::Size;
use ipoib_core::wire::Address;
use kernel::alloc::{Arc, Context, KArray};
use kernel::clock::{left_ms, now_ms};
use kernel::cm::Id;
use kernel::error::{Errno, Result};
use kernel::rc::{CqRef, RcQp, RcSize};
use kernel::rcsend::RcSends;
use kernel::sa::{self, Path, PathRequest};
use kernel::signal::{Signal, Signals};
use kernel::skb::SkbQueue;

use super::links::Phase;
use super::{Cm, changed, soonest};
use crate::port::{Dev, Port};

/// Milliseconds that the subnet administrator has to answer.
const QUERY_MS: u32 = 1000;

/// Milliseconds that a step may take: to ask, to connect, to send what is posted, to come back.
const ASK_MS: u32 = 10_000;
const CONNECT_MS: u32 = 30_000;
const QUIET_MS: u32 = 1000;
const DRAIN_MS: u32 = 5000;

/// Milliseconds between looks at a connection that is to become quiet.
const LOOK_MS: u32 = 20;

/// Milliseconds between looks for unused connections.
const AGE_MS: u32 = 60_000;

/// Answers of the subnet administrator that wait to be looked at.
const ANSWERS: usize = 16;

/// A path that was found, or why not.
pub(crate) type Answer = ([u8; 16], Result<Path>);

/// Paths that came in.
pub(crate) struct Answers(KArray<Option<Answer>>);

impl Answers {
    /// Makes room for them.
    pub(crate) fn new() -> Result<Self> {
        KArray::new(ANSWERS, || None).map(Self)
    }
}

/// A connection of ours.
pub(crate) struct Active {
    number: u16,
    address: Address,
    state: State,
    signal: Option<Arc<Signal<Port>>>,
    id: Option<Id<Port>>,
    qp: Option<Arc<RcQp<Port>>>,
    path: Option<Path>,
    hello: Option<Hello>,
    backoff: Backoff,
    deadline: Option<u32>,
    up: u32,
    used: u32,
    /// Its end is no failure, and it is not made again.
    unwanted: bool,
    /// It is off the table.
    over: bool,
    refused: bool,
}

/// Takes a path, for the work to look at.
fn answered(dev: &Dev, gid: [u8; 16], path: Result<Path>) {
    let mut answers = dev.data().answers.lock();
    // Without a free place the answer is lost, and asked for again.
    if let Some(slot) = answers.0.iter_mut().find(|slot| slot.is_none()) {
        *slot = Some((gid, path));
    }
    drop(answers);
    changed(dev);
}

/// Forgets paths that came in.
pub(crate) fn forget_answers(dev: &Dev) {
    for answer in dev.data().answers.lock().0.iter_mut() {
        *answer = None;
    }
}

/// Looks at connections; returns the milliseconds until it is to be called again.
pub(crate) fn run(dev: &Dev, cm: &mut Cm) -> Option<u32> {
    adopt(dev, cm);
    let mut actives = core::mem::take(&mut cm.actives);
    loop {
        let answer = dev
            .data()
            .answers
            .lock()
            .0
            .iter_mut()
            .find_map(Option::take);
        let Some((gid, path)) = answer else { break };
        for active in actives
            .iter_mut()
            .filter(|active| active.address.gid() == gid && active.state == State::Asking)
        {
            match &path {
                Ok(path) => {
                    active.path = Some(path.clone());
                    active.on(dev, cm, Happening::Path);
                }
                Err(_) => active.on(dev, cm, Happening::Refusal),
            }
        }
    }
    let mut pause = None;
    for active in actives.iter_mut() {
        active.look(dev, cm);
        pause = soonest(pause, active.deadline.map(left_ms));
        if active.state == State::Closing {
            pause = soonest(pause, Some(LOOK_MS));
        }
    }
    actives.retain(|active| !active.over);
    if !actives.is_empty() {
        pause = soonest(pause, Some(AGE_MS.min(dev.data().idle_ms / 2)));
    }
    cm.actives = actives;
    pause
}

/// Closes all connections; says whether one is left. `at_once` does not wait for what is posted.
pub(crate) fn end(dev: &Dev, cm: &mut Cm, at_once: bool) -> bool {
    adopt(dev, cm);
    let mut actives = core::mem::take(&mut cm.actives);
    for active in actives.iter_mut() {
        active.on(dev, cm, Happening::Unwanted);
        if at_once {
            active.on(dev, cm, Happening::Loss);
        }
    }
    cm.actives = actives;
    run(dev, cm);
    !cm.actives.is_empty()
}

/// Takes on the connections that packets want.
fn adopt(dev: &Dev, cm: &mut Cm) {
    let mut from = 0;
    loop {
        let fresh = dev.tx_lock().cm.links.next_fresh(from);
        let Some((number, address)) = fresh else {
            break;
        };
        from = number;
        let active = Active {
            number,
            address,
            state: State::default(),
            signal: None,
            id: None,
            qp: None,
            path: None,
            hello: None,
            backoff: Backoff::default(),
            deadline: None,
            up: now_ms(),
            used: now_ms(),
            unwanted: false,
            over: false,
            refused: false,
        };
        if cm.actives.push(active, Context::Process).is_err() {
            let gone = dev.tx_lock().cm.links.remove(number);
            drop(gone);
        }
    }
    let mut actives = core::mem::take(&mut cm.actives);
    for active in actives
        .iter_mut()
        .filter(|active| active.state == State::Wanted)
    {
        active.on(dev, cm, Happening::Start);
    }
    cm.actives = actives;
}

impl Active {
    fn look(&mut self, dev: &Dev, cm: &Cm) {
        let bits = self
            .signal
            .as_ref()
            .map(|signal| signal.take())
            .unwrap_or_default();
        let counters = &dev.data().counters;
        if bits.has(Signals::REPLY) {
            self.reply(dev, cm);
        }
        if bits.has(Signals::REJECT) {
            counters.cm_rejects.add(1);
            self.refused = true;
            self.on(dev, cm, Happening::Refusal);
        }
        if bits.has(Signals::TIMEOUT) {
            counters.cm_timeouts.add(1);
            self.on(dev, cm, Happening::Refusal);
        }
        if bits.has(Signals::DISCONNECT) {
            if let Some(id) = &self.id {
                id.disconnected();
            }
        }
        for loss in [Signals::DISCONNECT, Signals::GONE, Signals::BROKEN] {
            if bits.has(loss) {
                self.on(dev, cm, Happening::Loss);
            }
        }
        if bits.has(Signals::DRAINED) {
            self.on(dev, cm, Happening::Drained);
        }
        let now = now_ms();
        let mut quiet = false;
        {
            let mut tx = dev.tx_lock();
            if let Some(link) = tx.cm.links.get_mut(self.number) {
                if core::mem::replace(&mut link.used, false) {
                    self.used = now;
                }
                if let Phase::Closing(sends) = &link.phase {
                    quiet = sends.outstanding() == 0;
                }
            }
        }
        if self.state == State::Closing && quiet {
            self.on(dev, cm, Happening::Quiet);
        }
        if self.state == State::Up && is_idle(now.wrapping_sub(self.used), dev.data().idle_ms) {
            counters.cm_active_reaped.add(1);
            self.on(dev, cm, Happening::Unwanted);
        }
        if self.deadline.is_some_and(|at| left_ms(at) == 0) {
            if self.state != State::Resting {
                counters.cm_late.add(1);
                self.on(dev, cm, Happening::Late);
            } else if now.wrapping_sub(self.used) < AGE_MS && dev.data().is_connected() {
                self.on(dev, cm, Happening::Start);
            } else {
                self.leave(dev);
            }
        }
    }

    fn reply(&mut self, dev: &Dev, cm: &Cm) {
        let hello = self
            .signal
            .as_ref()
            .and_then(|signal| Hello::decode(signal.private()));
        self.hello = hello;
        if hello.is_none() {
            kernel::limited_warning!("{}: a neighbour takes no packets of ours", dev.name());
            self.refused = true;
            return self.on(dev, cm, Happening::Refusal);
        }
        self.on(dev, cm, Happening::Answer);
    }

    fn on(&mut self, dev: &Dev, cm: &Cm, what: Happening) {
        self.unwanted |= what == Happening::Unwanted;
        let (next, step) = self.state.on(what);
        if next != self.state {
            let ms = match next {
                State::Wanted | State::Up | State::Resting => None,
                State::Asking => Some(ASK_MS),
                State::Requested => Some(CONNECT_MS),
                State::Closing => Some(QUIET_MS),
                State::Draining => Some(DRAIN_MS),
            };
            self.deadline = ms.map(|ms| now_ms().wrapping_add(ms));
        }
        let before = self.state;
        self.state = next;
        let done = match step {
            Step::Ask => self.ask(dev),
            Step::Request => self.request(dev, cm),
            Step::Open => self.open(dev),
            Step::Close => {
                self.close(dev);
                Ok(())
            }
            Step::Break => {
                self.close(dev);
                self.fail(dev);
                Ok(())
            }
            Step::Free => {
                self.free(dev, before);
                Ok(())
            }
            Step::Nothing | Step::Mark => Ok(()),
        };
        if let Err(errno) = done {
            kernel::limited_warning!(
                "{}: no connection to queue pair {:#x}, {errno}",
                dev.name(),
                self.address.qpn()
            );
            self.on(dev, cm, Happening::Refusal);
            if step == Step::Open {
                // No packet went over it: nothing comes back.
                self.deadline = Some(now_ms());
            }
        }
    }

    fn ask(&mut self, dev: &Dev) -> Result {
        let port = dev.data();
        let link = *port.link.lock();
        let request = PathRequest {
            port: port.number,
            sgid: link.gid,
            dgid: self.address.gid(),
            pkey: link.pkey,
            traffic_class: link.traffic_class,
        };
        let mut tx = dev.tx_lock();
        port.counters.path_queries.add(1);
        if let Some(link) = tx.cm.links.get_mut(self.number) {
            if !matches!(link.phase, Phase::Waiting(_)) {
                link.phase = Phase::Waiting(SkbQueue::default());
            }
        }
        drop(tx);
        sa::query_path(dev, &port.hca, &request, QUERY_MS, answered)
    }

    fn request(&mut self, dev: &Dev, cm: &Cm) -> Result {
        let port = dev.data();
        let mut path = self.path.take().ok_or(Errno::ENOENT)?;
        let signal = Arc::new(Signal::new(dev, changed), Context::Process)?;
        let size = RcSize {
            send: SEND_RING,
            send_sge: cm.send_sge,
            recv: 1,
            recv_sge: 1,
            srq: None,
        };
        let (send, recv) = (CqRef::of(&cm.send), CqRef::of(&cm.recv));
        let qp = RcQp::new(&cm.pd, send, recv, &size, &signal)?;
        let id = Id::connect(&port.hca, signal.clone())?;
        port.counters.cm_requests.add(1);
        let sent = id.request(
            &qp,
            &mut path,
            service_id(self.address.qpn()),
            &cm.terms(dev),
        );
        self.signal = Some(signal);
        self.qp = Some(qp);
        self.id = Some(id);
        sent
    }

    fn open(&mut self, dev: &Dev) -> Result {
        let (Some(qp), Some(id), Some(hello)) = (&self.qp, &self.id, self.hello) else {
            return Err(Errno::EINVAL);
        };
        qp.prepare(id)?;
        qp.receive(id)?;
        qp.send(id)?;
        let size = Size::new(SEND_RING).ok_or(Errno::EINVAL)?;
        let sge = dev.data().hca.max_send_sge().clamp(1, 18);
        let sends = RcSends::new(qp.clone(), u32::from(self.number), size, sge)?;
        id.confirm()?;
        let port = dev.data();
        port.counters.cm_active_opened.add(1);
        (self.up, self.used) = (now_ms(), now_ms());
        let mut waited = SkbQueue::default();
        {
            let mut tx = dev.tx_lock();
            if let Some(link) = tx.cm.links.get_mut(self.number) {
                link.bytes = hello.bytes;
                link.signal.clone_from(&self.signal);
                link.used = true;
                let before = core::mem::replace(&mut link.phase, Phase::Up(sends));
                if let Phase::Waiting(mut queue) = before {
                    waited.append(&mut queue);
                }
            }
            port.counters.tx_waited.add(waited.len());
        }
        while let Some(skb) = waited.pop() {
            dev.queue_xmit(skb);
        }
        Ok(())
    }

    /// Takes no more packets.
    fn close(&self, dev: &Dev) {
        let mut tx = dev.tx_lock();
        super::send::flush(dev, &mut tx, Flush::Quiesce);
        if let Some(link) = tx.cm.links.get_mut(self.number) {
            let before = core::mem::replace(&mut link.phase, Phase::Down { lasting: false });
            link.phase = match before {
                Phase::Up(sends) => Phase::Closing(sends),
                other => other,
            };
        }
        super::send::wake(dev, &mut tx);
    }

    /// Has the queue pair give back what it has.
    fn fail(&mut self, dev: &Dev) {
        let Some(qp) = &self.qp else { return };
        let failed = qp.fail().and_then(|()| qp.mark(u32::from(self.number)));
        if let Err(errno) = failed {
            kernel::limited_warning!("{}: a connection can't be flushed, {errno}", dev.name());
            self.deadline = Some(now_ms());
        }
    }

    /// Frees all but the entry, which rests or goes.
    fn free(&mut self, dev: &Dev, before: State) {
        let port = dev.data();
        let counters = &port.counters;
        let unwanted = self.unwanted;
        let was_up = before == State::Draining;
        let pause = if core::mem::take(&mut self.refused) {
            self.backoff.refuse()
        } else {
            let stood = if was_up {
                now_ms().wrapping_sub(self.up)
            } else {
                0
            };
            self.backoff.fail(stood)
        };
        let lasting = self.backoff.is_lasting();
        let mut waited = SkbQueue::default();
        let sends = {
            let mut tx = dev.tx_lock();
            let phase = tx.cm.links.get_mut(self.number).map(|link| {
                link.signal = None;
                core::mem::replace(&mut link.phase, Phase::Down { lasting })
            });
            match phase {
                Some(Phase::Waiting(mut queue)) => {
                    counters.tx_waited.add(queue.len());
                    waited.append(&mut queue);
                    None
                }
                Some(Phase::Up(sends) | Phase::Closing(sends)) => Some(sends),
                Some(Phase::Down { .. }) | None => None,
            }
        };
        // DREQ first: the other end learns of it.
        drop(self.id.take());
        if let (Some(mut sends), Some(qp)) = (sends, &self.qp) {
            let lost = match qp.reset() {
                Ok(reset) => sends.clear(&reset),
                Err(_) => Default::default(),
            };
            let mut tx = dev.tx_lock();
            tx.cm.finished(lost.packets);
            counters.tx_drop_connection.add(lost.packets);
            if lost.packets > 0 {
                dev.completed(lost.packets, lost.bytes);
            }
            super::send::wake(dev, &mut tx);
            drop(tx);
            drop(sends);
        }
        self.qp = None;
        self.signal = None;
        self.hello = None;
        if before != State::Wanted && before != State::Resting && !unwanted {
            counters.cm_active_failed.add(1);
        }
        if unwanted || !port.is_connected() {
            self.leave(dev);
        } else {
            self.deadline = Some(now_ms().wrapping_add(pause));
        }
        while let Some(skb) = waited.pop() {
            dev.queue_xmit(skb);
        }
    }

    /// Takes the entry off the table.
    fn leave(&mut self, dev: &Dev) {
        self.over = true;
        let mut lost = SkbQueue::default();
        let link = {
            let mut tx = dev.tx_lock();
            let mut link = tx.cm.links.remove(self.number);
            if let Some(Phase::Waiting(queue)) = link.as_mut().map(|link| &mut link.phase) {
                lost.append(queue);
                dev.data().counters.tx_drop_path.add(lost.len());
            }
            link
        };
        drop(link);
    }
}
