// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibmgrd` on IPoIB interfaces, with `ip`, `ethtool` and sysfs as those who interfere.

mod clock;
mod life;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use ibmgr_api::status::Status;

use crate::guest::process::Running;
use crate::guest::task::Task;
use crate::guest::{Guest, Result};

/// All tests of the daemon.
pub const TABLES: &[&[Task]] = &[life::TESTS, clock::TESTS];

/// How long the daemon may take for anything; the emulated machine is slow.
const LIMIT: Duration = Duration::from_secs(20);

/// A daemon with the usual paths.
struct Daemon {
    process: Running,
}

impl Daemon {
    /// Starts it with one file of declarations, and waits until it answers.
    fn start(guest: &Guest, toml: &str) -> Result<Self> {
        std::fs::create_dir_all("/etc/ibmgr/conf.d")?;
        std::fs::write("/etc/ibmgr/conf.d/10-lab.toml", toml)?;
        let process = guest.start("ibmgrd --poll 1")?;
        let daemon = Self { process };
        guest.wait_for("the daemon", LIMIT, || daemon.status().map(Some))?;
        Ok(daemon)
    }

    fn status(&self) -> Result<Status> {
        let mut stream = UnixStream::connect("/run/ibmgr/http.sock")?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").context("no body")?.1;
        serde_json::from_str(body).with_context(|| answer.clone())
    }

    /// Waits until a number of interfaces are managed and everything is as declared.
    fn wait_ok(&self, guest: &Guest, links: usize) -> Result {
        let waited = guest.wait_for("all to be as declared", LIMIT, || {
            let status = self.status()?;
            let bad: Vec<_> = status.links.iter().filter(|link| !link.ok).collect();
            ensure!(
                bad.is_empty() && status.links.len() == links,
                "{} interfaces, not as declared: {bad:#?}",
                status.links.len()
            );
            Ok(Some(()))
        });
        waited.with_context(|| self.process.printed())
    }

    /// Waits for a line of the log that has all of these.
    fn wait_log(&self, guest: &Guest, parts: &[&str]) -> Result {
        guest.wait_for(&format!("a line with {parts:?}"), LIMIT, || {
            let log = self.process.printed();
            let has_all = |line: &str| parts.iter().all(|part| line.contains(part));
            ensure!(log.lines().any(has_all), "{log}");
            Ok(Some(()))
        })
    }
}
