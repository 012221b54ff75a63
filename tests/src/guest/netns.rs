// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network namespaces: one for each side of a conversation.

use std::fs::File;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sched::{CloneFlags, setns};

use super::process::{self, Output, Running};
use super::{Guest, Result};

/// Time limit of a command for which none is given.
const LIMIT: Duration = Duration::from_secs(30);

/// A named network namespace of the machine; it goes when the task ends.
#[derive(Clone, Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes a namespace with `lo` up.
    ///
    /// # Errors
    ///
    /// When the name is taken.
    pub fn create(guest: &Guest, name: &str) -> Result<Self> {
        guest.run(&format!("ip netns add {name}"))?;
        let made = Self {
            name: name.to_owned(),
        };
        made.run("ip link set lo up")?;
        Ok(made)
    }

    /// Returns its name, for `ip -n NAME` and `ip link set … netns NAME`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command inside; it must succeed. Returns its standard output.
    ///
    /// # Errors
    ///
    /// When it fails, with all that it printed.
    pub fn run(&self, line: &str) -> Result<String> {
        self.attempt(line, LIMIT)?.success()
    }

    /// Runs a command inside to its end, whatever its status.
    ///
    /// # Errors
    ///
    /// When it can't be started or isn't done after `limit`.
    pub fn attempt(&self, line: &str, limit: Duration) -> Result<Output> {
        process::run(&self.inside(line), limit)
    }

    /// Starts a command inside that goes on beside the test.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start(&self, line: &str) -> Result<Running> {
        process::start(&self.inside(line))
    }

    /// Runs code inside, in a thread of its own; sockets that it makes stay inside.
    ///
    /// # Errors
    ///
    /// When the namespace can't be entered.
    pub fn enter<T: Send>(&self, body: impl FnOnce() -> T + Send) -> Result<T> {
        let file = File::open(format!("/run/netns/{}", self.name))
            .with_context(|| format!("opening network namespace {}", self.name))?;
        let joined = thread::scope(|scope| {
            scope
                .spawn(|| setns(&file, CloneFlags::CLONE_NEWNET).map(|()| body()))
                .join()
        });
        match joined {
            Ok(result) => Ok(result?),
            Err(_) => bail!("code in network namespace {} panicked", self.name),
        }
    }

    fn inside(&self, line: &str) -> String {
        format!("ip netns exec {} {line}", self.name)
    }
}
