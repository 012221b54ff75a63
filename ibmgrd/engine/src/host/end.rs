// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a change: kept, or taken back, and told.

use ibmgr_api::{Action, End, HostReport, Outcome};

use super::Host;
use super::apply::{Apply, Failed};
use super::journal::{Journal, Record};
use super::subject::{Line, report_of};
use super::undo::{Now, Undo, Undone, child_reports};

impl<H: Host, J: Journal> Apply<'_, H, J> {
    pub(super) fn end(mut self, done: Result<(), Failed>) -> HostReport {
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

    pub(super) fn report(self, end: End) -> HostReport {
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
