// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `apply`, and the process that takes an unconfirmed one back, where no daemon does it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ibmgr_api::Failure;
use ibmgr_api::form::{ChangeForm, PlanForm};
use ibmgrd_engine::{Host, PortError, plan_declared};
use ibmgrd_state::change::{self, Ended, whole_seconds};
use ibmgrd_state::{Standing, Store, boottime};

use crate::cli::{At, Format};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::plan::{self, Declarations, load};
use crate::{Kernel, host, write_json};

/// Applies the declarations of files, and prints how it went.
pub(crate) fn run<P: Host>(
    kernel: &Kernel<'_, P>,
    files: &[PathBuf],
    confirm_within: Option<Duration>,
    at: &At,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let declarations = load(files)?;
    let done = match kernel.daemon(at)? {
        Some(daemon) => by_daemon(&daemon, declarations, confirm_within)?,
        None => directly(kernel, files, &declarations, confirm_within)?,
    };
    if let Some(plan) = &done.refused {
        match format {
            Format::Json => write_json(out, plan)?,
            Format::Table => plan::table(plan, out)?,
        }
    }
    let printed = match &done.change {
        Some(change) => host::print_applied(change, format, out),
        None => Ok(()),
    };
    // What went wrong with the interfaces weighs more than an output that broke.
    done.failure.map_or(printed, |failure| Err(failure.into()))
}

/// How an apply went.
struct Done {
    change: Option<ChangeForm>,
    /// The plan, when something of it cannot be done.
    refused: Option<PlanForm>,
    failure: Option<Failure>,
}

fn by_daemon(
    daemon: &Daemon,
    declarations: Declarations,
    confirm_within: Option<Duration>,
) -> Result<Done, Error> {
    Ok(match daemon.apply(declarations.sources, confirm_within)? {
        Ok(change) => Done {
            change: Some(change),
            refused: None,
            failure: None,
        },
        Err(problem) => Done {
            change: problem.change,
            refused: problem.plan,
            failure: Some(problem.failure),
        },
    })
}

fn directly<P: Host>(
    kernel: &Kernel<'_, P>,
    files: &[PathBuf],
    declarations: &Declarations,
    confirm_within: Option<Duration>,
) -> Result<Done, Error> {
    let _turn = kernel.turn()?;
    let (mut port, store) = kernel.open()?;
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let ended = change::clear_the_way(&mut port, &store)?;
    let (wants, plan) = plan_declared(&mut port, &declarations.loaded.desired)?;
    if !plan.refused.is_empty() {
        let plan = PlanForm::new(&plan, &wants, Vec::new());
        return Ok(Done {
            change: None,
            failure: plan.failure(),
            refused: Some(plan),
        });
    }
    let confirm = confirm_within.map(|within| (within, Some(kernel.guard)));
    let applied = change::apply(&mut port, &store, &plan, &names.join(" "), confirm)?;
    Ok(Done {
        failure: applied.report.failure(),
        refused: None,
        change: Some(ChangeForm {
            report: (&applied.report).into(),
            confirm_within_seconds: applied.confirm_within.map(whole_seconds),
            interrupted: ended.as_ref().map(Ended::form),
        }),
    })
}

/// Waits until the change of that id is confirmed or taken back, and takes it back at the time `by`.
///
/// This runs in a process of its own that outlives whoever asked for the change.
pub(crate) fn guard<H: Host>(
    open: &dyn Fn() -> Result<H, PortError>,
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
    let kept = store.read()?.filter(|kept| kept.about.id == id);
    // The clock was read: by now it is overdue, or somebody has ended it.
    if kept.is_some_and(|kept| kept.standing(boottime()) != Standing::Closed) {
        change::settle(&mut open()?, store)?;
    }
    Ok(())
}
