// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Doing a plan: a note ahead of each write, everything read back, everything taken back when
//! something fails.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{Action, End, HostPlan, HostReport, Outcome, Step, Target, Trouble};

use super::Host;
use super::journal::{Journal, JournalError, Record, Story};
use super::plan::order;
use super::subject::{Subject, steps_of};
use super::survey::value;
use crate::port::{PortError, Query};
use crate::run::{EBUSY, is_gone, reason};

/// Does `plan`, all or nothing: when something fails, what was done before is taken back.
///
/// An interface that disappears meanwhile is no failure of the others: it is reported as vanished, and
/// the rest goes on. What the plan refuses is not looked at here: who wants all or nothing does not
/// come here with refusals.
pub fn apply<H: Host, J: Journal>(host: &mut H, journal: &mut J, plan: &HostPlan) -> HostReport {
    let mut apply = Apply::new(host, journal, plan);
    if plan.is_empty() {
        return apply.report(End::Nothing);
    }
    if let Err(error) = apply.journal.note(Record::Begin(plan)) {
        apply.trouble = Some(trouble(&error));
        return apply.report(End::NotStarted);
    }
    let last = plan.last_removals();
    let done = apply
        .prepare(last)
        .and_then(|()| apply.set())
        .and_then(|()| apply.verify())
        .and_then(|()| apply.kept(Record::Verified))
        .and_then(|()| apply.remove(last..plan.actions.len()));
    apply.end(done)
}

/// Does the removals that a crash left to be done.
pub(super) fn finish<H: Host, J: Journal>(
    host: &mut H,
    journal: &mut J,
    story: &Story,
) -> HostReport {
    let plan = &story.plan;
    let mut apply = Apply::new(host, journal, plan);
    apply.begun = story.begun.clone();
    for (number, action) in plan.actions.iter().enumerate() {
        match action {
            // Verified before the crash.
            Action::Set { link, step } => apply.subjects[*link].changed(step, Some(&step.to)),
            Action::Make { .. } | Action::Remove { .. } if story.done.contains(&number) => {
                apply.children.insert(number, Outcome::Changed);
            }
            Action::Make { .. } | Action::Remove { .. } => {}
        }
    }
    let left = (plan.last_removals()..plan.actions.len()).filter(|n| !story.done.contains(n));
    let done = apply.remove(left);
    apply.end(done)
}

/// Something failed, and its outcome is noted.
pub(super) struct Failed;

fn trouble(error: &JournalError) -> Trouble {
    Trouble {
        message: error.to_string(),
        code: ibmgr_api::ErrorCode::Journal,
    }
}

pub(super) struct Apply<'a, H, J> {
    pub(super) host: &'a mut H,
    pub(super) journal: &'a mut J,
    pub(super) plan: &'a HostPlan,
    /// Those of the plan by their position, then those that were made.
    pub(super) subjects: Vec<Subject>,
    pub(super) begun: BTreeSet<usize>,
    /// By number of the action.
    pub(super) children: BTreeMap<usize, Outcome>,
    /// Writes to interfaces that were made: known only once they are there.
    pub(super) late: Vec<(usize, Step)>,
    pub(super) trouble: Option<Trouble>,
}

impl<'a, H: Host, J: Journal> Apply<'a, H, J> {
    pub(super) fn new(host: &'a mut H, journal: &'a mut J, plan: &'a HostPlan) -> Self {
        let subject = |(at, link): (usize, &ibmgr_api::LinkPlan)| Subject {
            target: link.target.clone(),
            skips: link.skips.clone(),
            steps: steps_of(plan, at).cloned().collect(),
            lines: BTreeMap::new(),
            is_gone: false,
            before: link
                .before
                .iter()
                .map(|was| (was.key.clone(), was.value.clone()))
                .collect(),
            made_by: None,
        };
        Self {
            subjects: plan.links.iter().enumerate().map(subject).collect(),
            host,
            journal,
            plan,
            begun: BTreeSet::new(),
            children: BTreeMap::new(),
            late: Vec::new(),
            trouble: None,
        }
    }

    /// Keeps a note; without it nothing more is done.
    pub(super) fn kept(&mut self, record: Record<'_>) -> Result<(), Failed> {
        self.journal.note(record).map_err(|error| {
            self.trouble = Some(trouble(&error));
            Failed
        })
    }

    pub(super) fn intend(&mut self, number: usize) -> Result<(), Failed> {
        self.kept(Record::Intent(number))?;
        self.begun.insert(number);
        Ok(())
    }

    /// Does the writes: those of the plan, and those of interfaces that were made, in one order.
    fn set(&mut self) -> Result<(), Failed> {
        let plan = self.plan;
        let mut writes: Vec<(_, usize, Option<usize>, Step)> = Vec::new();
        let mut place = 0;
        for (number, action) in plan.actions.iter().enumerate() {
            if let Action::Set { link, step } = action {
                // The plan's own order stays; late writes go where they belong by phase.
                let phase = order(step, 0, 0).0;
                writes.push(((phase, 0_u8, place), *link, Some(number), step.clone()));
                place += 1;
            }
        }
        for (link, step) in std::mem::take(&mut self.late) {
            let phase = order(&step, 0, 0).0;
            writes.push(((phase, 1, place), link, None, step));
            place += 1;
        }
        writes.sort_by_key(|(order, ..)| *order);
        for (_, link, number, step) in writes {
            if !self.subjects[link].is_gone {
                self.write(link, number, &step)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, at: usize, number: Option<usize>, step: &Step) -> Result<(), Failed> {
        // What is written to an interface that was made goes with it.
        if let Some(number) = number {
            self.intend(number)?;
        }
        let mut written = self.try_write(at, step);
        // A new name does not end it: the declaration was for this very interface.
        if written.as_ref().is_err_and(is_gone) && self.follow(at) {
            written = self.try_write(at, step);
        }
        let target = self.subjects[at].target.clone();
        match written {
            Ok(()) => {}
            Err(error) if is_gone(&error) => {
                self.subjects[at].vanish();
                return Ok(());
            }
            Err(error) => {
                // The same write may be in force all the same, and then the plan goes on.
                let applied = matches!(error, PortError::Refused { errno: EBUSY, .. })
                    && self.reads(&target, step);
                if !applied {
                    let outcome = Outcome::Refused {
                        why: reason(&error),
                        code: error.code(),
                    };
                    self.subjects[at].set(&step.key, outcome, None);
                    return Err(Failed);
                }
            }
        }
        match number {
            Some(number) => self.kept(Record::Done(number)),
            None => Ok(()),
        }
    }

    fn try_write(&mut self, at: usize, step: &Step) -> Result<(), PortError> {
        let target = &self.subjects[at].target;
        self.host.write(target, &step.key, &step.to, step.carrier)
    }

    /// Takes on the name that an interface has by now; `false` when it has no other, or is gone.
    fn follow(&mut self, at: usize) -> bool {
        let target = &mut self.subjects[at].target;
        match self.host.name_of(target.index) {
            Ok(Some(name)) if name != target.name => {
                target.name = name;
                true
            }
            _ => false,
        }
    }

    fn reads(&mut self, target: &Target, step: &Step) -> bool {
        let query = Query {
            via: Some(step.carrier.channel()),
            ..Query::named(vec![step.key.clone()])
        };
        let link = self.host.observe(&target.name, &query);
        link.is_ok_and(|link| {
            link.index == target.index && value(&link, &step.key).as_ref() == Some(&step.to)
        })
    }
}
