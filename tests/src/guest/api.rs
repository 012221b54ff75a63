// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a test is given: the machine, and ways to look at it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::netns::Netns;
use super::port::Port;
use super::process::{self, Output, Running};
use super::vhca::Vhca;
use super::{Result, fabric, modules};
use crate::wire::{Event, Figure, Job};

/// Time limit of a command for which none is given.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);

/// The machine, as a test sees it.
#[derive(Debug)]
pub struct Guest {
    port: Port,
    job: Job,
    args: BTreeMap<String, String>,
}

impl Guest {
    /// Wraps what the runner opened.
    #[must_use]
    pub fn new(port: Port, job: Job) -> Self {
        let pair = |word: &String| {
            word.split_once('=')
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        let args = job.args.iter().filter_map(pair).collect();
        Self { port, job, args }
    }

    /// Says whether the long form is wanted.
    #[must_use]
    pub fn long(&self) -> bool {
        self.job.long
    }

    /// Returns a measure's argument, parsed; `default` when it wasn't given.
    ///
    /// # Errors
    ///
    /// When it was given and isn't understood.
    pub fn arg<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.args.get(name) else {
            return Ok(default);
        };
        let Ok(value) = text.parse() else {
            bail!("argument {name}={text} is not understood")
        };
        Ok(value)
    }

    /// Runs a command line (words split at spaces, no quoting); it must succeed.
    /// Returns its standard output.
    ///
    /// # Errors
    ///
    /// When it fails or takes over 30 s, with all that it printed.
    pub fn run(&self, line: &str) -> Result<String> {
        self.attempt(line)?.success()
    }

    /// Runs a command line to its end, whatever its status.
    ///
    /// # Errors
    ///
    /// When it can't be started or takes over 30 s.
    pub fn attempt(&self, line: &str) -> Result<Output> {
        process::run(line, LIMIT)
    }

    /// Runs a command line with a time limit of its own.
    ///
    /// # Errors
    ///
    /// When it can't be started or isn't done after `limit`.
    pub fn attempt_for(&self, line: &str, limit: Duration) -> Result<Output> {
        process::run(line, limit)
    }

    /// Starts a command that goes on beside the test.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start(&self, line: &str) -> Result<Running> {
        process::start(line)
    }

    /// Makes a network namespace; it goes when the task ends.
    ///
    /// # Errors
    ///
    /// When the name is taken.
    pub fn netns(&self, name: &str) -> Result<Netns> {
        Netns::create(self, name)
    }

    /// Loads a module with what it needs: `load("ib_ipoib send_queue_size=64")`.
    ///
    /// # Errors
    ///
    /// When the kernel refuses it.
    pub fn load(&self, module_and_parameters: &str) -> Result {
        self.run(&format!("modprobe {module_and_parameters}"))
            .map(|_| ())
    }

    /// Unloads one module.
    ///
    /// # Errors
    ///
    /// When it is in use, or takes over 60 s.
    pub fn unload(&self, module: &str) -> Result {
        let limit = Duration::from_secs(60);
        self.attempt_for(&format!("rmmod {module}"), limit)?
            .success()
            .map(|_| ())
    }

    /// Says whether a module is loaded.
    ///
    /// # Errors
    ///
    /// When `/proc/modules` can't be read.
    pub fn is_loaded(&self, module: &str) -> Result<bool> {
        Ok(modules::loaded()?.iter().any(|known| known.name == module))
    }

    /// Starts `opensm` with the given partitions file.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start_opensm(&self, partitions: &str) -> Result {
        fabric::start_opensm(partitions)
    }

    /// Returns virtual HCA number `index`, counted from 0.
    #[must_use]
    pub fn vhca(&self, index: u32) -> Vhca {
        Vhca::new(index)
    }

    /// Reads a file of the kernel, without the newline at its end.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Writes a file of the kernel in one call.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> Result {
        let path = path.as_ref();
        fs::write(path, text).with_context(|| format!("writing {text:?} to {}", path.display()))
    }

    /// Waits until `check` returns something; `what` names it in the failure.
    ///
    /// # Errors
    ///
    /// When it hasn't after `limit`: with the last error of `check`, if it had one.
    pub fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut check: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = Instant::now() + limit;
        loop {
            let answer = check();
            if let Ok(Some(value)) = answer {
                return Ok(value);
            }
            if Instant::now() >= deadline {
                return match answer {
                    Err(error) => Err(error.context(format!("no {what} within {limit:?}"))),
                    Ok(_) => bail!("no {what} within {limit:?}"),
                };
            }
            thread::sleep(POLL);
        }
    }

    /// Fails unless both are equal; `what` says what they are.
    ///
    /// # Errors
    ///
    /// With both values, when they differ.
    pub fn same<T: Debug + PartialEq>(&self, what: &str, found: T, wanted: T) -> Result {
        ensure!(
            found == wanted,
            "{what}: found {found:?}, wanted {wanted:?}"
        );
        Ok(())
    }

    /// Fails unless `text` has `part` in it; `what` says what the text is.
    ///
    /// # Errors
    ///
    /// With the whole text, when it hasn't.
    pub fn contains(&self, what: &str, text: &str, part: &str) -> Result {
        ensure!(text.contains(part), "{what} has no {part:?} in it:\n{text}");
        Ok(())
    }

    /// Shows text to the person at the host.
    pub fn say(&self, text: impl Into<String>) {
        self.port.send(&Event::Say { text: text.into() });
    }

    /// Reports a figure.
    pub fn figure(&self, name: &str, value: f64, unit: &str) {
        self.port.send(&Event::Figure(Figure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        }));
    }

    /// Keeps a file's content with the run's logs, as `TASK/NAME`.
    pub fn keep(&self, name: &str, content: &[u8]) {
        self.port.send_file(name, content);
    }

    /// Tells the host that the task failed, and why.
    pub fn fail(&self, message: String) {
        self.port.send(&Event::Failure { message });
    }
}
