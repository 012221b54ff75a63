// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P_Key children of one interface: which are missing or too many, and what becomes of that.

use std::time::Instant;

use ibmgr_api::status::{Record, RecordKind, Standing};
use ibmgr_api::{
    ChildChange, ChildWants, HostRefusal, HostReport, Link, LinkWants, Outcome, Policy,
};
use ibmgrd_engine::{Host, Query, apply, keys_of, plan_host};

use super::backoff::Failures;
use super::state::{Cause, ChildId, ChildState};
use super::{Supervisor, Surroundings};

fn id(child: &ChildWants) -> ChildId {
    (child.pkey.partition(), child.name.clone())
}

fn is_so(child: &ChildWants) -> bool {
    child.is_present != child.present.is_empty()
}

impl Supervisor {
    /// Makes and removes children of one interface, each by itself: one that is refused does not keep
    /// the others from being made.
    pub(super) fn attend_children<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        wants: &LinkWants,
        (cause, now): (Cause, Instant),
    ) {
        let mut links = None;
        for child in &wants.children {
            if !self.judge_child(wants, child, (cause, now)) {
                continue;
            }
            let links = match &links {
                Some(links) => links,
                None => match port.observe_all(&Query::named(keys_of(&self.desired))) {
                    Ok(found) => links.insert(found),
                    Err(error) => {
                        self.child_failed(wants, child, super::attend::chain(&error), now);
                        continue;
                    }
                },
            };
            self.change_child(port, surroundings, (wants, child, links), (cause, now));
        }
    }

    /// Says whether a child is to be made or removed now.
    fn judge_child(
        &mut self,
        wants: &LinkWants,
        child: &ChildWants,
        (cause, now): (Cause, Instant),
    ) -> bool {
        let Some(link) = self.states.get_mut(&wants.index) else {
            return false;
        };
        let state = link.children.entry(id(child)).or_default();
        if is_so(child) {
            let was_other = matches!(
                state.standing,
                Standing::Drifted | Standing::Waiting | Standing::Failed
            );
            let seen: Vec<u32> = child.present.iter().map(|(_, index)| *index).collect();
            let is_other = state.seen != seen;
            if child.kind.is_some() && (is_other || state.retry.is_some() || cause.is_full()) {
                // Of which kind it is, the plan says.
                state.seen = seen;
                if state.standing == Standing::Unknown {
                    state.standing = Standing::Holds;
                }
                let is_late = state.retry.is_none_or(|at| at <= now);
                return is_other || is_late || cause.is_full();
            }
            *state = ChildState {
                standing: Standing::Holds,
                fight: state.fight,
                seen,
                ..ChildState::default()
            };
            if was_other {
                let record = about(RecordKind::Settled, wants, child, "as declared again");
                self.tell(record);
            }
            return false;
        }
        if cause.is_full() {
            return true;
        }
        let held = state.standing == Standing::Holds;
        if held {
            state.fight.note(now);
            let what = if child.is_present {
                "somebody removed it"
            } else {
                "somebody made it"
            };
            let left = child.policy != Policy::Heal;
            if left {
                state.standing = Standing::Drifted;
                state.why = Some(what.to_owned());
            }
            if child.policy != Policy::Ignore {
                self.tell(about(RecordKind::Drift, wants, child, what));
            }
            if left {
                return false;
            }
        }
        let Some(state) = self
            .states
            .get_mut(&wants.index)
            .and_then(|link| link.children.get_mut(&id(child)))
        else {
            return false;
        };
        if state.standing == Standing::Drifted && child.policy != Policy::Heal {
            return false;
        }
        let planned = match (state.standing, cause) {
            (Standing::Failed, Cause::Carrier) => {
                Some(Failures::sooner(state.retry.unwrap_or(now), now))
            }
            (Standing::Failed, _) => state.retry,
            _ => state.fight.until(now),
        };
        let Some(at) = planned.filter(|at| *at > now) else {
            return true;
        };
        state.retry = Some(at);
        let is_new = held;
        if state.standing != Standing::Failed {
            state.standing = Standing::Waiting;
            state.why = Some(format!(
                "changed {} times of late by somebody else",
                state.fight.recent()
            ));
        }
        let why = state.why.clone().unwrap_or_default();
        self.retry_at(wants.index, at);
        if is_new {
            self.tell(about(RecordKind::Waiting, wants, child, &why));
        }
        false
    }

    fn change_child<P: Host, S: Surroundings>(
        &mut self,
        port: &mut P,
        surroundings: &mut S,
        (wants, child, links): (&LinkWants, &ChildWants, &[Link]),
        (cause, now): (Cause, Instant),
    ) {
        let alone = LinkWants {
            settings: std::collections::BTreeMap::new(),
            children: vec![ChildWants {
                // What the device takes is found out one by one, once it is there.
                settings: std::collections::BTreeMap::new(),
                ..child.clone()
            }],
            ..wants.clone()
        };
        let plan = plan_host(std::slice::from_ref(&alone), links);
        if let Some(refusal) = plan.refused.first() {
            let why = match refusal {
                HostRefusal::Child { why, .. } => why.clone(),
                refusal => refusal.to_string(),
            };
            return self.child_failed(wants, child, why, now);
        }
        if plan.is_empty() {
            if self.child_holds(wants, child) {
                self.tell(about(
                    RecordKind::Settled,
                    wants,
                    child,
                    "as declared again",
                ));
            }
            return;
        }
        let report = apply(port, surroundings, &plan);
        self.note_child(wants, child, &report, (cause, now));
    }

    fn note_child(
        &mut self,
        wants: &LinkWants,
        child: &ChildWants,
        report: &HostReport,
        (cause, now): (Cause, Instant),
    ) {
        if let Some(trouble) = &report.trouble {
            return self.child_failed(wants, child, trouble.message.clone(), now);
        }
        for line in &report.children {
            match &line.outcome {
                Outcome::Changed => {
                    self.child_holds(wants, child);
                    let kind = match line.change {
                        ChildChange::Make => RecordKind::ChildMade,
                        ChildChange::Remove => RecordKind::ChildRemoved,
                    };
                    let mut record = about(kind, wants, child, cause.reason());
                    record.to = Some(line.name.to_string());
                    self.tell(record);
                }
                Outcome::Vanished => {}
                outcome => {
                    let why = outcome.why().unwrap_or(outcome.name()).to_owned();
                    self.child_failed(wants, child, why, now);
                }
            }
        }
    }

    /// Notes that a child is as declared; returns whether it was known to be otherwise.
    fn child_holds(&mut self, wants: &LinkWants, child: &ChildWants) -> bool {
        let states = self.states.get_mut(&wants.index);
        let state = states.and_then(|link| link.children.get_mut(&id(child)));
        state.is_some_and(|state| {
            let was_other = matches!(
                state.standing,
                Standing::Drifted | Standing::Waiting | Standing::Failed
            );
            state.standing = Standing::Holds;
            state.why = None;
            state.retry = None;
            state.failures = Failures::default();
            was_other
        })
    }

    fn child_failed(&mut self, wants: &LinkWants, child: &ChildWants, why: String, now: Instant) {
        let Some(state) = self
            .states
            .get_mut(&wants.index)
            .and_then(|link| link.children.get_mut(&id(child)))
        else {
            return;
        };
        let is_news = state.why.as_deref() != Some(&why);
        state.standing = Standing::Failed;
        state.why = Some(why.clone());
        let at = state.failures.note(now);
        state.retry = Some(at);
        self.retry_at(wants.index, at);
        if is_news {
            self.counters.failed += 1;
            self.tell(about(RecordKind::Failed, wants, child, &why));
        }
    }
}

/// Returns a record about a child.
fn about(kind: RecordKind, wants: &LinkWants, child: &ChildWants, reason: &str) -> Record {
    let name = child.name.as_ref().or(child.name_to_be.as_ref());
    let name = name.map_or_else(String::new, |name| format!("{name}: "));
    let reason = format!("{name}child with P_Key {}: {reason}", child.pkey);
    let mut record = Record::new(kind, reason).of(&wants.link);
    record.origin = Some(child.origin.clone());
    record
}
