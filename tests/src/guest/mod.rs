// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Guest side: the machine's `/init`, the runner, and what tests are made of.

pub mod api;
pub mod dmesg;
pub mod fabric;
pub mod init;
pub mod ipoib;
pub mod measures;
pub mod memory;
pub mod modules;
pub mod netns;
pub mod numbered;
pub mod port;
pub mod process;
pub mod runner;
pub mod shown;
pub mod tap;
pub mod task;
pub mod teardown;
pub mod tests;
pub mod traffic;
pub mod umad;
pub mod vhca;

use std::path::Path;
use std::process::ExitCode;

pub use api::Guest;
pub use task::{Fabric, Kernel, Task};

use crate::wire::JOB_PATH;

/// What a test returns: an error is a failure, its chain of causes the message.
pub type Result<T = ()> = anyhow::Result<T>;

/// First argument of the process that runs one task.
const TASK_ARGUMENT: &str = "run-task";

/// Says whether this process runs inside a machine of the lab.
///
/// The host's `lab` can be process 1 too (in a container), so the job file decides.
#[must_use]
pub fn is_guest() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|name| name == "/init")
        && Path::new(JOB_PATH).exists()
}

/// Runs as `/init`, or as the process of one task.
#[must_use]
pub fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match (std::process::id(), args.next().as_deref(), args.next()) {
        (1, _, _) => init::main(),
        (_, Some(TASK_ARGUMENT), Some(name)) => runner::run_task(&name),
        _ => ExitCode::FAILURE,
    }
}
