// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Doing a plan: a note ahead of each write, everything read back, everything taken back when
//! something fails.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{
    Action, Assignment, End, HostPlan, HostReport, Key, Link, LinkName, NewChild, OldChild,
    Outcome, Report, ReportLine, Skip, Step, Target, Trouble, Value,
};

use super::Host;
use super::journal::{Journal, JournalError, Record, Story};
use super::plan::order;
use super::survey::{Watched, survey, value};
use super::undo::{Now, Undo, Undone, child_reports};
use crate::plan::{disturbed, keys_to_observe, plan};
use crate::port::{PortError, Query};
use crate::run::{EBUSY, chain, difference, is_gone, reason};

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
struct Failed;

fn trouble(error: &JournalError) -> Trouble {
    Trouble {
        message: error.to_string(),
        code: ibmgr_api::ErrorCode::Journal,
    }
}

/// An interface under change.
struct Subject {
    target: Target,
    skips: Vec<Skip>,
    /// Writes in the order of the report.
    steps: Vec<Step>,
    lines: BTreeMap<Key, Line>,
    is_gone: bool,
    /// Values before, for what the kernel changes along.
    before: BTreeMap<Key, Value>,
    /// Number of the action that made it.
    made_by: Option<usize>,
}

struct Line {
    outcome: Outcome,
    now: Option<Value>,
}

impl Subject {
    fn set(&mut self, key: &Key, outcome: Outcome, now: Option<Value>) {
        self.lines.insert(key.clone(), Line { outcome, now });
    }

    fn changed(&mut self, step: &Step, now: Option<&Value>) {
        let outcome = match &step.no_effect {
            Some(why) => Outcome::NoEffect { why: why.clone() },
            None => Outcome::Changed,
        };
        self.set(&step.key, outcome, now.cloned());
    }

    fn vanish(&mut self) {
        self.is_gone = true;
        for step in self.steps.clone() {
            self.set(&step.key, Outcome::Vanished, None);
        }
    }
}

struct Apply<'a, H, J> {
    host: &'a mut H,
    journal: &'a mut J,
    plan: &'a HostPlan,
    /// Those of the plan by their position, then those that were made.
    subjects: Vec<Subject>,
    begun: BTreeSet<usize>,
    /// By number of the action.
    children: BTreeMap<usize, Outcome>,
    /// Writes to interfaces that were made: known only once they are there.
    late: Vec<(usize, Step)>,
    trouble: Option<Trouble>,
}

impl<'a, H: Host, J: Journal> Apply<'a, H, J> {
    fn new(host: &'a mut H, journal: &'a mut J, plan: &'a HostPlan) -> Self {
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
    fn kept(&mut self, record: Record<'_>) -> Result<(), Failed> {
        self.journal.note(record).map_err(|error| {
            self.trouble = Some(trouble(&error));
            Failed
        })
    }

    fn intend(&mut self, number: usize) -> Result<(), Failed> {
        self.kept(Record::Intent(number))?;
        self.begun.insert(number);
        Ok(())
    }

    /// Makes room and makes children: what comes before `last` and is no write.
    fn prepare(&mut self, last: usize) -> Result<(), Failed> {
        let plan = self.plan;
        for (number, action) in plan.actions.iter().enumerate().take(last) {
            match action {
                Action::Remove { child, .. } => self.remove_one(number, child)?,
                Action::Make { child, wants } => self.make(number, child, wants)?,
                Action::Set { .. } => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, numbers: impl IntoIterator<Item = usize>) -> Result<(), Failed> {
        let plan = self.plan;
        for number in numbers {
            if let Some(Action::Remove { child, .. }) = plan.actions.get(number) {
                self.remove_one(number, child)?;
            }
        }
        Ok(())
    }

    fn remove_one(&mut self, number: usize, child: &OldChild) -> Result<(), Failed> {
        self.intend(number)?;
        match self.host.delete_child(child) {
            // It was to go anyway.
            Ok(()) | Err(PortError::Gone { .. }) => {
                self.children.insert(number, Outcome::Changed);
                self.kept(Record::Done(number))
            }
            Err(error) => self.child_failed(number, &error),
        }
    }

    fn child_failed(&mut self, number: usize, error: &PortError) -> Result<(), Failed> {
        let outcome = Outcome::Refused {
            why: reason(error),
            code: error.code(),
        };
        self.children.insert(number, outcome);
        Err(Failed)
    }

    fn make(
        &mut self,
        number: usize,
        child: &NewChild,
        wants: &[Assignment],
    ) -> Result<(), Failed> {
        self.intend(number)?;
        match self.host.create_child(child) {
            Ok(()) => {}
            Err(PortError::Gone { link }) if link == child.parent.name => {
                self.children.insert(number, Outcome::Vanished);
                return Ok(());
            }
            Err(error) => return self.child_failed(number, &error),
        }
        self.kept(Record::Done(number))?;
        let link = match self.find(child, wants) {
            Ok(link) => link,
            Err(PortError::NoSuchLink { .. }) => {
                let why = "the kernel made it, but it is not here: it may be in another network \
                           namespace";
                let why = why.to_owned();
                self.children.insert(number, Outcome::NotVerified { why });
                return Err(Failed);
            }
            Err(error) => return self.child_failed(number, &error),
        };
        let is_it = link.parent == Some(child.parent.index)
            && link.pkey.map(|pkey| pkey.partition()) == Some(child.pkey.partition());
        if !is_it {
            let pkey = link
                .pkey
                .map_or_else(|| "no P_Key".to_owned(), |pkey| pkey.to_string());
            let why = format!("interface {} of that name has {pkey}", link.index);
            self.children.insert(number, Outcome::NotVerified { why });
            return Err(Failed);
        }
        let plan = match plan(&link, wants) {
            Ok(plan) => plan,
            Err(error) => {
                let outcome = Outcome::Refused {
                    why: error.to_string(),
                    code: error.code(),
                };
                self.children.insert(number, outcome);
                return Err(Failed);
            }
        };
        self.children.insert(number, Outcome::Changed);
        let at = self.subjects.len();
        self.late
            .extend(plan.steps.iter().map(|step| (at, step.clone())));
        self.subjects.push(Subject {
            target: Target {
                name: link.name.clone(),
                index: link.index,
            },
            skips: plan.skips,
            steps: plan.steps,
            lines: BTreeMap::new(),
            is_gone: false,
            before: values(&link),
            made_by: Some(number),
        });
        Ok(())
    }

    /// Returns the child that was just made.
    fn find(&mut self, child: &NewChild, wants: &[Assignment]) -> Result<Link, PortError> {
        // A knob that is given twice is refused by the plan.
        let keys = keys_to_observe(wants, None).unwrap_or_default();
        let query = Query::named(keys);
        let mut attempt = 0;
        loop {
            match self.host.observe(&child.name, &query) {
                Err(PortError::NoSuchLink { .. }) if self.host.pause(attempt) => attempt += 1,
                found => return found,
            }
        }
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

    fn verify(&mut self) -> Result<(), Failed> {
        let mut attempt = 0;
        loop {
            let present = match self.look() {
                Ok(present) => present,
                Err(error) => {
                    let why = format!("could not be read back: {}", chain(&error));
                    for subject in &mut self.subjects {
                        for step in subject.steps.clone() {
                            let outcome = Outcome::NotVerified { why: why.clone() };
                            subject.set(&step.key, outcome, None);
                        }
                    }
                    return Err(Failed);
                }
            };
            let wrong = self.compare(&present);
            if wrong.is_empty() {
                self.note_along(&present);
                return Ok(());
            }
            if self.host.pause(attempt) {
                attempt += 1;
                continue;
            }
            for (at, step, why) in wrong {
                self.subjects[at].set(&step.key, Outcome::NotVerified { why }, None);
            }
            return Err(Failed);
        }
    }

    fn look(&mut self) -> Result<BTreeMap<u32, Link>, PortError> {
        let subjects = || {
            self.subjects
                .iter()
                .filter(|s| !s.is_gone && !s.steps.is_empty())
        };
        let targets: Vec<Target> = subjects().map(|subject| subject.target.clone()).collect();
        let mut watched = Vec::new();
        for subject in subjects() {
            let index = subject.target.index;
            for step in &subject.steps {
                watched.push(Watched {
                    index,
                    key: step.key.clone(),
                    channel: step.carrier.channel(),
                });
                for key in disturbed(&step.key) {
                    let is_step = subject.steps.iter().any(|step| step.key == key);
                    let carrier = key.knob().carriers.first();
                    if let Some(carrier) = carrier.filter(|_| !is_step) {
                        let channel = carrier.channel();
                        watched.push(Watched {
                            index,
                            key,
                            channel,
                        });
                    }
                }
            }
        }
        if targets.is_empty() {
            return Ok(BTreeMap::new());
        }
        survey(self.host, &targets, &watched, false)
    }

    /// Returns what is not as written, and takes notice of what vanished.
    fn compare(&mut self, present: &BTreeMap<u32, Link>) -> Vec<(usize, Step, String)> {
        let mut wrong = Vec::new();
        for (at, subject) in self.subjects.iter_mut().enumerate() {
            if subject.is_gone || subject.steps.is_empty() {
                continue;
            }
            let Some(link) = present.get(&subject.target.index) else {
                subject.vanish();
                continue;
            };
            for step in subject.steps.clone() {
                let now = value(link, &step.key);
                if now.as_ref() == Some(&step.to) {
                    subject.changed(&step, now.as_ref());
                } else {
                    wrong.push((at, step.clone(), difference(&step, link)));
                }
            }
        }
        wrong
    }

    /// Adds lines for knobs that nobody asked for and that are not what they were.
    fn note_along(&mut self, present: &BTreeMap<u32, Link>) {
        for subject in &mut self.subjects {
            let Some(link) = present.get(&subject.target.index) else {
                continue;
            };
            let keys: BTreeSet<Key> = subject
                .steps
                .iter()
                .flat_map(|step| disturbed(&step.key))
                .collect();
            for key in keys {
                let now = value(link, &key);
                if !subject.lines.contains_key(&key) && now.as_ref() != subject.before.get(&key) {
                    subject.set(&key, Outcome::Changed, now);
                }
            }
        }
    }

    fn end(mut self, done: Result<(), Failed>) -> HostReport {
        match done {
            Ok(()) => {
                // Everything is done: without this note the next start finds nothing left to do.
                let _ = self.journal.note(Record::Applied);
                self.report(End::Applied)
            }
            Err(Failed) => {
                let undone = Undo::new(self.host, self.journal, self.plan, &self.begun).run();
                let end = undone.end();
                self.take_in(undone);
                self.report(end)
            }
        }
    }

    /// Puts how taking back went into the lines.
    fn take_in(&mut self, undone: Undone) {
        for (at, nows) in undone.links.into_iter().enumerate() {
            let Some(subject) = self.subjects.get_mut(at) else {
                continue;
            };
            for (key, now) in nows {
                let is_step = subject.steps.iter().any(|step| step.key == key);
                let is_culprit = subject.lines.get(&key).is_some_and(|line| {
                    matches!(
                        line.outcome,
                        Outcome::Refused { .. } | Outcome::NotVerified { .. }
                    )
                });
                match (&now, is_culprit) {
                    (Now::Same(value), true) => {
                        if let Some(line) = subject.lines.get_mut(&key) {
                            line.now = Some(value.clone());
                        }
                    }
                    // What the kernel changed along, and back.
                    (Now::Same(_), false) if !is_step => {
                        subject.lines.remove(&key);
                    }
                    _ => subject.set(&key, now.outcome(), now.value()),
                }
            }
        }
        // What was written to new children went with them.
        for subject in &mut self.subjects {
            let Some(number) = subject.made_by else {
                continue;
            };
            let removed = undone.children.get(&number) == Some(&Outcome::PutBack);
            for step in subject.steps.clone() {
                let line = subject.lines.get(&step.key);
                let was_changed =
                    line.is_some_and(|line| line.outcome == Outcome::Changed || line.now.is_some());
                if was_changed && removed {
                    subject.set(&step.key, Outcome::PutBack, None);
                }
            }
        }
        for (number, outcome) in undone.children {
            let is_culprit = matches!(
                self.children.get(&number),
                Some(Outcome::Refused { .. } | Outcome::NotVerified { .. })
            );
            if !is_culprit || outcome != Outcome::PutBack {
                self.children.insert(number, outcome);
            }
        }
        // A write that was begun and that nothing is known of was not reached by what went wrong.
        for (number, action) in self.plan.actions.iter().enumerate() {
            if let Action::Set { link, step } = action
                && !self.begun.contains(&number)
                && let Some(subject) = self.subjects.get_mut(*link)
                && !subject.is_gone
            {
                let from = step.from.clone();
                subject.lines.entry(step.key.clone()).or_insert(Line {
                    outcome: Outcome::NotTried,
                    now: from,
                });
            }
        }
    }

    fn report(self, end: End) -> HostReport {
        let children = self.children;
        let links = self.subjects.into_iter().map(report_of);
        HostReport {
            links: links.filter(|report| !report.lines.is_empty()).collect(),
            children: child_reports(self.plan, |number| {
                let outcome = children.get(&number);
                outcome.cloned().unwrap_or(Outcome::NotTried)
            }),
            trouble: self.trouble,
            end,
        }
    }
}

fn steps_of(plan: &HostPlan, at: usize) -> impl Iterator<Item = &Step> {
    plan.actions.iter().filter_map(move |action| match action {
        Action::Set { link, step } if *link == at => Some(step),
        Action::Set { .. } | Action::Make { .. } | Action::Remove { .. } => None,
    })
}

fn values(link: &Link) -> BTreeMap<Key, Value> {
    let readings = link.readings.iter();
    readings
        .filter_map(|(key, reading)| Some((key.clone(), reading.value.clone()?)))
        .collect()
}

fn report_of(mut subject: Subject) -> Report {
    let mut lines = Vec::new();
    for step in &subject.steps {
        let line = subject.lines.remove(&step.key).unwrap_or(Line {
            outcome: Outcome::NotTried,
            now: step.from.clone(),
        });
        lines.push(ReportLine {
            key: step.key.clone(),
            asked: Some(step.to.clone()),
            before: step.from.clone(),
            now: line.now,
            outcome: line.outcome,
        });
    }
    for skip in subject.skips {
        let outcome = match skip.no_effect {
            Some(why) => Outcome::NoEffect { why },
            None => Outcome::AlreadySo,
        };
        lines.push(ReportLine {
            key: skip.key,
            asked: Some(skip.value.clone()),
            before: Some(skip.value.clone()),
            now: Some(skip.value),
            outcome,
        });
    }
    for (key, line) in subject.lines {
        lines.push(ReportLine {
            before: subject.before.get(&key).cloned(),
            key,
            asked: None,
            now: line.now,
            outcome: line.outcome,
        });
    }
    let link: LinkName = subject.target.name;
    Report { link, lines }
}
