// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One interface under change: what is written to it, and how each knob went.

use std::collections::BTreeMap;

use ibmgr_api::{
    Action, HostPlan, Key, Link, LinkName, Outcome, Report, ReportLine, Skip, Step, Target, Value,
};

/// An interface under change.
pub(super) struct Subject {
    pub(super) target: Target,
    pub(super) skips: Vec<Skip>,
    /// Writes in the order of the report.
    pub(super) steps: Vec<Step>,
    pub(super) lines: BTreeMap<Key, Line>,
    pub(super) is_gone: bool,
    /// Values before, for what the kernel changes along.
    pub(super) before: BTreeMap<Key, Value>,
    /// Number of the action that made it.
    pub(super) made_by: Option<usize>,
}

pub(super) struct Line {
    pub(super) outcome: Outcome,
    pub(super) now: Option<Value>,
}

impl Subject {
    pub(super) fn set(&mut self, key: &Key, outcome: Outcome, now: Option<Value>) {
        self.lines.insert(key.clone(), Line { outcome, now });
    }

    pub(super) fn changed(&mut self, step: &Step, now: Option<&Value>) {
        let outcome = match &step.no_effect {
            Some(why) => Outcome::NoEffect { why: why.clone() },
            None => Outcome::Changed,
        };
        self.set(&step.key, outcome, now.cloned());
    }

    pub(super) fn vanish(&mut self) {
        self.is_gone = true;
        for step in self.steps.clone() {
            self.set(&step.key, Outcome::Vanished, None);
        }
    }
}

pub(super) fn steps_of(plan: &HostPlan, at: usize) -> impl Iterator<Item = &Step> {
    plan.actions.iter().filter_map(move |action| match action {
        Action::Set { link, step } if *link == at => Some(step),
        Action::Set { .. } | Action::Make { .. } | Action::Remove { .. } => None,
    })
}

pub(super) fn values(link: &Link) -> BTreeMap<Key, Value> {
    let readings = link.readings.iter();
    readings
        .filter_map(|(key, reading)| Some((key.clone(), reading.value.clone()?)))
        .collect()
}

pub(super) fn report_of(mut subject: Subject) -> Report {
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
