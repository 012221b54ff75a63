// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs programs inside a root, leaving no trace of it.
//!
//! Each program gets its own mount and process namespaces. Mounts vanish with
//! the last process; the processes are killed when `lab` ends, however it ends.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Search path for the tools that enter a root, and for those inside.
const TOOL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Mounts, then becomes the wanted program.
/// Arguments: root, number of binds, then source and name of each bind, then the program.
const ENTER: &str = r#"
root=$1 binds=$2; shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
for place in tmp run mnt; do mount -t tmpfs tmpfs "$root/$place"; done
while [ "$binds" -gt 0 ]; do
    mkdir "$root/mnt/$2"
    mount --bind "$1" "$root/mnt/$2"
    shift 2; binds=$((binds - 1))
done
exec chroot "$root" "$@"
"#;

/// A root that programs can be run in. The root itself is read-only to them.
#[derive(Clone, Debug)]
pub struct Chroot {
    root: PathBuf,
    binds: Vec<(PathBuf, String)>,
}

impl Chroot {
    /// Uses the root at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            binds: Vec::new(),
        }
    }

    /// Shows the host's folder `source`, writable, as `/mnt/NAME` inside.
    #[must_use]
    pub fn bind(mut self, source: &Path, name: &str) -> Self {
        self.binds.push((source.to_owned(), name.to_owned()));
        self
    }

    /// Returns the command that runs `program` inside; arguments may follow.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = isolated("sh");
        command.args(["-euc", ENTER, "lab-enter"]).arg(&self.root);
        command.arg(self.binds.len().to_string());
        for (source, name) in &self.binds {
            command.arg(source).arg(name);
        }
        command.arg(program);
        command
    }

    /// Runs a shell script inside and returns what it printed.
    ///
    /// # Errors
    ///
    /// When it can't be run or fails; the error carries the end of its output.
    pub fn script(&self, script: &str, args: &[&str]) -> Result<String> {
        let mut command = self.command("/bin/sh");
        command.args(["-euc", script, "lab-script"]).args(args);
        run(command, "a script in the lab's root")
    }
}

/// Returns a command for a host program in its own mount and process namespaces,
/// killed with all its children when `lab` ends.
#[must_use]
pub fn isolated(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        "--",
        "unshare",
        "--mount",
        "--propagation",
        "private",
    ]);
    command.args([
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
        "--",
        program,
    ]);
    command
        .env_clear()
        .env("PATH", TOOL_PATH)
        .env("HOME", "/root")
        .env("LC_ALL", "C.UTF-8");
    // The ways to reach the network belong to the host; keep them.
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        if text.ends_with("_proxy") {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command and returns its standard output.
///
/// # Errors
///
/// When it can't be run or fails; the error carries the end of its output.
pub fn run(mut command: Command, what: &str) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("can't run {what}"))?;
    check(&output, what)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn check(output: &Output, what: &str) -> Result<()> {
    if !output.status.success() {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        bail!(
            "{what} failed ({}):\n{}",
            output.status,
            tail(&String::from_utf8_lossy(&text), 40)
        );
    }
    Ok(())
}

/// Returns the last `count` lines of a text.
#[must_use]
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .get(lines.len().saturating_sub(count)..)
        .unwrap_or_default()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_takes_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }

    #[test]
    fn isolated_programs_see_only_themselves() {
        let mut command = isolated("sh");
        command.args(["-c", "echo $$; ls -d /proc/[0-9]* | wc -l"]);
        let text = run(command, "sh").unwrap();
        let numbers: Vec<u32> = text
            .lines()
            .map(|line| line.trim().parse().unwrap())
            .collect();
        assert_eq!(
            numbers.first(),
            Some(&1),
            "sh is process 1 of its namespace"
        );
        assert!(numbers.get(1).is_some_and(|count| *count <= 4), "{text}");
    }
}
