// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A journal in memory that outlives a killed process.

use std::cell::RefCell;
use std::rc::Rc;

use ibmgrd_engine::{Journal, JournalError, Record, Story};

use crate::world::{Clockwork, Fate, Killed};

/// The notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    story: Rc<RefCell<Story>>,
    clockwork: Clockwork,
}

impl Memory {
    pub(crate) fn on(clockwork: &Clockwork) -> Self {
        Self {
            story: Rc::default(),
            clockwork: clockwork.clone(),
        }
    }

    pub(crate) fn story(&self) -> Story {
        self.story.borrow().clone()
    }

    /// Returns the same notes, kept by a process that nothing happens to.
    pub(crate) fn reopened(&self) -> Self {
        Self {
            story: Rc::clone(&self.story),
            clockwork: Clockwork::default(),
        }
    }
}

impl Journal for Memory {
    fn note(&mut self, record: Record<'_>) -> Result<(), JournalError> {
        let failed = || Err(JournalError("no space left".into()));
        let fate = self.clockwork.strike();
        if fate == Some(Fate::FailsBefore) {
            return failed();
        }
        self.story.borrow_mut().tell(record);
        match fate {
            Some(Fate::KilledAfter) => std::panic::resume_unwind(Box::new(Killed)),
            Some(Fate::FailsAfter) => failed(),
            _ => Ok(()),
        }
    }
}
