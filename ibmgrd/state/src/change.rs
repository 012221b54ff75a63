// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of a host from their beginning to their end: begun with a journal, confirmed, taken back, and
//! brought to an end when they were interrupted.
//!
//! `ibctl` and the daemon both come here. Whoever does keeps the [lock](crate::lock) meanwhile.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use ibmgr_api::form::{CheckpointForm, InterruptedForm};
use ibmgr_api::{Action, End, ErrorCode, HostPlan, HostRefusal, HostReport, Key};
use ibmgrd_engine::{
    Host, JournalError, PortError, Recovery, apply as do_apply, recover, roll_back,
};

use crate::clock::boottime;
use crate::error::StateError;
use crate::journal::FileJournal;
use crate::kept::{Kept, Standing};
use crate::store::Store;

/// Why nothing was begun, confirmed or taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// What was declared cannot be done, and nothing was changed.
    #[error("{}", refusals(.0))]
    Refused(Box<HostPlan>),
    /// An earlier change waits to be confirmed.
    #[error(
        "an earlier change waits {} s more to be confirmed: nothing was changed",
        left.as_secs()
    )]
    Unconfirmed {
        /// The time that is left.
        left: Duration,
    },
    /// A knob belongs to a change that may yet be put back, and would be put back with it.
    #[error("{key} is part of {}, and would be put back with it: nothing was changed", open(*left))]
    PartOf {
        /// The knob.
        key: Key,
        /// The time that is left to confirm the change; `None` for one that was interrupted.
        left: Option<Duration>,
    },
    /// There is no change that could be confirmed or taken back.
    #[error("{0}")]
    Nothing(&'static str),
    /// The process that would take an unconfirmed change back could not be started.
    #[error("what takes an unconfirmed change back could not be started: nothing was changed")]
    Guard(#[source] io::Error),
    /// What the kernel said.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The state on disk cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A note could not be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn open(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!(
            "a change that waits {} s more to be confirmed",
            left.as_secs()
        ),
        None => "a change that was interrupted".to_owned(),
    }
}

fn refusals(plan: &HostPlan) -> String {
    match plan.refused.as_slice() {
        [] => "the plan was refused".to_owned(),
        [one] => format!("{one}; nothing was changed"),
        [first, rest @ ..] => {
            format!(
                "{first}, and {} more cannot be done; nothing was changed",
                rest.len()
            )
        }
    }
}

impl ChangeError {
    /// Returns the error's code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(plan) => {
                let first = plan.refused.first();
                first.map_or(ErrorCode::Internal, HostRefusal::code)
            }
            Self::Unconfirmed { .. } | Self::PartOf { .. } | Self::Nothing(_) => ErrorCode::Pending,
            Self::Guard(_) => ErrorCode::Kernel,
            Self::Port(error) => error.code(),
            Self::State(error) => error.code(),
            Self::Journal(_) => ErrorCode::Journal,
        }
    }
}

/// What an [`apply`] did.
#[derive(Debug)]
pub struct Applied {
    /// How it went.
    pub report: HostReport,
    /// The time that is left to confirm it.
    pub confirm_within: Option<Duration>,
}

/// A change that was brought to an end.
#[derive(Debug)]
pub struct Ended {
    /// What it had been asked to do.
    pub what: String,
    /// Why it was brought to an end.
    pub why: Why,
    /// Whether it was finished instead of taken back.
    pub is_finished: bool,
    /// How that went.
    pub report: HostReport,
}

/// Why a change is brought to an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// Its process died, or the journal could not be kept.
    Interrupted,
    /// Nobody confirmed it in time.
    Unconfirmed,
    /// Somebody asked for it.
    Asked,
}

impl Why {
    const fn note(self) -> &'static str {
        match self {
            Self::Interrupted => "the change was interrupted",
            Self::Unconfirmed => "it was not confirmed in time",
            Self::Asked => "it was asked for",
        }
    }
}

/// Starts what takes an unconfirmed change back, for the change of that id, at that time of
/// [`boottime`]. The daemon needs none: it looks itself.
pub type Guard<'a> = &'a dyn Fn(&str, Duration) -> io::Result<()>;

/// Applies `plan`, which nothing stands in the way of: see [`clear_the_way`].
///
/// # Errors
///
/// Nothing was begun.
pub fn apply<H: Host>(
    host: &mut H,
    store: &Store,
    plan: &HostPlan,
    what: &str,
    confirm: Option<(Duration, Option<Guard<'_>>)>,
) -> Result<Applied, ChangeError> {
    if !plan.refused.is_empty() {
        return Err(ChangeError::Refused(Box::new(plan.clone())));
    }
    let mut journal = store.begin(what, confirm.map(|(within, _)| within));
    let confirm = confirm.filter(|_| !plan.is_empty());
    if let Some((_, Some(guard))) = confirm {
        let by = journal.about().confirm_by.unwrap_or_default();
        guard(&journal.about().id, by).map_err(ChangeError::Guard)?;
    }
    let report = do_apply(host, &mut journal, plan);
    keep(&mut journal, &report);
    Ok(Applied {
        confirm_within: confirm
            .filter(|_| report.end == End::Applied)
            .and_then(|_| journal.about().confirm_by)
            .map(|by| by.saturating_sub(boottime())),
        report,
    })
}

/// Keeps a report for those who ask later. The change itself is kept already.
fn keep(journal: &mut FileJournal, report: &HostReport) {
    if !matches!(report.end, End::Nothing | End::NotStarted) {
        let _ = journal.note_report(report);
    }
}

/// Brings the last change to an end, if it has none, so that another one can begin.
///
/// # Errors
///
/// It waits to be confirmed, or what is kept of it cannot be used.
pub fn clear_the_way<H: Host>(host: &mut H, store: &Store) -> Result<Option<Ended>, ChangeError> {
    let Some(kept) = store.read()? else {
        return Ok(None);
    };
    match kept.standing(boottime()) {
        Standing::Pending { left } => Err(ChangeError::Unconfirmed { left }),
        standing => Ok(end(host, store, kept, standing)?),
    }
}

/// Brings the last change to an end, if it was interrupted or is overdue.
///
/// # Errors
///
/// What is kept of it cannot be used.
pub fn settle<H: Host>(host: &mut H, store: &Store) -> Result<Option<Ended>, StateError> {
    let Some(kept) = store.read()? else {
        return Ok(None);
    };
    let standing = kept.standing(boottime());
    end(host, store, kept, standing)
}

fn end<H: Host>(
    host: &mut H,
    store: &Store,
    kept: Kept,
    standing: Standing,
) -> Result<Option<Ended>, StateError> {
    let why = match standing {
        Standing::Closed | Standing::Pending { .. } => return Ok(None),
        Standing::Unfinished => Why::Interrupted,
        Standing::Overdue => Why::Unconfirmed,
    };
    let mut journal = store.resume(&kept)?;
    if why == Why::Unconfirmed || !kept.story.is_verified || kept.story.is_rolling_back {
        // It only explains.
        let _ = journal.note_why(why.note());
    }
    let (is_finished, report) = if why == Why::Unconfirmed {
        (false, roll_back(host, &mut journal, &kept.story))
    } else {
        match recover(host, &mut journal, &kept.story) {
            Recovery::RolledBack(report) => (false, report),
            Recovery::Finished(report) => (true, report),
            Recovery::Nothing => return Ok(None),
        }
    };
    keep(&mut journal, &report);
    Ok(Some(Ended {
        what: kept.about.what,
        why,
        is_finished,
        report,
    }))
}

/// Says whether knobs of the interface `index` may be set by themselves: not while an open change of
/// the host would put them back at its end.
///
/// # Errors
///
/// [`ChangeError::PartOf`] with the first that may not, or what is kept cannot be used.
pub fn check_set<'a>(
    store: &Store,
    index: u32,
    keys: impl IntoIterator<Item = &'a Key>,
) -> Result<(), ChangeError> {
    if !store.is_open()? {
        return Ok(());
    }
    let Some(kept) = store.read()? else {
        return Ok(());
    };
    let standing = kept.standing(boottime());
    if standing == Standing::Closed {
        return Ok(());
    }
    let part = parts(&kept, index);
    match keys.into_iter().find(|key| part.contains(key)) {
        None => Ok(()),
        Some(key) => Err(ChangeError::PartOf {
            key: key.clone(),
            left: match standing {
                Standing::Pending { left } => Some(left),
                Standing::Overdue => Some(Duration::ZERO),
                Standing::Unfinished | Standing::Closed => None,
            },
        }),
    }
}

/// Returns the knobs of one interface that are put back when a change is taken back.
fn parts(kept: &Kept, index: u32) -> BTreeSet<&Key> {
    let plan = &kept.story.plan;
    let mut actions = kept
        .story
        .begun
        .iter()
        .filter_map(|at| plan.actions.get(*at));
    let is_it = |at: &usize| {
        plan.links
            .get(*at)
            .is_some_and(|it| it.target.index == index)
    };
    let link = actions.find_map(|action| match action {
        Action::Set { link, .. } if is_it(link) => plan.links.get(*link),
        Action::Set { .. } | Action::Make { .. } | Action::Remove { .. } => None,
    });
    let before = link.into_iter().flat_map(|link| &link.before);
    before.map(|was| &was.key).collect()
}

/// Keeps the last change for good, and returns what it had been asked to do.
///
/// # Errors
///
/// None waits to be confirmed, or that could not be noted: then it is not confirmed.
pub fn confirm(store: &Store) -> Result<String, ChangeError> {
    let kept = store.read()?;
    match kept.as_ref().map(|kept| (kept, kept.standing(boottime()))) {
        Some((kept, Standing::Pending { .. })) => {
            store.resume(kept)?.confirm()?;
            Ok(kept.about.what.clone())
        }
        Some((_, Standing::Overdue)) => Err(ChangeError::Nothing(
            "the time to confirm has passed: the change is being taken back",
        )),
        Some((_, Standing::Unfinished)) => Err(ChangeError::Nothing(
            "the last change was interrupted; 'ibctl rollback' takes it back",
        )),
        Some((_, Standing::Closed)) | None => {
            Err(ChangeError::Nothing("no change waits to be confirmed"))
        }
    }
}

/// Takes back the change that waits to be confirmed, or ends the one that was interrupted.
///
/// # Errors
///
/// There is none, or what is kept of it cannot be used.
pub fn take_back<H: Host>(host: &mut H, store: &Store) -> Result<Ended, ChangeError> {
    let Some(kept) = store.read()? else {
        return Err(ChangeError::Nothing(NOTHING_TO_TAKE_BACK));
    };
    let standing = kept.standing(boottime());
    let why = match standing {
        Standing::Closed => return Err(ChangeError::Nothing(NOTHING_TO_TAKE_BACK)),
        Standing::Pending { .. } => Why::Asked,
        Standing::Overdue => Why::Unconfirmed,
        Standing::Unfinished => Why::Interrupted,
    };
    if why == Why::Interrupted && kept.story.is_verified && kept.about.confirm_by.is_none() {
        // Only removals were left, and what they remove cannot be put back as it was.
        let ended = end(host, store, kept, standing)?;
        return ended.ok_or(ChangeError::Nothing(NOTHING_TO_TAKE_BACK));
    }
    let mut journal = store.resume(&kept)?;
    let _ = journal.note_why(why.note());
    let report = roll_back(host, &mut journal, &kept.story);
    keep(&mut journal, &report);
    Ok(Ended {
        what: kept.about.what,
        why,
        is_finished: false,
        report,
    })
}

const NOTHING_TO_TAKE_BACK: &str =
    "there is nothing to take back: no change was interrupted, and none waits to be confirmed";

/// How things stand.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// In one word.
    pub word: Word,
    /// The last change, if there was one since boot.
    pub kept: Option<Kept>,
}

/// How things stand, in one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Word {
    /// Nothing was changed since boot.
    Idle,
    /// The last change is in force.
    Applied,
    /// The last change was taken back.
    RolledBack,
    /// The last change waits to be confirmed for that time.
    Pending(Duration),
    /// Nobody confirmed the last change in time, and it is still there.
    Overdue,
    /// The last change was interrupted.
    Interrupted,
}

impl Checkpoint {
    /// Returns what surfaces tell of it.
    #[must_use]
    pub fn form(&self) -> CheckpointForm {
        let kept = self.kept.as_ref();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        // A report of another release may have another form: it is only told.
        let report = |report: &serde_json::Value| serde_json::from_value(report.clone()).ok();
        CheckpointForm {
            state: self.word.name().to_owned(),
            what: kept.map(|kept| kept.about.what.clone()),
            confirm_within_seconds: self.word.left().map(whole_seconds),
            steps: kept.map(|kept| count(kept.story.plan.actions.len())),
            done: kept.map(|kept| count(kept.story.done.len())),
            why: kept.and_then(|kept| kept.why.clone()),
            report: kept.and_then(|kept| kept.report.as_ref()).and_then(report),
        }
    }
}

impl Ended {
    /// Returns what surfaces tell of it.
    #[must_use]
    pub fn form(&self) -> InterruptedForm {
        InterruptedForm {
            what: self.what.clone(),
            report: (&self.report).into(),
        }
    }
}

/// Returns a time in seconds, rounded up.
#[must_use]
pub const fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + (time.subsec_nanos() > 0) as u64
}

impl Word {
    /// Returns the word in tables and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Applied => "applied",
            Self::RolledBack => "rolled-back",
            Self::Pending(_) => "pending",
            Self::Overdue => "overdue",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the time that is left to confirm the last change, if it waits for that.
    #[must_use]
    pub const fn left(self) -> Option<Duration> {
        match self {
            Self::Pending(left) => Some(left),
            Self::Idle | Self::Applied | Self::RolledBack | Self::Overdue | Self::Interrupted => {
                None
            }
        }
    }
}

/// Tells how things stand.
///
/// # Errors
///
/// What is kept of the last change cannot be used.
pub fn checkpoint(store: &Store) -> Result<Checkpoint, StateError> {
    let kept = store.read()?;
    let word = kept
        .as_ref()
        .map_or(Word::Idle, |kept| match kept.standing(boottime()) {
            Standing::Closed if kept.story.is_rolled_back => Word::RolledBack,
            Standing::Closed => Word::Applied,
            Standing::Unfinished => Word::Interrupted,
            Standing::Pending { left } => Word::Pending(left),
            Standing::Overdue => Word::Overdue,
        });
    Ok(Checkpoint { word, kept })
}
