// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `cargo lab demo` and `cargo lab shell`.

use std::time::Instant;

use anyhow::{Context, Result};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};

use super::host;
use super::machine::Shape;
use super::place::RunDir;
use super::progress::{say, seconds};
use super::report::line;
use super::session::{Session, Wish, build_program};
use crate::guest::{Kernel, tests};
use crate::wire::Job;

/// Shows `ibctl` on a real ib0. Returns whether everything went as it should.
///
/// # Errors
///
/// When the lab can't be set up.
pub fn run() -> Result<bool> {
    let started = Instant::now();
    host::check_powers()?;
    let run_dir = RunDir::create()?;
    let mut session = ready(&run_dir)?;
    let task = tests::find("demo").context("the demo is missing from the tables")?;
    let mut failures = Vec::new();
    session.run_tasks(
        &[task],
        &Wish {
            narrate: true,
            ..Wish::default()
        },
        &mut |outcome| failures = outcome.failures,
    )?;
    for failure in &failures {
        line(&format!("FAILED: {failure}"));
    }
    let took = seconds(started.elapsed());
    if failures.is_empty() {
        line(&format!(
            "\nDemo complete in {took}: everything above ran on real IPoIB interfaces."
        ));
    } else {
        line(&format!(
            "\nDemo failed after {took}; logs in {}",
            run_dir.path().display()
        ));
    }
    Ok(failures.is_empty())
}

/// Opens a shell in a machine with the fabric up.
///
/// # Errors
///
/// When the lab can't be set up.
pub fn shell() -> Result<bool> {
    host::check_powers()?;
    let run_dir = RunDir::create()?;
    let mut session = ready(&run_dir)?;
    let job = Job {
        tasks: vec!["shell".to_owned()],
        interactive: true,
        ..Job::default()
    };
    say("==> booting a machine; leave its shell with exit, or end it with Ctrl-A X");
    // QEMU switches the terminal to raw mode and can be killed before it switches back.
    let terminal = std::io::stdin();
    let before = tcgetattr(&terminal).ok();
    let mut machine = session.boot(Kernel::Trixie, Shape::USUAL, &job)?;
    let waited = machine.wait();
    if let Some(settings) = before {
        let _ = tcsetattr(&terminal, SetArg::TCSANOW, &settings);
    }
    waited.context("can't wait for QEMU")?;
    Ok(true)
}

fn ready(run_dir: &RunDir) -> Result<Session> {
    let mut session = Session::prepare(run_dir.path())?;
    session.add_program(build_program("ibctl", false)?, "/usr/bin/ibctl");
    Ok(session)
}
