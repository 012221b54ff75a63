// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `cargo lab demo` and `cargo lab shell` run in the machine.

use std::process::Command;

use super::super::{Fabric, Guest, Result, Task};

/// The demo and the shell.
pub const TASKS: &[Task] = &[
    Task::new("demo", "two HCAs, two namespaces, ib0 and ib1", demo),
    Task::new("shell", "an interactive shell", shell).fabric(Fabric::Managed, 2),
];

fn demo(guest: &mut Guest) -> Result {
    guest.say(guest.attempt("ip -br link")?.to_string());
    Ok(())
}

fn shell(guest: &mut Guest) -> Result {
    let mut command = Command::new("/usr/bin/bash");
    let status = command
        .args(["--norc", "-i"])
        .env("PS1", "lab:\\w# ")
        .status()?;
    guest.say(format!("shell ended: {status}"));
    Ok(())
}
