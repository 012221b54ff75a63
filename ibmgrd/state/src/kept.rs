// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A journal, read back.

use std::path::Path;
use std::time::Duration;

use ibmgrd_engine::{Record, Story};

use crate::clock;
use crate::error::StateError;
use crate::form::{Header, Line, VERSION, Versioned, checked};
use crate::journal::About;

/// The notes about the last change.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What it says besides the plan.
    pub about: About,
    /// The engine's notes.
    pub story: Story,
    /// Whether it was confirmed.
    pub is_confirmed: bool,
    /// Why it was taken back, when not for a failure of its own.
    pub why: Option<String>,
    /// How it went, in the form that `-o json` prints: of the last time that this was told.
    pub report: Option<serde_json::Value>,
    /// Whether the last note was torn: it was not kept, and what it announced was not done.
    pub is_torn: bool,
    /// Bytes of whole notes.
    pub(crate) length: u64,
}

/// How things stand with the last change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It ended, one way or the other.
    Closed,
    /// It was interrupted, and has to be brought to an end.
    Unfinished,
    /// It waits to be confirmed.
    Pending {
        /// What is left of the time.
        left: Duration,
    },
    /// Nobody confirmed it in time: it has to be taken back.
    Overdue,
}

impl Kept {
    /// Tells how things stand at the time `now` of [`boottime`](crate::boottime).
    #[must_use]
    pub fn standing(&self, now: Duration) -> Standing {
        if self.story.is_unfinished() {
            return Standing::Unfinished;
        }
        match self.about.confirm_by {
            Some(by) if !self.is_confirmed && !self.story.is_rolled_back => {
                match by.checked_sub(now) {
                    Some(left) if !left.is_zero() => Standing::Pending { left },
                    _ => Standing::Overdue,
                }
            }
            _ => Standing::Closed,
        }
    }

    /// Reads the bytes of the file at `path`; `None` for one of another boot, whose settings are gone.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Option<Self>, StateError> {
        let damaged = |line| StateError::Damaged {
            path: path.to_owned(),
            line,
        };
        // Each note ends with its newline: what is behind the last one is torn.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut lines: Vec<&[u8]> = bytes[..whole]
            .split_inclusive(|byte| *byte == b'\n')
            .collect();
        let mut is_torn = whole < bytes.len();
        // A note whose blocks were not all written has a wrong checksum, and nothing can follow it.
        if !is_torn && lines.len() > 1 && lines.last().is_some_and(|line| decode(line).is_none()) {
            lines.pop();
            is_torn = true;
        }
        let mut lines = lines.into_iter();
        let first = lines.next().ok_or_else(|| damaged(1))?;
        let header = Self::header(path, first)?.ok_or_else(|| damaged(1))?;
        if header.boot != clock::boot_id() {
            return Ok(None);
        }
        let mut story = Story::default();
        let plan = header.plan.read().ok_or_else(|| damaged(1))?;
        story.tell(Record::Begin(&plan));
        let mut kept = Self {
            about: About {
                id: header.id,
                what: header.what,
                started: Duration::from_nanos(header.started),
                confirm_by: header.confirm_by.map(Duration::from_nanos),
            },
            story,
            is_confirmed: false,
            why: None,
            report: None,
            is_torn,
            length: first.len() as u64,
        };
        for (number, bytes) in lines.enumerate() {
            let line = decode(bytes).ok_or_else(|| damaged(number + 2))?;
            kept.take(line).ok_or_else(|| damaged(number + 2))?;
            kept.length += bytes.len() as u64;
        }
        Ok(Some(kept))
    }

    fn header(path: &Path, line: &[u8]) -> Result<Option<Header>, StateError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if let Some(json) = checked(line)
            && let Ok(versioned) = serde_json::from_slice::<Versioned>(json)
            && versioned.begin.version != VERSION
        {
            return Err(StateError::Version {
                path: path.to_owned(),
                found: versioned.begin.version,
            });
        }
        Ok(match Line::decode(line) {
            Some(Line::Begin(header)) => Some(*header),
            _ => None,
        })
    }

    /// Adds a note; `None` when it makes no sense here.
    fn take(&mut self, line: Line) -> Option<()> {
        let actions = self.story.plan.actions.len();
        let record = match line {
            Line::Begin(_) => return None,
            Line::Intent(number) | Line::Done(number) if number >= actions => return None,
            Line::Intent(number) => Record::Intent(number),
            Line::Done(number) => Record::Done(number),
            Line::Verified => Record::Verified,
            Line::Applied => Record::Applied,
            Line::RollBack => Record::RollBack,
            Line::RolledBack => Record::RolledBack,
            Line::Confirmed => {
                self.is_confirmed = true;
                return Some(());
            }
            Line::Why(why) => {
                self.why = Some(why);
                return Some(());
            }
            Line::Report(report) => {
                self.report = Some(report);
                return Some(());
            }
        };
        self.story.tell(record);
        Some(())
    }
}

fn decode(line: &[u8]) -> Option<Line> {
    Line::decode(line.strip_suffix(b"\n").unwrap_or(line))
}

/// Says whether a journal's change may yet be put back. Whatever is not plainly closed is open.
pub(crate) fn is_open(bytes: &[u8]) -> bool {
    // Texts within the JSON have their quotes escaped, so that they cannot be taken for these.
    const NO_CONFIRMATION: &[u8] = b"\"confirm-by\":null,\"plan\":";
    const HEAD: usize = 4096;
    let mut is_confirmed = {
        let head = bytes.get(..HEAD).unwrap_or(bytes);
        let mut windows = head.windows(NO_CONFIRMATION.len());
        windows.any(|window| window == NO_CONFIRMATION)
    };
    let (mut is_applied, mut is_rolling_back) = (false, false);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let whole = line.strip_suffix(b"\n");
        let Some(json) = whole.and_then(|line| line.get(9..)) else {
            continue;
        };
        match json {
            b"\"rolled-back\"" => return false,
            b"\"applied\"" => is_applied = true,
            b"\"roll-back\"" => is_rolling_back = true,
            b"\"confirmed\"" => is_confirmed = true,
            _ => {}
        }
    }
    !is_applied || is_rolling_back || !is_confirmed
}
