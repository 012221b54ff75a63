// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking a plan through a port: write, read back, put back what was changed when something fails.

use std::collections::BTreeMap;

use ibmgr_api::{
    ErrorCode, Key, Link, Outcome, Plan, Reading, Report, ReportLine, Skip, Step, Support, Target,
    Value,
};

use crate::plan::disturbed;
use crate::port::{Port, PortError, Query};

/// `EBUSY` (asm-generic/errno-base.h). In-tree ib_ipoib answers a mode change with it although the
/// change was made, when it lost the RTNL lock in between (drivers/infiniband/ulp/ipoib/ipoib_main.c).
pub(crate) const EBUSY: i32 = 16;

/// Runs `plan`, which was made from `before`.
///
/// All or nothing: when a step fails or reads back differently, the earlier ones are put back, and so
/// are the knobs that the kernel changed along with them. The report tells each knob's value as read
/// at the end.
///
/// An interface that gets another name midway is followed by its index: what was changed is put back,
/// and the report is about the new name. It stays changed if that comes after the last write.
pub fn run<P: Port>(port: &mut P, plan: &Plan, before: &Link) -> Report {
    let mut run = Run {
        port,
        target: Target {
            name: plan.link.clone(),
            index: plan.index,
        },
        plan,
        before,
        outcomes: BTreeMap::new(),
    };
    if !plan.steps.is_empty() {
        run.write_all();
    }
    run.report()
}

struct Run<'a, P> {
    port: &'a mut P,
    target: Target,
    plan: &'a Plan,
    before: &'a Link,
    outcomes: BTreeMap<Key, Line>,
}

struct Line {
    outcome: Outcome,
    now: Option<Value>,
}

impl<P: Port> Run<'_, P> {
    fn write_all(&mut self) {
        for (at, step) in self.plan.steps.iter().enumerate() {
            let Err(error) = self.write(step, &step.to) else {
                continue;
            };
            // The same write may be in force all the same, and then the plan goes on.
            let applied = matches!(error, PortError::Refused { errno: EBUSY, .. })
                && self
                    .read(&step.key)
                    .is_ok_and(|now| now.as_ref() == Some(&step.to));
            if !applied {
                self.fail(at, error);
                return;
            }
        }
        self.verify();
    }

    fn write(&mut self, step: &Step, value: &Value) -> Result<(), PortError> {
        self.port
            .write(&self.target, &step.key, value, step.carrier)
    }

    fn read(&mut self, key: &Key) -> Result<Option<Value>, PortError> {
        let mut link = self.observe(vec![key.clone()])?;
        Ok(link.readings.remove(key).and_then(|reading| reading.value))
    }

    /// Reads `keys` of the very interface that the plan was made for, through the carriers of the plan.
    fn observe(&mut self, keys: Vec<Key>) -> Result<Link, PortError> {
        let mut link = self
            .port
            .observe(&self.target.name, &Query::named(keys.clone()))?;
        if link.index != self.target.index {
            return Err(PortError::Gone {
                link: self.target.name.clone(),
            });
        }
        // A knob that was written or found so through a chosen channel is read back through the same.
        let (plan, before) = (self.plan, self.before);
        let written = plan.steps.iter();
        let written = written.map(|step| (&step.key, step.carrier.channel()));
        let found = plan.skips.iter().filter_map(|skip| {
            let reading = before.readings.get(&skip.key)?;
            Some((&skip.key, reading.via?))
        });
        for (key, channel) in written.chain(found).filter(|(key, _)| keys.contains(key)) {
            if link
                .readings
                .get(key)
                .is_some_and(|reading| reading.via != Some(channel))
            {
                let query = Query {
                    via: Some(channel),
                    ..Query::named(vec![key.clone()])
                };
                let again = self.port.observe(&self.target.name, &query)?;
                if again.index != self.target.index {
                    return Err(PortError::Gone {
                        link: self.target.name.clone(),
                    });
                }
                link.readings.extend(again.readings);
            }
        }
        Ok(link)
    }

    fn touched(&self) -> Vec<Key> {
        let steps = &self.plan.steps;
        let skips = self.plan.skips.iter().map(|skip| &skip.key);
        let mut keys: Vec<Key> = steps
            .iter()
            .map(|step| &step.key)
            .chain(skips)
            .cloned()
            .collect();
        for key in steps.iter().flat_map(|step| disturbed(&step.key)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Takes on the name that the interface has by now; `false` when it has no other, or is gone.
    fn follow(&mut self) -> bool {
        match self.port.name_of(self.target.index) {
            Ok(Some(name)) if name != self.target.name => {
                self.target.name = name;
                true
            }
            _ => false,
        }
    }

    /// Reads again under a new name what cannot be found under the old one.
    fn observe_followed(&mut self, keys: Vec<Key>) -> Result<Link, PortError> {
        match self.observe(keys.clone()) {
            Err(error) if is_gone(&error) && self.follow() => self.observe(keys),
            result => result,
        }
    }

    fn write_followed(&mut self, step: &Step, value: &Value) -> Result<(), PortError> {
        match self.write(step, value) {
            Err(error) if is_gone(&error) && self.follow() => self.write(step, value),
            result => result,
        }
    }

    fn verify(&mut self) {
        let link = match self.observe_followed(self.touched()) {
            Ok(link) => link,
            Err(error) => return self.fail_verification(&error),
        };
        let wrong = self.plan.steps.iter().position(|step| {
            link.readings
                .get(&step.key)
                .and_then(|reading| reading.value.as_ref())
                != Some(&step.to)
        });
        if let Some(at) = wrong {
            let step = &self.plan.steps[at];
            let outcome = Outcome::NotVerified {
                why: difference(step, &link),
            };
            self.set(&step.key, outcome, None);
            self.put_back(self.plan.steps.len(), Some(at));
            return;
        }
        if let Some(skip) = self.plan.skips.iter().find(|skip| lost(skip, &link)) {
            let value = skip.value.show(&skip.key.knob().domain);
            let why = format!("it was {value} already, but the other knobs changed it");
            self.set(&skip.key, Outcome::NotVerified { why }, None);
            self.put_back(self.plan.steps.len(), None);
            return;
        }
        for step in &self.plan.steps {
            let outcome = match &step.no_effect {
                Some(why) => Outcome::NoEffect { why: why.clone() },
                None => Outcome::Changed,
            };
            self.set(&step.key, outcome, Some(step.to.clone()));
        }
        self.note_disturbed(&link, &Outcome::Changed);
    }

    /// Adds lines for knobs that nobody asked for and that are not what they were.
    fn note_disturbed(&mut self, link: &Link, outcome: &Outcome) {
        for (key, reading) in &link.readings {
            let was = self
                .before
                .readings
                .get(key)
                .and_then(|reading| reading.value.as_ref());
            let is_skipped = self.plan.skips.iter().any(|skip| skip.key == *key);
            let is_told = is_skipped || self.outcomes.contains_key(key);
            if !is_told && reading.value.as_ref() != was {
                self.set(key, outcome.clone(), reading.value.clone());
            }
        }
    }

    fn set(&mut self, key: &Key, outcome: Outcome, now: Option<Value>) {
        self.outcomes.insert(key.clone(), Line { outcome, now });
    }

    fn fail_verification(&mut self, error: &PortError) {
        if is_gone(error) {
            return self.vanish();
        }
        // All was written, nothing could be read: say so of each, and try to put all back.
        for step in &self.plan.steps {
            let why = format!("could not be read back: {}", chain(error));
            self.set(&step.key, Outcome::NotVerified { why }, None);
        }
        self.put_back(self.plan.steps.len(), None);
    }

    fn fail(&mut self, at: usize, error: PortError) {
        let (code, why) = if !is_gone(&error) {
            (error.code(), reason(&error))
        } else if self.follow() {
            let why = format!(
                "the interface was renamed to {} meanwhile",
                self.target.name
            );
            (ErrorCode::Vanished, why)
        } else {
            return self.vanish();
        };
        for step in &self.plan.steps[at..] {
            self.set(&step.key, Outcome::NotTried, None);
        }
        self.set(
            &self.plan.steps[at].key,
            Outcome::Refused { why, code },
            None,
        );
        self.put_back(at, None);
    }

    fn vanish(&mut self) {
        for step in &self.plan.steps {
            self.set(&step.key, Outcome::Vanished, None);
        }
    }

    /// Writes the old values of the first `count` steps, the last one first, and of what they
    /// disturbed. `culprit` keeps its own outcome if its value is the old one again.
    fn put_back(&mut self, count: usize, culprit: Option<usize>) {
        let mut errors: BTreeMap<Key, String> = BTreeMap::new();
        for step in self.plan.steps[..count].iter().rev() {
            let written = match &step.from {
                Some(from) => self.write_followed(step, from),
                None => Err(PortError::Unsupported {
                    link: self.target.name.clone(),
                    key: step.key.clone(),
                    why: "it had no value before".to_owned(),
                }),
            };
            match written {
                Ok(()) => {}
                Err(error) if is_gone(&error) => return self.vanish(),
                Err(error) => {
                    errors.insert(step.key.clone(), reason(&error));
                }
            }
        }
        self.put_back_disturbed(count, &mut errors);

        let link = match self.observe_followed(self.touched()) {
            Ok(link) => link,
            Err(error) if is_gone(&error) => return self.vanish(),
            Err(error) => {
                for step in &self.plan.steps[..count] {
                    let why = format!("could not be read back: {}", chain(&error));
                    self.set(&step.key, Outcome::NotPutBack { why }, None);
                }
                return;
            }
        };
        for key in self.touched() {
            let now = link
                .readings
                .get(&key)
                .and_then(|reading| reading.value.clone());
            let was = self
                .before
                .readings
                .get(&key)
                .and_then(|reading| reading.value.clone());
            let step = self.plan.steps.iter().position(|step| step.key == key);
            if now == was {
                let keeps_outcome = step.is_none_or(|at| at >= count) || step == culprit;
                if let Some(line) = self.outcomes.get_mut(&key).filter(|_| keeps_outcome) {
                    line.now = now;
                } else if !keeps_outcome {
                    self.set(&key, Outcome::PutBack, now);
                }
            } else {
                let why = errors.remove(&key).unwrap_or_else(|| {
                    "the kernel took the old value, but another one is read back".to_owned()
                });
                self.set(&key, Outcome::NotPutBack { why }, now);
            }
        }
    }

    /// Restores what the kernel changed along with the steps, where it does not restore it by itself.
    fn put_back_disturbed(&mut self, count: usize, errors: &mut BTreeMap<Key, String>) {
        let asked: Vec<&Key> = self.plan.steps[..count]
            .iter()
            .map(|step| &step.key)
            .collect();
        let skips = self.plan.skips.iter().map(|skip| skip.key.clone());
        let mut keys: Vec<Key> = asked.iter().flat_map(|key| disturbed(key)).collect();
        keys.extend(skips);
        keys.sort();
        keys.dedup();
        for key in keys {
            let Some(Reading {
                value: Some(was),
                via: Some(channel),
                support: Support::Settable,
                ..
            }) = self.before.readings.get(&key)
            else {
                continue;
            };
            let now = self.observe_followed(vec![key.clone()]);
            let now = now.map(|mut link| link.readings.remove(&key));
            if now.is_ok_and(|now| now.and_then(|now| now.value).as_ref() == Some(was)) {
                continue;
            }
            let carriers = key.knob().carriers.iter();
            let Some(carrier) = carriers.copied().find(|c| c.channel() == *channel) else {
                continue;
            };
            if let Err(error) = self.port.write(&self.target, &key, was, carrier) {
                errors.insert(key, reason(&error));
            }
        }
    }

    fn report(mut self) -> Report {
        let value_before = |key: &Key| {
            self.before
                .readings
                .get(key)
                .and_then(|reading| reading.value.clone())
        };
        let mut lines = Vec::new();
        for step in &self.plan.steps {
            let line = self.outcomes.remove(&step.key);
            let line = line.unwrap_or(Line {
                outcome: Outcome::NotTried,
                now: None,
            });
            lines.push(ReportLine {
                key: step.key.clone(),
                asked: Some(step.to.clone()),
                before: step.from.clone(),
                now: line.now,
                outcome: line.outcome,
            });
        }
        for skip in &self.plan.skips {
            let untouched = || Line {
                outcome: match &skip.no_effect {
                    Some(why) => Outcome::NoEffect { why: why.clone() },
                    None => Outcome::AlreadySo,
                },
                now: Some(skip.value.clone()),
            };
            let line = self.outcomes.remove(&skip.key).unwrap_or_else(untouched);
            lines.push(ReportLine {
                key: skip.key.clone(),
                asked: Some(skip.value.clone()),
                before: Some(skip.value.clone()),
                now: line.now,
                outcome: line.outcome,
            });
        }
        for (key, line) in self.outcomes {
            let before = value_before(&key);
            lines.push(ReportLine {
                key,
                asked: None,
                before,
                now: line.now,
                outcome: line.outcome,
            });
        }
        Report {
            link: self.target.name,
            lines,
        }
    }
}

/// Says whether a knob that needed no change has another value by now. That it cannot be read any more,
/// as NAPI instances of an interface that went down, is no change.
fn lost(skip: &Skip, link: &Link) -> bool {
    let reading = link.readings.get(&skip.key);
    reading.is_some_and(|reading| {
        !matches!(reading.support, Support::Unsupported(_))
            && reading.value.as_ref() != Some(&skip.value)
    })
}

pub(crate) fn is_gone(error: &PortError) -> bool {
    matches!(error.code(), ErrorCode::Vanished | ErrorCode::UnknownLink)
}

/// Returns what the kernel said, without the interface and knob that the report names anyway.
pub(crate) fn reason(error: &PortError) -> String {
    match error {
        PortError::Refused { message, .. } | PortError::ChildRefused { message, .. } => {
            message.clone()
        }
        PortError::Permission { needs, .. } => format!("it takes {needs}"),
        PortError::Unsupported { why, .. } => why.clone(),
        _ => chain(error),
    }
}

pub(crate) fn chain(error: &PortError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub(crate) fn difference(step: &Step, link: &Link) -> String {
    let domain = &step.key.knob().domain;
    let reading = link.readings.get(&step.key);
    let now = reading.and_then(|reading| reading.value.as_ref());
    let now = now.map_or_else(|| "no value".to_owned(), |value| value.show(domain));
    let asked = step.to.show(domain);
    match reading.and_then(|reading| reading.support.why()) {
        Some(why) => format!("the kernel took {asked}, but {now} is read back: {why}"),
        None => format!("the kernel took {asked}, but {now} is read back"),
    }
}
