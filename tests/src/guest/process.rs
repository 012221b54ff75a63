// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands in the machine: their output kept, their failures told well.

use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::Result;

/// Real tools first; busybox has short-cut versions of some of them.
pub const PATH: &str = "/usr/sbin:/usr/bin:/usr/lib/busybox";

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// The command, as one would type it.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.line)?;
        f.write_str(&self.stdout)?;
        f.write_str(&self.stderr)?;
        if !self.status.success() {
            write!(f, "({})", self.status)?;
        }
        Ok(())
    }
}

impl Output {
    /// Returns standard output, or the failure with everything that was printed.
    ///
    /// # Errors
    ///
    /// When the command's status wasn't 0.
    pub fn success(self) -> Result<String> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        bail!("a command failed:\n{self}")
    }

    /// Returns what was printed, or a failure when the command succeeded though it must not.
    ///
    /// # Errors
    ///
    /// When the command's status was 0.
    pub fn refused(self) -> Result<String> {
        if self.status.success() {
            bail!("a command succeeded that must be refused:\n{self}");
        }
        Ok(self.stdout + &self.stderr)
    }
}

/// Makes a command from a line; words are separated by spaces, no quoting.
#[must_use]
pub fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("true"));
    command
        .args(words)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/root");
    command
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "vt100")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
///
/// # Errors
///
/// When it can't be started, or isn't done after `limit` (it is killed then).
pub fn run(line: &str, limit: Duration) -> Result<Output> {
    finish(start(line)?, limit)
}

/// A command that goes on beside the test. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    line: String,
    child: Child,
    files: [PathBuf; 2],
}

/// Starts a command; its output goes to files, so that it never waits for a reader.
///
/// # Errors
///
/// When it can't be started.
pub fn start(line: &str) -> Result<Running> {
    let (out, err) = (scratch(), scratch());
    let mut command = command(line);
    command
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let child = command
        .spawn()
        .with_context(|| format!("can't run: {line}"))?;
    Ok(Running {
        line: line.to_owned(),
        child,
        files: [out, err],
    })
}

fn scratch() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("lab-{}-{number}", std::process::id()))
}

impl Running {
    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says whether it still runs.
    ///
    /// # Errors
    ///
    /// When the process can't be asked for.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Returns what it has printed so far, both streams.
    #[must_use]
    pub fn printed(&self) -> String {
        let read = |path: &PathBuf| fs::read(path).unwrap_or_default();
        let bytes = [read(&self.files[0]), read(&self.files[1])].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for path in &self.files {
            let _ = fs::remove_file(path);
        }
    }
}

/// Waits for a command's end.
///
/// # Errors
///
/// When it isn't done after `limit`; it is killed then.
pub fn finish(mut running: Running, limit: Duration) -> Result<Output> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = running.child.try_wait()? {
            let read = |path: &PathBuf| {
                fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let (stdout, stderr) = (read(&running.files[0])?, read(&running.files[1])?);
            return Ok(Output {
                line: running.line.clone(),
                status,
                stdout,
                stderr,
            });
        }
        if Instant::now() >= deadline {
            let printed = running.printed();
            bail!(
                "not done after {limit:?}, killed: {}\n{printed}",
                running.line
            );
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn output_and_status_are_kept() {
        let output = run("ls /no-such-folder", LIMIT).unwrap();
        assert!(output.stdout.is_empty() && output.stderr.contains("no-such-folder"));
        let text = output.clone().success().unwrap_err().to_string();
        assert!(
            text.contains("$ ls /no-such-folder") && text.contains("exit status"),
            "{text}"
        );
        assert!(output.refused().is_ok());
        assert_eq!(run("echo a  b", LIMIT).unwrap().success().unwrap(), "a b\n");
        assert!(run("true", LIMIT).unwrap().refused().is_err());
    }

    #[test]
    fn a_slow_command_is_killed() {
        let error = run("sleep 30", Duration::from_millis(50))
            .unwrap_err()
            .to_string();
        assert!(error.contains("killed: sleep 30"), "{error}");
    }
}
