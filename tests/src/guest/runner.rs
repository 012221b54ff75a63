// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process of one task: brings the fabric up, runs the body, tells why it failed.

use std::panic;
use std::process::ExitCode;

use super::api::Guest;
use super::port::{self, Port};
use super::{Result, Task, fabric, tests};
use crate::wire::Event;

/// Runs the task called `name`; status 0 says that it passed.
#[must_use]
pub fn run_task(name: &str) -> ExitCode {
    let (Ok(port), Ok(job)) = (Port::open(), port::read_job()) else {
        return ExitCode::FAILURE;
    };
    let guest = Guest::new(port, job);
    let Some(task) = tests::find(name) else {
        guest.fail(format!("the guest knows no task {name}"));
        return ExitCode::FAILURE;
    };
    let told = Port::open();
    panic::set_hook(Box::new(move |info| {
        if let Ok(port) = &told {
            port.send(&Event::Failure {
                message: format!("the test panicked: {info}"),
            });
        }
    }));
    body(task, guest)
}

fn body(task: &Task, mut guest: Guest) -> ExitCode {
    let result: Result = fabric::start(&guest, task.fabric, task.hcas)
        .map_err(|error| error.context("the fabric doesn't come up"))
        .and_then(|()| (task.run)(&mut guest));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            guest.fail(format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
