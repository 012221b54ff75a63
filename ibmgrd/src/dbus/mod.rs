// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `org.ibmgr1` on the system bus: one object for the host and one for each interface.
//!
//! Everything is asked of the office, which knows nothing of D-Bus. Who may do what is polkit's to say.

mod access;
mod error;
mod follow;
mod link;
mod manager;
#[cfg(test)]
mod reference;
mod values;

use std::time::Duration;

use nix::unistd::{getegid, geteuid};
use tokio::sync::watch;
use zbus::Connection;
use zbus::connection::Builder;

use crate::office::{Caller, Grants, Office, Surface};
use follow::Follower;
use manager::Manager;

/// The name on the bus.
pub const NAME: &str = "org.ibmgr1";
/// Waits between two tries to reach the bus: from the first to the second, doubling.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Returns the daemon as its own caller: for what it tells without being asked.
fn own() -> Caller {
    Caller {
        surface: Surface::Bus,
        uid: Some(geteuid().as_raw()),
        gid: Some(getegid().as_raw()),
        pid: Some(std::process::id()),
        name: None,
        grants: Grants::observer(),
        needs: String::new(),
    }
}

/// Answers on the system bus until `stopped` says so. A bus that is away, or goes away, is waited for.
pub(crate) async fn serve(office: Office, mut stopped: watch::Receiver<bool>) {
    let mut wait = AGAIN.0;
    loop {
        tokio::select! {
            why = answer(&office, &mut wait) => {
                let (error, seconds) = (why, wait.as_secs());
                tracing::warn!(error, seconds, "not on the system bus; it is tried again");
            }
            // An error says that the loop is gone, which is an end, too.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        wait = (wait * 2).min(AGAIN.1);
    }
}

/// Answers on the bus, and returns why that came to an end.
async fn answer(office: &Office, wait: &mut Duration) -> String {
    let begin = async {
        // Before the objects are made: what comes meanwhile is not lost.
        let mut follower = Follower::new(office).map_err(|failure| failure.to_string())?;
        let bus = connect(office).await.map_err(|error| error.to_string())?;
        follower
            .list(&bus)
            .await
            .map_err(|refusal| format!("{refusal:?}"))?;
        bus.request_name(NAME)
            .await
            .map_err(|error| format!("the name {NAME} can't be had: {error}"))?;
        Ok((follower, bus))
    };
    let (mut follower, bus) = match begin.await {
        Ok(begun) => begun,
        Err(why) => return why,
    };
    *wait = AGAIN.0;
    tracing::info!(name = NAME, "on the system bus");
    tokio::select! {
        error = follower.follow(&bus) => format!("{error:?}"),
        () = bus.closed() => "the bus went away".to_owned(),
    }
}

async fn connect(office: &Office) -> zbus::Result<Connection> {
    let manager = Manager {
        office: office.clone(),
    };
    Builder::system()
        .serve_at(manager::PATH, manager)
        .build()
        .await
}
