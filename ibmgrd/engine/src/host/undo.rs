// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking back: old values, new children removed, removed children made anew.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{
    Action, Assignment, ChildChange, ChildReport, End, HostPlan, HostReport, Key, Link, NewChild,
    OldChild, Outcome, Report, ReportLine, Step, Target, Value, Was,
};

use super::Host;
use super::journal::{Journal, Record};
use super::survey::{Watched, survey, value};
use crate::order::rank;
use crate::plan::plan;
use crate::port::{PortError, Query};
use crate::run::{chain, is_gone, reason};

/// How taking back went.
pub(super) struct Undone {
    /// By position of the interface: each knob that was written or changed along, as it is now.
    pub(super) links: Vec<BTreeMap<Key, Now>>,
    /// By number of the action.
    pub(super) children: BTreeMap<usize, Outcome>,
    /// Why nothing could be read, if so.
    pub(super) blind: Option<String>,
}

/// How one knob is after all.
#[derive(Clone, Debug)]
pub(super) enum Now {
    /// As before.
    Same(Value),
    /// Not as before, and why.
    Other(Option<Value>, String),
    /// The interface is gone.
    Gone,
}

impl Now {
    /// Returns the outcome of a knob that was written.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Same(_) => Outcome::PutBack,
            Self::Other(_, why) => Outcome::NotPutBack { why: why.clone() },
            Self::Gone => Outcome::Vanished,
        }
    }

    pub(super) fn value(&self) -> Option<Value> {
        match self {
            Self::Same(value) => Some(value.clone()),
            Self::Other(value, _) => value.clone(),
            Self::Gone => None,
        }
    }
}

pub(super) struct Undo<'a, H, J> {
    host: &'a mut H,
    journal: &'a mut J,
    plan: &'a HostPlan,
    begun: &'a BTreeSet<usize>,
    /// What went wrong with a write, by interface and knob.
    errors: BTreeMap<(usize, Key), String>,
    children: BTreeMap<usize, Outcome>,
}

impl<'a, H: Host, J: Journal> Undo<'a, H, J> {
    pub(super) const fn new(
        host: &'a mut H,
        journal: &'a mut J,
        plan: &'a HostPlan,
        begun: &'a BTreeSet<usize>,
    ) -> Self {
        Self {
            host,
            journal,
            plan,
            begun,
            errors: BTreeMap::new(),
            children: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Undone {
        // Taking back goes on without a journal: it ends the same when it is done again.
        let _ = self.journal.note(Record::RollBack);
        let mut present = match self.look() {
            Ok(present) => present,
            Err(error) => return self.blind(&error),
        };
        let begun: Vec<usize> = self.begun.iter().rev().copied().collect();
        for number in begun {
            match self.plan.actions.get(number) {
                Some(Action::Set { link, step }) => self.set_back(*link, step, &present),
                Some(Action::Make { child, .. }) => self.unmake(number, child, &mut present),
                Some(Action::Remove {
                    child,
                    kind,
                    settings,
                }) => {
                    let new = NewChild {
                        parent: child.parent.clone(),
                        name: child.child.name.clone(),
                        pkey: child.pkey,
                        kind: *kind,
                    };
                    self.remake(number, &new, child, settings, &present);
                }
                None => {}
            }
        }
        // A value that went back early may have been changed along by one that went back later.
        if let Ok(present) = self.look() {
            self.set_again(&present);
        }
        self.judge()
    }

    /// Interfaces with a write that was begun, by position.
    fn touched(&self) -> BTreeSet<usize> {
        let actions = self.begun.iter().filter_map(|n| self.plan.actions.get(*n));
        actions
            .filter_map(|action| match action {
                Action::Set { link, .. } => Some(*link),
                Action::Make { .. } | Action::Remove { .. } => None,
            })
            .collect()
    }

    fn has_children(&self) -> bool {
        let mut actions = self.begun.iter().filter_map(|n| self.plan.actions.get(*n));
        actions.any(|action| !matches!(action, Action::Set { .. }))
    }

    fn look(&mut self) -> Result<BTreeMap<u32, Link>, PortError> {
        let touched = self.touched();
        let links = || touched.iter().filter_map(|at| self.plan.links.get(*at));
        let targets: Vec<Target> = links().map(|link| link.target.clone()).collect();
        let watched: Vec<Watched> = links()
            .flat_map(|link| {
                link.before.iter().map(|was| Watched {
                    index: link.target.index,
                    key: was.key.clone(),
                    channel: was.carrier.channel(),
                })
            })
            .collect();
        if targets.is_empty() && !self.has_children() {
            return Ok(BTreeMap::new());
        }
        let all = self.has_children();
        survey(self.host, &targets, &watched, all)
    }

    fn set_back(&mut self, at: usize, step: &Step, present: &BTreeMap<u32, Link>) {
        let Some(link) = self
            .plan
            .links
            .get(at)
            .and_then(|link| present.get(&link.target.index))
        else {
            return;
        };
        let Some(from) = &step.from else {
            let why = "it had no value before".to_owned();
            self.errors.insert((at, step.key.clone()), why);
            return;
        };
        if value(link, &step.key).as_ref() != Some(from) {
            self.write(at, link, &step.key, from, step);
        }
    }

    fn write(&mut self, at: usize, link: &Link, key: &Key, to: &Value, step: &Step) {
        let target = Target {
            name: link.name.clone(),
            index: link.index,
        };
        let written = self.host.write(&target, key, to, step.carrier);
        match written {
            Ok(()) => {
                self.errors.remove(&(at, key.clone()));
            }
            Err(error) => {
                self.errors.insert((at, key.clone()), reason(&error));
            }
        }
    }

    /// Writes what is not as before, in the order of a plan.
    fn set_again(&mut self, present: &BTreeMap<u32, Link>) {
        for at in self.touched() {
            let Some(plan) = self.plan.links.get(at) else {
                continue;
            };
            let Some(link) = present.get(&plan.target.index) else {
                continue;
            };
            let is_other = |was: &&Was| value(link, &was.key).as_ref() != Some(&was.value);
            let mut others: Vec<&Was> = plan.before.iter().filter(is_other).collect();
            others.sort_by_key(|was| rank(&was.key, &was.value));
            for was in others {
                let step = Step {
                    key: was.key.clone(),
                    from: None,
                    to: was.value.clone(),
                    carrier: was.carrier,
                    no_effect: None,
                };
                self.write(at, link, &was.key, &was.value, &step);
            }
        }
    }

    fn unmake(&mut self, number: usize, child: &NewChild, present: &mut BTreeMap<u32, Link>) {
        let is_it = |link: &&Link| {
            link.name == child.name
                && link.parent == Some(child.parent.index)
                && link.pkey.map(|pkey| pkey.partition()) == Some(child.pkey.partition())
        };
        let outcome = match present.values().find(is_it) {
            None => Outcome::PutBack,
            Some(link) => {
                let index = link.index;
                let old = OldChild {
                    child: Target {
                        name: link.name.clone(),
                        index: link.index,
                    },
                    parent: child.parent.clone(),
                    pkey: link.pkey.unwrap_or(child.pkey),
                    via: ibmgr_api::ChildKind::Netlink,
                };
                match self.host.delete_child(&old) {
                    Err(error) if !is_gone(&error) => Outcome::NotPutBack {
                        why: reason(&error),
                    },
                    _ => {
                        // Its name may be wanted by a child that comes back.
                        present.remove(&index);
                        Outcome::PutBack
                    }
                }
            }
        };
        self.children.insert(number, outcome);
    }

    fn remake(
        &mut self,
        number: usize,
        new: &NewChild,
        old: &OldChild,
        settings: &[Assignment],
        present: &BTreeMap<u32, Link>,
    ) {
        let outcome = if present.contains_key(&old.child.index) {
            Outcome::PutBack
        } else {
            // What an earlier attempt made is completed.
            let there = present.values().any(|link| link.name == new.name);
            let made = if there {
                Ok(())
            } else {
                self.host.create_child(new)
            };
            match made.and_then(|()| self.settle(new, settings)) {
                Ok(()) => Outcome::PutBack,
                Err(error) if is_gone(&error) => Outcome::Vanished,
                Err(error) => Outcome::NotPutBack {
                    why: reason(&error),
                },
            }
        };
        self.children.insert(number, outcome);
    }

    /// Gives a child that was made anew the values of before, as far as it takes them.
    fn settle(&mut self, child: &NewChild, settings: &[Assignment]) -> Result<(), PortError> {
        let keys = settings.iter().map(|want| want.key.clone()).collect();
        let link = self.host.observe(&child.name, &Query::named(keys))?;
        let target = Target {
            name: link.name.clone(),
            index: link.index,
        };
        let takes = |want: &&Assignment| plan(&link, std::slice::from_ref(want)).is_ok();
        let settings: Vec<Assignment> = settings.iter().filter(takes).cloned().collect();
        let Ok(plan) = plan(&link, &settings) else {
            return Ok(());
        };
        for step in &plan.steps {
            self.host
                .write(&target, &step.key, &step.to, step.carrier)?;
        }
        Ok(())
    }

    fn judge(mut self) -> Undone {
        let mut attempt = 0;
        loop {
            let present = match self.look() {
                Ok(present) => present,
                Err(error) => return self.blind(&error),
            };
            let links = self.compare(&present);
            let all = links.iter().flat_map(|link| link.values());
            let waits = all.clone().any(|now| matches!(now, Now::Other(..)));
            if waits && self.host.pause(attempt) {
                attempt += 1;
                continue;
            }
            let _ = self.journal.note(Record::RolledBack);
            return Undone {
                links,
                children: self.children,
                blind: None,
            };
        }
    }

    fn compare(&self, present: &BTreeMap<u32, Link>) -> Vec<BTreeMap<Key, Now>> {
        let touched = self.touched();
        let links = self.plan.links.iter().enumerate();
        links
            .map(|(at, plan)| {
                if !touched.contains(&at) {
                    return BTreeMap::new();
                }
                let Some(link) = present.get(&plan.target.index) else {
                    let written = self.written(at).map(|step| (step.key.clone(), Now::Gone));
                    return written.collect();
                };
                let mut all: BTreeMap<Key, Now> = BTreeMap::new();
                for was in &plan.before {
                    let now = value(link, &was.key);
                    let judged = if now.as_ref() == Some(&was.value) {
                        Now::Same(was.value.clone())
                    } else {
                        let error = self.errors.get(&(at, was.key.clone())).cloned();
                        Now::Other(now, error.unwrap_or_else(|| TOOK_ANOTHER.to_owned()))
                    };
                    all.insert(was.key.clone(), judged);
                }
                for step in self.written(at).filter(|step| step.from.is_none()) {
                    let why = self.errors.get(&(at, step.key.clone())).cloned();
                    let now = Now::Other(value(link, &step.key), why.unwrap_or_default());
                    all.entry(step.key.clone()).or_insert(now);
                }
                all
            })
            .collect()
    }

    fn written(&self, at: usize) -> impl Iterator<Item = &'a Step> {
        let actions = self.begun.iter().filter_map(|n| self.plan.actions.get(*n));
        actions.filter_map(move |action| match action {
            Action::Set { link, step } if *link == at => Some(step),
            Action::Set { .. } | Action::Make { .. } | Action::Remove { .. } => None,
        })
    }

    /// Nothing can be read: nothing is known to be back, and a later attempt has to be made.
    fn blind(mut self, error: &PortError) -> Undone {
        let why = format!("could not be read back: {}", chain(error));
        let links = (0..self.plan.links.len()).map(|at| {
            let other = Now::Other(None, why.clone());
            let written = self
                .written(at)
                .map(|step| (step.key.clone(), other.clone()));
            written.collect()
        });
        let links = links.collect();
        for number in self.begun {
            let is_child = !matches!(self.plan.actions.get(*number), Some(Action::Set { .. }));
            if is_child && !self.children.contains_key(number) {
                let why = why.clone();
                self.children.insert(*number, Outcome::NotPutBack { why });
            }
        }
        Undone {
            links,
            children: self.children,
            blind: Some(why),
        }
    }
}

const TOOK_ANOTHER: &str = "the kernel took the old value, but another one is read back";

impl Undone {
    /// Says whether everything is as before.
    pub(super) fn end(&self) -> End {
        let links = self.links.iter().flat_map(|link| link.values());
        let is_open = |outcome: &Outcome| matches!(outcome, Outcome::NotPutBack { .. });
        let open = links.map(Now::outcome).any(|outcome| is_open(&outcome))
            || self.children.values().any(is_open)
            || self.blind.is_some();
        if open { End::InPart } else { End::RolledBack }
    }

    /// Reports a taking back that stands alone.
    pub(super) fn into_report(self, plan: &HostPlan, begun: &BTreeSet<usize>) -> HostReport {
        let links = plan.links.iter().enumerate().filter_map(|(at, link)| {
            let nows = self.links.get(at)?;
            let mut lines = Vec::new();
            for (key, now) in nows {
                let step = plan
                    .actions
                    .iter()
                    .enumerate()
                    .find_map(|(n, action)| match action {
                        Action::Set { link, step } if *link == at && step.key == *key => {
                            Some((n, step))
                        }
                        Action::Set { .. } | Action::Make { .. } | Action::Remove { .. } => None,
                    });
                let is_written = step.is_some_and(|(n, _)| begun.contains(&n));
                // What was changed along and is as before needs no line.
                if !is_written && matches!(now, Now::Same(_)) {
                    continue;
                }
                let was = link.before.iter().find(|was| was.key == *key);
                lines.push(ReportLine {
                    key: key.clone(),
                    asked: step.map(|(_, step)| step.to.clone()),
                    before: was.map(|was| was.value.clone()),
                    now: now.value(),
                    outcome: now.outcome(),
                });
            }
            (!lines.is_empty()).then(|| Report {
                link: link.target.name.clone(),
                lines,
            })
        });
        let links = links.collect();
        let end = self.end();
        HostReport {
            links,
            children: child_reports(plan, |number| {
                self.children
                    .get(&number)
                    .cloned()
                    .unwrap_or(Outcome::NotTried)
            }),
            trouble: None,
            end,
        }
    }
}

/// Returns the lines about children, with what `outcome` says of each action.
pub(super) fn child_reports(
    plan: &HostPlan,
    mut outcome: impl FnMut(usize) -> Outcome,
) -> Vec<ChildReport> {
    let actions = plan.actions.iter().enumerate();
    actions
        .filter_map(|(number, action)| match action {
            Action::Make { child, .. } => Some(ChildReport {
                name: child.name.clone(),
                parent: child.parent.name.clone(),
                pkey: child.pkey,
                change: ChildChange::Make,
                outcome: outcome(number),
            }),
            Action::Remove { child, .. } => Some(ChildReport {
                name: child.child.name.clone(),
                parent: child.parent.name.clone(),
                pkey: child.pkey,
                change: ChildChange::Remove,
                outcome: outcome(number),
            }),
            Action::Set { .. } => None,
        })
        .collect()
}
