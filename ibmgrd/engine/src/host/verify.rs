// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading back what was written, and what the kernel changed along.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{Key, Link, Outcome, Step, Target};

use super::Host;
use super::apply::{Apply, Failed};
use super::journal::Journal;
use super::survey::{Watched, survey, value};
use crate::plan::disturbed;
use crate::port::PortError;
use crate::run::{chain, difference};

impl<H: Host, J: Journal> Apply<'_, H, J> {
    pub(super) fn verify(&mut self) -> Result<(), Failed> {
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
}
