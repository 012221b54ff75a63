// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A task: a test, a measure or the demo, as data.

use std::fmt;
use std::time::Duration;

use super::{Guest, Result};
use crate::lab::machine::Shape;

/// Which kernel a task boots.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kernel {
    /// Debian 13's.
    Trixie,
    /// Debian unstable's.
    Sid,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trixie => "Debian 13",
            Self::Sid => "Debian sid",
        })
    }
}

/// What is up before a task begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fabric {
    /// Nothing: no InfiniBand module is loaded.
    None,
    /// Virtual HCAs whose module brings the ports up and answers the SA itself.
    Managed,
    /// Virtual HCAs behind a switch, managed by `opensm`.
    OpenSm,
}

/// A line of the kernel log that a task is known to cause, and why that is no failure.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Text that the line contains.
    pub text: &'static str,
    /// Whose defect it is, and where that is written down.
    pub because: &'static str,
}

/// One thing to run in a machine.
#[derive(Debug)]
pub struct Task {
    /// Dotted name: area, then what holds, e.g. `stock.datagram_ping`.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Time limit of `run`.
    pub timeout: Duration,
    /// Time limit of the long form; none when there is no long form.
    pub long_timeout: Option<Duration>,
    /// It is run by `--long` or by its full name only.
    pub long_only: bool,
    /// Kernel that it boots.
    pub kernel: Kernel,
    /// Machine that it boots.
    pub shape: Shape,
    /// What is up when `run` begins.
    pub fabric: Fabric,
    /// Virtual HCAs of the fabric.
    pub hcas: u32,
    /// Lines of the kernel log that are no failure here.
    pub allowed: &'static [Allowed],
    /// The task is there to fail, with this text in its failure; it passes when it does.
    pub must_fail: Option<&'static str>,
    /// The body.
    pub run: fn(&mut Guest) -> Result,
}

impl Task {
    /// A task with the usual settings: a minute, Debian 13's kernel, no fabric.
    /// A table adds what differs: `Task::new("stock.x", "…", x).fabric(Fabric::OpenSm, 2)`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&mut Guest) -> Result,
    ) -> Self {
        Self {
            name,
            about,
            timeout: Duration::from_secs(60),
            long_timeout: None,
            long_only: false,
            kernel: Kernel::Trixie,
            shape: Shape::USUAL,
            fabric: Fabric::None,
            hcas: 2,
            allowed: &[],
            must_fail: None,
            run,
        }
    }

    /// Gives `run` another time limit, in seconds.
    #[must_use]
    pub const fn limit(mut self, seconds: u64) -> Self {
        self.timeout = Duration::from_secs(seconds);
        self
    }

    /// Gives it a long form, with a time limit in seconds.
    #[must_use]
    pub const fn long_limit(mut self, seconds: u64) -> Self {
        self.long_timeout = Some(Duration::from_secs(seconds));
        self
    }

    /// Leaves it to `--long`, or to who names it in full, if `yes`.
    #[must_use]
    pub const fn long_only(mut self, yes: bool) -> Self {
        self.long_only = yes;
        self
    }

    /// Wants a fabric with that many virtual HCAs.
    #[must_use]
    pub const fn fabric(mut self, fabric: Fabric, hcas: u32) -> Self {
        self.fabric = fabric;
        self.hcas = hcas;
        self
    }

    /// Boots another kernel.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Boots another machine.
    #[must_use]
    pub const fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Explains lines of the kernel log that the task is known to cause.
    #[must_use]
    pub const fn allow(mut self, allowed: &'static [Allowed]) -> Self {
        self.allowed = allowed;
        self
    }

    /// Is there to fail, with `text` in its failure.
    #[must_use]
    pub const fn must_fail(mut self, text: &'static str) -> Self {
        self.must_fail = Some(text);
        self
    }

    /// Returns the time limit of the wanted form.
    #[must_use]
    pub fn time_limit(&self, long: bool) -> Duration {
        if long {
            self.long_timeout.unwrap_or(self.timeout)
        } else {
            self.timeout
        }
    }
}
