// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps interfaces as declared: takes events, decides what to look at and when, sets what differs.
//!
//! Knows the kernel only as the engine's `Host`, and the time only as it is told: no clock, no files,
//! no sockets here. The caller hands in events, calls [`Supervisor::settle`], and comes again at
//! [`Supervisor::next_wake`]; what was done and why is in the records that it takes.

mod attend;
mod backoff;
mod children;
mod state;
mod status;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use ibmgr_api::status::{Counters, Owner, Record, RecordKind};
use ibmgr_api::{
    Assignment, Declared, Desired, Key, Knob, Link, LinkWants, Origin, Phase, Value, Want,
};
use ibmgrd_engine::{Host, Journal, PortError, Query, keys_of_parts, resolve};
use ibmgrd_hw::watch::Event;

pub(crate) use attend::chain;
pub use state::Cause;
use state::{LinkState, Work};

/// What the supervisor needs besides a kernel: a journal, and who else is about.
pub trait Surroundings: Journal {
    /// Returns other programs that manage the interface with that index.
    fn owners(&self, index: u32) -> Vec<Owner>;
}

/// Time between two polls of what has no notification.
pub const POLL: Duration = Duration::from_secs(10);
/// More interfaces than these are read as one list.
const FEW: usize = 4;
/// After so long interfaces are listed again when the kernel did not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Declarations, what is known of the interfaces that they are for, and what is to be done.
#[derive(Debug)]
pub struct Supervisor {
    desired: Desired,
    wants: BTreeMap<u32, LinkWants>,
    states: BTreeMap<u32, LinkState>,
    work: BTreeMap<u32, Work>,
    /// Interfaces or declarations changed, for that cause: what is wanted is to be found out anew.
    stale: Option<Cause>,
    retries: BTreeSet<(Instant, u32)>,
    again: Option<Instant>,
    poll_interval: Duration,
    next_poll: Option<Instant>,
    records: Vec<Record>,
    counters: Counters,
    /// What requests have set over declarations, by index.
    held: BTreeMap<u32, BTreeMap<Key, Held>>,
}

/// A value that a request has set over a declaration.
#[derive(Clone, Debug)]
struct Held {
    value: Value,
    origin: Origin,
    /// The declaration that it is over. When another one takes that one's place, that one counts.
    over: Origin,
}

impl Supervisor {
    /// Returns a supervisor that wants nothing yet.
    #[must_use]
    pub const fn new(poll_interval: Duration) -> Self {
        Self {
            desired: Desired { rules: Vec::new() },
            wants: BTreeMap::new(),
            states: BTreeMap::new(),
            work: BTreeMap::new(),
            stale: None,
            retries: BTreeSet::new(),
            again: None,
            poll_interval,
            next_poll: None,
            records: Vec::new(),
            counters: Counters {
                wakeups: 0,
                events: 0,
                polls: 0,
                applied: 0,
                healed: 0,
                failed: 0,
            },
            held: BTreeMap::new(),
        }
    }

    /// Takes other declarations, and everything that they declare as to be set.
    pub fn declare(&mut self, desired: Desired, cause: Cause) {
        self.desired = desired;
        if matches!(cause, Cause::Reload | Cause::Start) {
            self.held.clear();
        }
        self.look_at_everything(cause);
    }

    /// Takes what a request has set as declared, where something else is: until the declarations are
    /// read again, or another one takes the place of that which it overrides.
    pub fn hold(&mut self, index: u32, set: &[Assignment], origin: &Origin) {
        let Some(wants) = self.wants.get_mut(&index) else {
            return;
        };
        for Assignment { key, value } in set {
            let Some(want) = wants.settings.get_mut(key) else {
                continue;
            };
            let held = self.held.entry(index).or_default();
            let over = match held.get(key) {
                Some(before) => before.over.clone(),
                None => want.declared.origin.clone(),
            };
            let it = Held {
                value: value.clone(),
                origin: origin.clone(),
                over,
            };
            it.overlay(want);
            held.insert(key.clone(), it);
        }
    }

    /// Looks at every interface at the next [`Supervisor::settle`].
    pub fn look_at_everything(&mut self, cause: Cause) {
        self.stale = self.stale.max(Some(cause));
        for index in self.wants.keys() {
            enqueue(&mut self.work, *index, Work::all(cause));
        }
    }

    /// Takes an event of the kernel.
    pub fn take(&mut self, event: Event) {
        self.counters.events += 1;
        match event {
            Event::Created { .. } => self.stale = self.stale.max(Some(Cause::Notice)),
            Event::Removed { index, name } => {
                self.stale = self.stale.max(Some(Cause::Notice));
                self.work.remove(&index);
                if self.wants.remove(&index).is_some() {
                    self.tell(Record::new(RecordKind::Disappeared, "the kernel says so").of(name));
                }
                self.states.remove(&index);
                self.held.remove(&index);
            }
            Event::Renamed { index, from, to } => {
                self.stale = self.stale.max(Some(Cause::Notice));
                if self.states.contains_key(&index) {
                    let record = Record::new(RecordKind::Renamed, "the kernel says so").of(&to);
                    let names = (Some(from.to_string()), Some(to.to_string()));
                    self.tell(record.values(names.0, names.1));
                }
            }
            Event::Changed {
                index,
                knobs,
                identity,
                carrier,
                ..
            } => {
                // Queues and NAPI instances come and go with these.
                let remakes =
                    |knob: &&'static Knob| matches!(knob.phase, Phase::Up | Phase::Queues);
                let is_remade = carrier || knobs.iter().any(remakes);
                if identity || is_remade && !keys_of_parts(&self.desired).is_empty() {
                    self.stale = self.stale.max(Some(Cause::Notice));
                }
                let Some(wants) = self.wants.get(&index) else {
                    return;
                };
                if carrier {
                    enqueue(&mut self.work, index, Work::all(Cause::Carrier));
                }
                let told: HashSet<&str> = knobs.iter().map(|knob| knob.name).collect();
                let is_told = |key: &&Key| told.contains(key.knob().name);
                let keys: BTreeSet<Key> = wants.settings.keys().filter(is_told).cloned().collect();
                if !keys.is_empty() {
                    enqueue(&mut self.work, index, Work::knobs(keys, Cause::Notice));
                }
            }
            Event::Resync { why } => {
                self.tell(Record::new(RecordKind::Lost, why.to_string()));
                self.look_at_everything(Cause::Lost);
            }
        }
    }

    /// Says whether [`Supervisor::settle`] has anything to do at `now`.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        let is_late = self.next_wake().is_some_and(|at| at <= now);
        is_late || !self.work.is_empty() || self.stale.is_some() && self.again.is_none()
    }

    /// Does what is to be done at `now`, except what has to wait. No other program of ibmgr may be
    /// changing anything meanwhile.
    ///
    /// # Errors
    ///
    /// The kernel does not list interfaces. It is tried again later.
    pub fn settle<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        now: Instant,
    ) -> Result<(), PortError> {
        if self.again.is_some_and(|again| again <= now) {
            self.again = None;
        }
        if let Some(cause) = self.stale {
            if let Err(error) = self.resolve(port, cause) {
                self.again = Some(now + AGAIN);
                return Err(error);
            }
            self.stale = None;
        }
        self.collect_retries(now);
        self.collect_polls(now);
        self.attend_all(port, surroundings, now);
        self.plan_polls(now);
        Ok(())
    }

    fn attend_all<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        now: Instant,
    ) {
        let mut observed = self.observe_many(port);
        while let Some((index, work)) = self.work.pop_first() {
            let link = observed.remove(&index);
            self.attend(port, surroundings, (index, work), link, now);
        }
    }

    /// Reads interfaces as one list when there are many to look at.
    fn observe_many<P: Host>(&self, port: &mut P) -> BTreeMap<u32, Link> {
        if self.work.len() <= FEW {
            return BTreeMap::new();
        }
        let wants = self.work.keys().filter_map(|index| self.wants.get(index));
        let mut keys = BTreeSet::new();
        for wants in wants {
            keys.extend(wants.settings.keys().cloned());
        }
        let along = keys.iter().flat_map(|key| key.knob().disturbs);
        let along: Vec<Key> = along.filter_map(|name| Key::named(name).ok()).collect();
        keys.extend(along);
        // When it fails, each is asked by itself, and tells why it can't be read.
        let links = port.observe_all(&Query::named(keys.into_iter().collect()));
        let links = links.unwrap_or_default().into_iter();
        links.map(|link| (link.index, link)).collect()
    }

    /// Returns when [`Supervisor::settle`] has something to do without an event; `None` for never.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        let retry = self.retries.first().map(|(at, _)| *at);
        [retry, self.again, self.next_poll]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns what happened since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Notes that the caller's loop woke up.
    pub const fn count_wakeup(&mut self) {
        self.counters.wakeups += 1;
    }

    /// Finds out what is wanted of the interfaces that are there now.
    fn resolve<P: Host>(&mut self, port: &mut P, cause: Cause) -> Result<(), PortError> {
        let links = port.observe_all(&Query::named(keys_of_parts(&self.desired)))?;
        let mut before = std::mem::take(&mut self.wants);
        let mut appeared = Vec::new();
        for mut wants in resolve(&self.desired, &links) {
            let index = wants.index;
            if let Some(held) = self.held.get_mut(&index) {
                held.retain(|key, held| {
                    let want = wants.settings.get_mut(key);
                    let want = want.filter(|want| want.declared.origin == held.over);
                    want.map(|want| held.overlay(want)).is_some()
                });
            }
            let state = self.states.entry(index);
            let state = state.or_insert_with(|| LinkState::new(wants.link.clone()));
            state.name = wants.link.clone();
            state
                .knobs
                .retain(|key, _| wants.settings.contains_key(key));
            match before.remove(&index) {
                None => {
                    let cause = cause.max(Cause::Appeared);
                    if cause == Cause::Appeared {
                        appeared.push(wants.link.clone());
                    }
                    enqueue(&mut self.work, index, Work::all(cause));
                }
                Some(before) => {
                    if before.settings != wants.settings {
                        let cause = cause.max(Cause::Identity);
                        enqueue(&mut self.work, index, Work::all(cause));
                    }
                    if before.children != wants.children {
                        let mut work = Work::knobs(BTreeSet::new(), cause);
                        work.has_children = true;
                        enqueue(&mut self.work, index, work);
                    }
                }
            }
            self.wants.insert(index, wants);
        }
        for (index, wants) in before {
            self.states.remove(&index);
            self.work.remove(&index);
            self.held.remove(&index);
            // Gone before its own notification was read, which then finds nothing to tell of.
            if !links.iter().any(|link| link.index == index) {
                let record = Record::new(RecordKind::Disappeared, "the kernel says so");
                self.tell(record.of(wants.link));
            }
        }
        for name in appeared {
            let reason = "an interface that declarations are for";
            self.tell(Record::new(RecordKind::Appeared, reason).of(name));
        }
        Ok(())
    }

    fn collect_retries(&mut self, now: Instant) {
        while let Some((at, index)) = self.retries.first().copied() {
            if at > now {
                break;
            }
            self.retries.pop_first();
            let Some(state) = self.states.get(&index) else {
                continue;
            };
            let is_due = |retry: Option<Instant>| retry.is_some_and(|retry| retry <= now);
            let knobs = state.knobs.iter().filter(|(_, knob)| is_due(knob.retry));
            let keys: BTreeSet<Key> = knobs.map(|(key, _)| key.clone()).collect();
            let mut work = Work::knobs(keys, Cause::Retry);
            work.has_children = state.children.values().any(|child| is_due(child.retry));
            enqueue(&mut self.work, index, work);
        }
    }

    fn collect_polls(&mut self, now: Instant) {
        if self.next_poll.is_none_or(|at| at > now) {
            return;
        }
        self.next_poll = None;
        self.counters.polls += 1;
        for (index, state) in self.states.iter().filter(|(_, s)| !s.polled.is_empty()) {
            enqueue(
                &mut self.work,
                *index,
                Work::knobs(state.polled.clone(), Cause::Poll),
            );
        }
    }

    /// A timer runs only while something is polled.
    fn plan_polls(&mut self, now: Instant) {
        if self.states.values().all(|state| state.polled.is_empty()) {
            self.next_poll = None;
        } else if self.next_poll.is_none() {
            self.next_poll = Some(now + self.poll_interval);
        }
    }

    fn retry_at(&mut self, index: u32, at: Instant) {
        self.retries.insert((at, index));
    }

    fn tell(&mut self, record: Record) {
        self.records.push(record);
    }
}

impl Held {
    fn overlay(&self, want: &mut Want) {
        let held = Declared {
            value: self.value.clone(),
            policy: want.declared.policy,
            origin: self.origin.clone(),
        };
        let before = std::mem::replace(&mut want.declared, held);
        if before.origin == self.over {
            want.overridden.push(before);
        }
    }
}

fn enqueue(all: &mut BTreeMap<u32, Work>, index: u32, work: Work) {
    match all.get_mut(&index) {
        Some(before) => before.join(work),
        None => {
            all.insert(index, work);
        }
    }
}
