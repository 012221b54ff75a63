// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P_Key children of a plan: made before anything is written, removed when everything else is done.

use std::collections::BTreeMap;

use ibmgr_api::{Action, Assignment, Link, NewChild, OldChild, Outcome, Target};

use super::Host;
use super::apply::{Apply, Failed};
use super::journal::{Journal, Record};
use super::subject::{Subject, values};
use crate::plan::{keys_to_observe, plan};
use crate::port::{PortError, Query};
use crate::run::reason;

impl<H: Host, J: Journal> Apply<'_, H, J> {
    /// Makes room and makes children: what comes before `last` and is no write.
    pub(super) fn prepare(&mut self, last: usize) -> Result<(), Failed> {
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

    pub(super) fn remove(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<(), Failed> {
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
}
