// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One interface: which declared values differ, whether they are set now, later or not, and how it went.

use std::collections::BTreeSet;
use std::time::Instant;

use ibmgr_api::status::{Record, RecordKind, Standing};
use ibmgr_api::{
    Assignment, ErrorCode, HostRefusal, HostReport, Key, Link, LinkWants, Outcome, PlanError,
    Policy, Reading, ReportLine, Support, Value, Want,
};
use ibmgrd_engine::{Host, PortError, Query, apply, keys_to_observe, plan_host};

use super::backoff::Failures;
use super::state::{Cause, KnobState, LinkState, Scope, Work};
use super::{Supervisor, Surroundings};

impl Supervisor {
    /// Looks at what `work` names of one interface, and sets what is to be set. `observed` is the
    /// interface, where it has just been read.
    pub(super) fn attend<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        (index, work): (u32, Work),
        observed: Option<Link>,
        now: Instant,
    ) {
        let Some(wants) = self.wants.get(&index).cloned() else {
            return;
        };
        let keys = chosen(&wants, &work);
        if !keys.is_empty()
            && let Some(link) = self.read(port, &wants, &keys, observed)
        {
            let due = self.judge(surroundings, &wants, &link, &keys, (work.cause, now));
            self.note_polled(&wants, &link);
            if !due.is_empty() {
                self.set(port, surroundings, &wants, link, due, (work.cause, now));
            }
        }
        if work.has_children {
            self.attend_children(port, surroundings, &wants, (work.cause, now));
        }
    }

    fn read<P: Host>(
        &mut self,
        port: &mut P,
        wants: &LinkWants,
        keys: &BTreeSet<Key>,
        observed: Option<Link>,
    ) -> Option<Link> {
        if observed.is_some() {
            return observed;
        }
        match port.observe(&self.states.get(&wants.index)?.name, &query(wants, keys)) {
            Ok(link) if link.index == wants.index => Some(link),
            // Events tell what became of it.
            Ok(_) | Err(PortError::Gone { .. } | PortError::NoSuchLink { .. }) => None,
            Err(error) => {
                let code = error.code();
                let record = Record::new(RecordKind::Failed, chain(&error)).of(&wants.link);
                self.tell(record.code(code));
                None
            }
        }
    }

    /// Compares, and returns what is to be set now.
    fn judge<S: Surroundings>(
        &mut self,
        surroundings: &S,
        wants: &LinkWants,
        link: &Link,
        keys: &BTreeSet<Key>,
        (cause, now): (Cause, Instant),
    ) -> BTreeSet<Key> {
        let mut due = BTreeSet::new();
        for key in keys {
            let (Some(want), Some(reading)) = (wants.settings.get(key), link.readings.get(key))
            else {
                continue;
            };
            let Some(link_state) = self.states.get_mut(&wants.index) else {
                continue;
            };
            let state = link_state.knobs.entry(key.clone()).or_default();
            let before = std::mem::replace(&mut state.value, reading.value.clone());
            if is_as_declared(key, want, reading) {
                let no_effect = match &reading.support {
                    Support::StoredNoEffect(why) => Some(why.clone()),
                    Support::Settable | Support::Fixed(_) | Support::Unsupported(_) => None,
                };
                if state.settle(no_effect) {
                    let record = self.about(RecordKind::Settled, wants, key, "as declared again");
                    let to = show(key, Some(&want.declared.value));
                    self.tell(record.values(show(key, before.as_ref()), to));
                }
                continue;
            }
            let held = state.held();
            if held && !cause.is_full() {
                state.fight.note(now);
            }
            // A change is told once, whatever becomes of it.
            let is_news = !cause.is_full() && (held || before != reading.value);
            let policy = want.declared.policy;
            let decision = decide(state, policy, (cause, now));
            if is_news && (held || decision == Decision::Leave) {
                let record = drift(
                    self,
                    surroundings,
                    wants,
                    key,
                    (before, reading.value.clone()),
                );
                self.tell(record);
            }
            self.follow_up(wants, key, decision, &mut due);
        }
        due
    }

    fn follow_up(
        &mut self,
        wants: &LinkWants,
        key: &Key,
        decision: Decision,
        due: &mut BTreeSet<Key>,
    ) {
        match decision {
            Decision::Set => {
                due.insert(key.clone());
            }
            Decision::Leave => {}
            Decision::Later { at, is_new } => {
                self.retry_at(wants.index, at);
                if is_new {
                    let state = self.states.get(&wants.index);
                    let state = state.and_then(|state| state.knobs.get(key));
                    let why = state.and_then(|state| state.why.clone());
                    let why = why.unwrap_or_default();
                    let record = self.about(RecordKind::Waiting, wants, key, &why);
                    self.tell(record);
                }
            }
        }
    }

    /// Sets what is due: all of it together, and where something is refused, the others without it.
    fn set<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        wants: &LinkWants,
        mut link: Link,
        mut due: BTreeSet<Key>,
        (cause, now): (Cause, Instant),
    ) {
        // Each round leaves out at least one of them.
        while !due.is_empty() {
            let some = some_of(wants, &link, &due);
            let plan = plan_host(std::slice::from_ref(&some), std::slice::from_ref(&link));
            if !plan.refused.is_empty() {
                let left = due.len();
                for refusal in &plan.refused {
                    if let HostRefusal::Knob(error) = refusal {
                        self.refused_by_plan(wants, error);
                        due.remove(error.key());
                    }
                }
                if due.len() == left {
                    return;
                }
                continue;
            }
            if plan.is_empty() {
                return;
            }
            let report = apply(port, surroundings, &plan);
            let culprits = self.note_report(wants, &report, (cause, now));
            if culprits.is_empty() {
                return;
            }
            due.retain(|key| !culprits.contains(key));
            if due.is_empty() {
                return;
            }
            match self.read(port, wants, &due, None) {
                Some(again) => link = again,
                None => return,
            }
        }
    }

    /// Notes how it went, and returns what kept the others from being set.
    fn note_report(
        &mut self,
        wants: &LinkWants,
        report: &HostReport,
        (cause, now): (Cause, Instant),
    ) -> BTreeSet<Key> {
        let mut culprits = BTreeSet::new();
        if let Some(trouble) = &report.trouble {
            let record = Record::new(RecordKind::Failed, trouble.message.clone()).of(&wants.link);
            self.tell(record.code(trouble.code));
        }
        for line in report.links.iter().flat_map(|report| &report.lines) {
            if let Some(want) = wants.settings.get(&line.key) {
                match &line.outcome {
                    Outcome::Changed | Outcome::NoEffect { .. } => {
                        self.note_change(wants, want, line, cause);
                    }
                    Outcome::Refused { .. }
                    | Outcome::NotVerified { .. }
                    | Outcome::NotPutBack { .. } => {
                        self.note_failure(wants, line, now);
                        culprits.insert(line.key.clone());
                    }
                    Outcome::PutBack | Outcome::NotTried if report.trouble.is_some() => {
                        self.note_failure(wants, line, now);
                    }
                    Outcome::AlreadySo
                    | Outcome::PutBack
                    | Outcome::NotTried
                    | Outcome::Vanished => {}
                }
            } else if line.before != line.now {
                let record = Record::new(RecordKind::Changed, "the kernel changed it along");
                let mut record = record.of(&wants.link);
                record.knob = Some(line.key.to_string());
                let (from, to) = (line.before.as_ref(), line.now.as_ref());
                self.tell(record.values(show(&line.key, from), show(&line.key, to)));
            }
        }
        culprits
    }

    fn note_change(&mut self, wants: &LinkWants, want: &Want, line: &ReportLine, cause: Cause) {
        let key = &line.key;
        let Some(state) = self
            .states
            .get_mut(&wants.index)
            .and_then(|state| state.knobs.get_mut(key))
        else {
            return;
        };
        let was_drift = !cause.is_full() && state.fight.drifts > 0;
        state.settle(line.outcome.why().map(str::to_owned));
        state.value.clone_from(&line.now);
        // What was changed along by another of our own writes is no drift of somebody's.
        let reason = match (was_drift, cause) {
            (true, Cause::Retry) => "somebody changed it again and again",
            _ => cause.reason(),
        };
        if was_drift {
            self.counters.healed += 1;
        } else {
            self.counters.applied += 1;
        }
        let mut record = self.about(RecordKind::Changed, wants, key, reason);
        record.origin = Some(want.declared.origin.clone());
        let record = record.values(
            show(key, line.before.as_ref()),
            show(key, line.now.as_ref()),
        );
        self.tell(record);
    }

    fn note_failure(&mut self, wants: &LinkWants, line: &ReportLine, now: Instant) {
        let key = &line.key;
        let Some(state) = self
            .states
            .get_mut(&wants.index)
            .and_then(|state| state.knobs.get_mut(key))
        else {
            return;
        };
        let why = line
            .outcome
            .why()
            .unwrap_or("another knob failed")
            .to_owned();
        let code = line.outcome.code().unwrap_or(ErrorCode::Journal);
        let is_news = state.why.as_deref() != Some(&why);
        state.standing = Standing::Failed;
        state.why = Some(why.clone());
        state.code = Some(code);
        state.is_costly = true;
        state.value.clone_from(&line.now);
        let at = state.failures.note(now);
        state.retry = Some(at);
        self.retry_at(wants.index, at);
        if is_news {
            self.counters.failed += 1;
            let record = self.about(RecordKind::Failed, wants, key, &why).code(code);
            let asked = show(key, line.asked.as_ref());
            self.tell(record.values(show(key, line.now.as_ref()), asked));
        }
    }

    /// What the device cannot take is not tried again until something about it changes.
    fn refused_by_plan(&mut self, wants: &LinkWants, error: &PlanError) {
        let key = error.key();
        let Some(state) = self
            .states
            .get_mut(&wants.index)
            .and_then(|state| state.knobs.get_mut(key))
        else {
            return;
        };
        let why = error.why();
        let is_news = state.why.as_deref() != Some(&why);
        state.standing = Standing::Failed;
        state.why = Some(why.clone());
        state.code = Some(error.code());
        state.is_costly = false;
        state.retry = None;
        let now = state.value.clone();
        if is_news {
            self.counters.failed += 1;
            let record = self.about(RecordKind::Failed, wants, key, &why);
            let asked = wants.settings.get(key).map(|want| &want.declared.value);
            let record = record.values(show(key, now.as_ref()), show(key, asked));
            self.tell(record.code(error.code()));
        }
    }

    fn note_polled(&mut self, wants: &LinkWants, link: &Link) {
        let Some(state) = self.states.get_mut(&wants.index) else {
            return;
        };
        let is_polled = |(key, want): &(&Key, &Want)| {
            let is_there = |state: &KnobState| state.code != Some(ErrorCode::Unsupported);
            want.declared.policy != Policy::Ignore
                && key.knob().is_polled(link.is_up)
                && state.knobs.get(*key).is_none_or(is_there)
        };
        let keys = wants.settings.iter().filter(is_polled);
        state.polled = keys.map(|(key, _)| key.clone()).collect();
    }

    /// Returns a record about a declared value.
    fn about(&self, kind: RecordKind, wants: &LinkWants, key: &Key, reason: &str) -> Record {
        let name = self
            .states
            .get(&wants.index)
            .map(|state: &LinkState| &state.name);
        let mut record = Record::new(kind, reason).of(name.unwrap_or(&wants.link));
        record.knob = Some(key.to_string());
        let want = wants.settings.get(key);
        record.origin = want.map(|want| want.declared.origin.clone());
        record
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Decision {
    /// It is set now.
    Set,
    /// It stays as it is.
    Leave,
    /// It is set at that time.
    Later { at: Instant, is_new: bool },
}

/// Decides about a value that is not as declared.
fn decide(state: &mut KnobState, policy: Policy, (cause, now): (Cause, Instant)) -> Decision {
    if cause.is_full() {
        state.retry = None;
        return Decision::Set;
    }
    let is_left = |standing| {
        matches!(
            standing,
            Standing::Holds | Standing::NoEffect | Standing::Drifted
        )
    };
    if policy != Policy::Heal && is_left(state.standing) {
        state.standing = Standing::Drifted;
        state.why = Some("somebody changed it".to_owned());
        return Decision::Leave;
    }
    if state.standing == Standing::Failed && state.is_costly {
        // The writes and their taking back make notifications themselves.
        let planned = state.retry.unwrap_or(now);
        let at = match cause {
            Cause::Carrier => Failures::sooner(planned, now),
            _ => planned,
        };
        if at > now {
            state.retry = Some(at);
            return Decision::Later { at, is_new: false };
        }
        return Decision::Set;
    }
    if let Some(at) = state.fight.until(now) {
        let is_new = state.standing != Standing::Waiting;
        state.standing = Standing::Waiting;
        state.retry = Some(at);
        let seconds = (at - now).as_secs_f64().ceil();
        state.why = Some(format!(
            "changed {} times of late by somebody else: it is set again in {seconds} s",
            state.fight.recent()
        ));
        return Decision::Later { at, is_new };
    }
    Decision::Set
}

fn drift<S: Surroundings>(
    supervisor: &Supervisor,
    surroundings: &S,
    wants: &LinkWants,
    key: &Key,
    (from, to): (Option<Value>, Option<Value>),
) -> Record {
    let owners = surroundings.owners(wants.index);
    let mut reason = "somebody changed it".to_owned();
    for owner in owners {
        reason = format!("{reason}; {} {}", owner.program, owner.what);
    }
    let record = supervisor.about(RecordKind::Drift, wants, key, &reason);
    record.values(show(key, from.as_ref()), show(key, to.as_ref()))
}

/// Says whether a value is as declared: `local` is the CPUs that are near the device.
fn is_as_declared(key: &Key, want: &Want, reading: &Reading) -> bool {
    let declared = &want.declared.value;
    let wanted = if key.knob().domain.is_local(declared) {
        reading.local.as_ref()
    } else {
        Some(declared)
    };
    wanted.is_some() && reading.value.as_ref() == wanted
}

/// Returns the declared values that are looked at: those that the work names, and those that change
/// along with them.
fn chosen(wants: &LinkWants, work: &Work) -> BTreeSet<Key> {
    let is_minded = |key: &&Key| {
        let policy = wants.settings.get(*key).map(|want| want.declared.policy);
        work.cause.is_full() || policy != Some(Policy::Ignore)
    };
    match &work.scope {
        Scope::All => wants.settings.keys().filter(is_minded).cloned().collect(),
        Scope::Some(keys) => {
            let along = |key: &Key| {
                let disturbs = key.knob().disturbs.iter();
                disturbs.filter_map(|name| Key::named(name).ok())
            };
            let keys = keys.iter().flat_map(|key| along(key).chain([key.clone()]));
            let is_wanted = |key: &Key| wants.settings.contains_key(key);
            keys.filter(|key| is_wanted(key) && is_minded(&key))
                .collect()
        }
    }
}

/// Returns what is asked of the kernel for `keys`.
pub(super) fn query(wants: &LinkWants, keys: &BTreeSet<Key>) -> Query {
    let assignments: Vec<Assignment> = wants
        .assignments()
        .into_iter()
        .filter(|assignment| keys.contains(&assignment.key))
        .collect();
    // Each knob is wanted once: there is no error.
    Query::named(keys_to_observe(&assignments, None).unwrap_or_default())
}

fn some_of(wants: &LinkWants, link: &Link, keys: &BTreeSet<Key>) -> LinkWants {
    let settings = wants.settings.iter();
    let settings = settings.filter(|(key, _)| keys.contains(*key));
    LinkWants {
        link: link.name.clone(),
        index: link.index,
        settings: settings
            .map(|(key, want)| (key.clone(), want.clone()))
            .collect(),
        children: Vec::new(),
    }
}

pub(super) fn show(key: &Key, value: Option<&Value>) -> Option<String> {
    value.map(|value| value.show(&key.knob().domain))
}

/// Returns an error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
