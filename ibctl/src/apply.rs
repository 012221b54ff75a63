// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `apply`, `confirm`, `rollback`, `status`: whole hosts, by declaration.
//!
//! Without a daemon `ibctl` keeps the journal itself. What an interrupted `apply` left is brought to an
//! end by the next one, or by `rollback`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ibmgr_api::{Desired, End, ErrorCode, HostPlan, HostReport};
use ibmgrd_engine::{
    Host, Query, Recovery, apply as do_apply, keys_of, plan_host, recover, resolve,
    roll_back as take_back,
};
use ibmgrd_state::{FileJournal, Kept, Standing, Store, boottime};

use crate::error::Error;

/// What an `apply` did.
pub(crate) struct Applied {
    /// What an interrupted change before had left to be done.
    pub(crate) recovered: Option<Recovered>,
    /// How it went.
    pub(crate) report: HostReport,
    /// The time that is left to confirm it.
    pub(crate) confirm_within: Option<Duration>,
}

/// An interrupted change that was brought to an end.
pub(crate) struct Recovered {
    /// What it had been asked to do.
    pub(crate) what: String,
    /// How that ended.
    pub(crate) report: HostReport,
}

/// Starts what takes an unconfirmed change back, for the change of that id, at that time of
/// [`boottime`].
pub(crate) type Guard<'a> = &'a dyn Fn(&str, Duration) -> Result<(), std::io::Error>;

/// Reads the declarations of files and folders.
///
/// # Errors
///
/// All that is wrong with them.
pub(crate) fn load(paths: &[PathBuf]) -> Result<Desired, Error> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let listing = ibmgrd_config::read_folders([path]);
            if let Some((folder, source)) = listing.unlisted.into_iter().next() {
                let folder = folder.display();
                return Err(Error::Files {
                    message: format!("{folder} cannot be listed"),
                    hint: None,
                    code: ErrorCode::BadValue,
                    source: Some(source),
                });
            }
            sources.extend(listing.sources);
        } else {
            sources.push(ibmgrd_config::read_file(path));
        }
    }
    let loaded = ibmgrd_config::Store::new().load(sources);
    if loaded.has_errors() {
        let texts: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        return Err(Error::Files {
            message: texts.join("\n"),
            hint: None,
            code: ErrorCode::BadValue,
            source: None,
        });
    }
    Ok(loaded.desired)
}

/// Plans what `desired` means for the host as it is.
pub(crate) fn plan<H: Host>(host: &mut H, desired: &Desired) -> Result<HostPlan, Error> {
    let links = host.observe_all(&Query::named(keys_of(desired)))?;
    Ok(plan_host(&resolve(desired, &links), &links))
}

/// Applies a declaration, after what an interrupted change left was brought to an end.
pub(crate) fn apply<H: Host>(
    host: &mut H,
    store: &Store,
    desired: &Desired,
    what: &str,
    confirm: Option<(Duration, Guard<'_>)>,
) -> Result<Applied, Error> {
    let recovered = match store.read()? {
        Some(kept) => clear_the_way(host, store, &kept)?,
        None => None,
    };
    let plan = plan(host, desired)?;
    if !plan.refused.is_empty() {
        return Err(Error::Refused(Box::new(plan)));
    }
    let mut journal = store.begin(what, confirm.map(|(within, _)| within));
    let guarded = confirm.filter(|_| !plan.is_empty());
    if let Some((_, guard)) = guarded {
        let by = journal.about().confirm_by.unwrap_or_default();
        guard(&journal.about().id, by).map_err(Error::Guard)?;
    }
    let report = do_apply(host, &mut journal, &plan);
    keep(&mut journal, &report);
    Ok(Applied {
        recovered,
        confirm_within: guarded
            .filter(|_| report.end == End::Applied)
            .and_then(|_| journal.about().confirm_by)
            .map(|by| by.saturating_sub(boottime())),
        report,
    })
}

/// Keeps a report for `status`. The change itself is kept already.
fn keep(journal: &mut FileJournal, report: &HostReport) {
    if !matches!(report.end, End::Nothing | End::NotStarted) {
        let _ = journal.note_report(report);
    }
}

/// Brings the last change to an end, if it has none.
fn clear_the_way<H: Host>(
    host: &mut H,
    store: &Store,
    kept: &Kept,
) -> Result<Option<Recovered>, Error> {
    let mut journal = match kept.standing(boottime()) {
        Standing::Closed => return Ok(None),
        Standing::Pending { left } => return Err(Error::Unconfirmed { left }),
        Standing::Unfinished | Standing::Overdue => store.resume(kept)?,
    };
    let report = if kept.standing(boottime()) == Standing::Overdue {
        let _ = journal.note_why(NOT_CONFIRMED);
        take_back(host, &mut journal, &kept.story)
    } else {
        match recover(host, &mut journal, &kept.story) {
            Recovery::RolledBack(report) | Recovery::Finished(report) => report,
            Recovery::Nothing => return Ok(None),
        }
    };
    keep(&mut journal, &report);
    Ok(Some(Recovered {
        what: kept.about.what.clone(),
        report,
    }))
}

const NOT_CONFIRMED: &str = "it was not confirmed in time";

/// Keeps the last change for good.
pub(crate) fn confirm(store: &Store) -> Result<(), Error> {
    let kept = store.read()?;
    match kept.as_ref().map(|kept| (kept, kept.standing(boottime()))) {
        Some((kept, Standing::Pending { .. })) => {
            store.resume(kept)?.confirm().map_err(Error::journal)
        }
        Some((_, Standing::Overdue)) => Err(Error::Nothing(
            "the time to confirm has passed: the change is being taken back",
        )),
        Some((_, Standing::Unfinished)) => Err(Error::Nothing(
            "the last change was interrupted; 'ibctl rollback' takes it back",
        )),
        Some((_, Standing::Closed)) | None => {
            Err(Error::Nothing("no change waits to be confirmed"))
        }
    }
}

/// Takes back the change that waits to be confirmed, or ends the one that was interrupted.
pub(crate) fn rollback<H: Host>(host: &mut H, store: &Store) -> Result<Recovered, Error> {
    let Some(kept) = store.read()? else {
        return Err(Error::Nothing(NOTHING_TO_TAKE_BACK));
    };
    let (why, is_interrupted) = match kept.standing(boottime()) {
        Standing::Closed => return Err(Error::Nothing(NOTHING_TO_TAKE_BACK)),
        Standing::Pending { .. } => ("it was asked for", false),
        Standing::Overdue => (NOT_CONFIRMED, false),
        Standing::Unfinished => ("the change was interrupted", true),
    };
    let mut journal = store.resume(&kept)?;
    let _ = journal.note_why(why);
    let report = if is_interrupted && kept.story.is_verified && kept.about.confirm_by.is_none() {
        // Only removals were left, and what they remove cannot be put back as it was.
        match recover(host, &mut journal, &kept.story) {
            Recovery::RolledBack(report) | Recovery::Finished(report) => report,
            Recovery::Nothing => return Err(Error::Nothing(NOTHING_TO_TAKE_BACK)),
        }
    } else {
        take_back(host, &mut journal, &kept.story)
    };
    keep(&mut journal, &report);
    Ok(Recovered {
        what: kept.about.what,
        report,
    })
}

const NOTHING_TO_TAKE_BACK: &str =
    "there is nothing to take back: no change was interrupted, and none waits to be confirmed";

/// Waits until the change of that id is confirmed or taken back, and takes it back at the time `by`.
///
/// This runs in a process of its own that outlives whoever asked for the change.
pub(crate) fn guard<H: Host>(
    open: &dyn Fn() -> Result<H, ibmgrd_engine::PortError>,
    store: &Store,
    lock: Option<&Path>,
    id: &str,
    by: Duration,
) -> Result<(), Error> {
    // Short naps: a change that was confirmed needs nobody to wait, and the clock is read anew.
    const NAP: Duration = Duration::from_secs(1);
    let mut was_seen = false;
    loop {
        if let Ok(Some(kept)) = store.read() {
            let is_it = kept.about.id == id;
            if is_it && (kept.is_confirmed || kept.story.is_rolled_back) || !is_it && was_seen {
                return Ok(());
            }
            was_seen |= is_it;
        }
        let left = by.saturating_sub(boottime());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(NAP));
    }
    let _lock = loop {
        // Another change that takes long does not excuse this one.
        match lock.map(ibmgrd_state::lock::hold).transpose() {
            Ok(lock) => break lock,
            Err(_) => std::thread::sleep(NAP),
        }
    };
    let Some(kept) = store.read()?.filter(|kept| kept.about.id == id) else {
        return Ok(());
    };
    if kept.is_confirmed || kept.story.is_rolled_back {
        return Ok(());
    }
    let mut journal = store.resume(&kept)?;
    let _ = journal.note_why(NOT_CONFIRMED);
    let report = take_back(&mut open()?, &mut journal, &kept.story);
    keep(&mut journal, &report);
    Ok(())
}

/// How things stand.
pub(crate) struct Status {
    /// One word.
    pub(crate) word: Word,
    /// The last change, if there was one since boot.
    pub(crate) kept: Option<Kept>,
}

/// How things stand, in one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    Idle,
    Applied,
    RolledBack,
    Pending(Duration),
    Overdue,
    Interrupted,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Applied => "applied",
            Self::RolledBack => "rolled-back",
            Self::Pending(_) => "pending",
            Self::Overdue => "overdue",
            Self::Interrupted => "interrupted",
        })
    }
}

/// Tells how things stand.
pub(crate) fn status(store: &Store) -> Result<Status, Error> {
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
    Ok(Status { word, kept })
}
