// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entry of `ibctl`: the kernel of this network namespace, standard output and standard error.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use ibctl::Environment;
use ibmgrd_engine::PortError;
use ibmgrd_hw::port::KernelPort;
use ibmgrd_state::{ROOT, Store};

/// One for all network namespaces: a set takes milliseconds.
const LOCK: &str = "/run/ibmgr/lock";

/// Where the daemon listens unless it was told otherwise.
const SOCKET: &str = "/run/ibmgr/http.sock";

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let environment = Environment {
        open: &|| Ok::<_, PortError>(KernelPort::new()),
        lock: Some(Path::new(LOCK)),
        namespace: &KernelPort::namespace_cookie,
        store: &|namespace| Store::new(Path::new(ROOT), namespace),
        socket: Some(Path::new(SOCKET)),
        guard: &guard,
        stdout: &mut BufWriter::with_capacity(32 * 1024, io::stdout().lock()),
        stderr: &mut io::stderr().lock(),
    };
    ExitCode::from(ibctl::run(&args, environment))
}

/// Starts this program once more, for the time after its end, and waits until that one waits.
///
/// Where systemd runs, in a scope of its own: what is left in the scope of a session ends with it when
/// logind is told to (KillUserProcesses=, logind.conf(5)).
fn guard(id: &str, by: Duration) -> io::Result<()> {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX).to_string();
    let program = std::env::current_exe()?;
    let args = ["await-confirmation", id, &by];
    if Path::new(SYSTEMD).is_dir() {
        let mut command = Command::new("systemd-run");
        command.args(["--scope", "--quiet", "--collect", "--no-ask-password", "--"]);
        command.arg(&program).args(args);
        // One that cannot be had, as in a container, is no reason to take no guard.
        if wait_for(command).is_ok() {
            return Ok(());
        }
    }
    let mut command = Command::new(&program);
    command.args(args);
    wait_for(command)
}

/// Where systemd is, while it runs (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// Starts the process, and returns when it says that it waits.
fn wait_for(mut command: Command) -> io::Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim() == "waiting" {
        return Ok(());
    }
    let status = child.wait()?;
    Err(io::Error::other(format!("it ended with {status}")))
}
