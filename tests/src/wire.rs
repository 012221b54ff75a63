// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host and the guest tell each other.
//!
//! The host puts one [`Job`] as a file into the guest's initramfs. The guest
//! answers with [`Event`]s, one JSON object per line, on its second serial port.

use serde::{Deserialize, Serialize};

/// Path of the job file inside the guest.
pub const JOB_PATH: &str = "/lab/job.json";

/// Device in the guest that carries events to the host.
pub const EVENT_PORT: &str = "/dev/ttyS1";

/// What one virtual machine is booted for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Job {
    /// Names of the tasks (tests, measures, `demo`) to run, in order.
    pub tasks: Vec<String>,
    /// Long forms are wanted.
    pub long: bool,
    /// Arguments for measuring tasks, `name=value` each.
    pub args: Vec<String>,
    /// A person sits at the console: no time limit, and the task owns it.
    pub interactive: bool,
}

/// One figure that a test or a measure took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Figure {
    /// Dotted name, e.g. `stock.doorbells_per_packet`.
    pub name: String,
    /// The value, in `unit`.
    pub value: f64,
    /// Unit as printed, e.g. `s`, `Mbit/s`, or `1` for a plain ratio.
    pub unit: String,
}

/// One message from the guest.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The guest is up.
    Boot {
        /// Kernel release, as `uname -r` prints it.
        kernel: String,
        /// Seconds since the kernel started.
        uptime: f64,
    },
    /// A task begins.
    Start {
        /// Its name.
        task: String,
    },
    /// Text for the person at the host.
    Say {
        /// One or more lines.
        text: String,
    },
    /// A figure.
    Figure(Figure),
    /// A piece of a file to keep with the run's logs.
    Artefact {
        /// File name.
        name: String,
        /// Base64 of this piece; pieces come in order.
        data: String,
    },
    /// Why the running task failed. May come more than once.
    Failure {
        /// The reason, whole.
        message: String,
    },
    /// A task ended.
    End {
        /// Its name.
        task: String,
        /// Without any failure.
        passed: bool,
        /// Run time, teardown excluded.
        seconds: f64,
        /// The kernel can't be trusted any more; the guest stops here.
        dirty: bool,
    },
    /// Nothing is left to do; the guest powers off.
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_line() {
        let event = Event::Figure(Figure {
            name: "lab.x".into(),
            value: 0.5,
            unit: "s".into(),
        });
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn text_with_newlines_stays_on_one_line() {
        let event = Event::Say {
            text: "a\nb\r\n".into(),
        };
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n') && !line.contains('\r'));
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
