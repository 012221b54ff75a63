// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `apply`, and the process that takes an unconfirmed one back, where no daemon does it.

use std::path::Path;
use std::time::Duration;

use ibmgr_api::Desired;
use ibmgrd_engine::{Host, PortError, plan_declared};
use ibmgrd_state::change::{self, Applied, Ended, Guard};
use ibmgrd_state::{Standing, Store, boottime};

use crate::error::Error;

/// Applies a declaration, after what an interrupted change left was brought to an end.
pub(crate) fn apply<H: Host>(
    host: &mut H,
    store: &Store,
    desired: &Desired,
    what: &str,
    confirm: Option<(Duration, Guard<'_>)>,
) -> Result<(Applied, Option<Ended>), Error> {
    let ended = change::clear_the_way(host, store)?;
    let (_, plan) = plan_declared(host, desired)?;
    let confirm = confirm.map(|(within, guard)| (within, Some(guard)));
    Ok((change::apply(host, store, &plan, what, confirm)?, ended))
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
