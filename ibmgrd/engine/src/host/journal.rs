// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is noted ahead of each write, and what a crash leaves to be done.

use std::collections::BTreeSet;

use ibmgr_api::{HostPlan, HostReport};

use super::Host;
use super::undo::Undo;

/// One note about a change of a host.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// The plan, with all that is needed to take it back. Comes first.
    Begin(&'a HostPlan),
    /// The action of that number is about to be done.
    Intent(usize),
    /// The action of that number was done, as far as the kernel says.
    Done(usize),
    /// All but the removals at the end was done and read back: what is left is done forward.
    Verified,
    /// Everything is as declared.
    Applied,
    /// From here on everything is taken back.
    RollBack,
    /// Nothing more is to be done: what could be taken back was.
    RolledBack,
}

/// Why a note was not kept.
#[derive(Debug, thiserror::Error)]
#[error("the journal could not be written: {0}")]
pub struct JournalError(pub String);

/// Keeps notes so that they outlive this process.
pub trait Journal {
    /// Keeps a note. When this returns, a crash of the process does not lose it.
    ///
    /// # Errors
    ///
    /// The note may or may not have been kept. Ahead of a write this stops the change, and what was
    /// done before is taken back.
    fn note(&mut self, record: Record<'_>) -> Result<(), JournalError>;
}

/// A journal, read back.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Story {
    /// The plan.
    pub plan: HostPlan,
    /// Numbers of the actions that were begun.
    pub begun: BTreeSet<usize>,
    /// Numbers of those that were done.
    pub done: BTreeSet<usize>,
    /// Whether all but the last removals was read back.
    pub is_verified: bool,
    /// Whether everything was done.
    pub is_applied: bool,
    /// Whether taking back was begun.
    pub is_rolling_back: bool,
    /// Whether that ended.
    pub is_rolled_back: bool,
}

impl Story {
    /// Adds a note.
    pub fn tell(&mut self, record: Record<'_>) {
        match record {
            Record::Begin(plan) => {
                *self = Self {
                    plan: plan.clone(),
                    ..Self::default()
                }
            }
            Record::Intent(number) => {
                self.begun.insert(number);
            }
            Record::Done(number) => {
                self.done.insert(number);
            }
            Record::Verified => self.is_verified = true,
            Record::Applied => self.is_applied = true,
            Record::RollBack => self.is_rolling_back = true,
            Record::RolledBack => self.is_rolled_back = true,
        }
    }

    /// Says whether a change was begun and neither ended nor was taken back.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        !self.plan.is_empty() && !self.is_rolled_back && (!self.is_applied || self.is_rolling_back)
    }
}

/// What [`recover`] did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Recovery {
    /// The change had ended.
    Nothing,
    /// It was taken back.
    RolledBack(HostReport),
    /// Everything but removals had been done and verified, and they were done now.
    Finished(HostReport),
}

/// Brings a change that a crash interrupted to an end: forward when all but removals was verified, back
/// otherwise. Doing it twice, or crashing in the middle and doing it again, ends the same.
///
/// Interfaces are known by their index: one that was made anew since is left alone, and reported as
/// vanished.
pub fn recover<H: Host, J: Journal>(host: &mut H, journal: &mut J, story: &Story) -> Recovery {
    if !story.is_unfinished() {
        Recovery::Nothing
    } else if story.is_verified && !story.is_rolling_back {
        let report = super::apply::finish(host, journal, story);
        Recovery::Finished(report)
    } else {
        Recovery::RolledBack(roll_back(host, journal, story))
    }
}

/// Takes back what `story` did, whether it ended or not.
pub fn roll_back<H: Host, J: Journal>(host: &mut H, journal: &mut J, story: &Story) -> HostReport {
    Undo::new(host, journal, &story.plan, &story.begun)
        .run()
        .into_report(&story.plan, &story.begun)
}
