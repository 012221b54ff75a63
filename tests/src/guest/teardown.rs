// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Brings the machine back to what it was before a task.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::modules::{self, unload_order};
use super::process;

/// How long one module may take to be unloaded.
const UNLOAD_LIMIT: Duration = Duration::from_secs(40);

/// How long killed processes may take to vanish.
const KILL_LIMIT: Duration = Duration::from_secs(15);

/// Modules that go first, while a subnet manager still runs: with the SM gone
/// each multicast leave of theirs waits for its timeout.
const FIRST: &[&str] = &["ib_ipoib", "ipoib_batch"];

/// The subnet manager's process name.
const OPENSM: &str = "opensm";

/// Kills what a task left, removes its namespaces and unloads its modules
/// down to `baseline`. Returns what didn't work; then the machine is spoilt.
pub fn tear_down(baseline: &[String]) -> Vec<String> {
    let mut failures = Vec::new();
    kill_processes(&|name| name != OPENSM, &mut failures);
    remove_namespaces(&mut failures);
    unload(&|name| FIRST.contains(&name), &mut failures);
    kill_processes(&|_| true, &mut failures);
    unload(
        &|name| !baseline.iter().any(|kept| kept == name),
        &mut failures,
    );
    for left in modules::loaded().unwrap_or_default() {
        if !baseline.contains(&left.name) {
            failures.push(format!(
                "module {} can't be unloaded: {} references, used by [{}]",
                left.name,
                left.references,
                left.users.join(", ")
            ));
        }
    }
    failures
}

/// Kills every process but ourselves whose name is wanted, and waits for their end.
fn kill_processes(wanted: &dyn Fn(&str) -> bool, failures: &mut Vec<String>) {
    let deadline = Instant::now() + KILL_LIMIT;
    loop {
        let victims: Vec<(i32, String)> = processes()
            .into_iter()
            .filter(|(_, name)| wanted(name))
            .collect();
        if victims.is_empty() {
            return;
        }
        for (id, _) in &victims {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
        }
        reap();
        if Instant::now() > deadline {
            let names: Vec<String> = victims
                .iter()
                .map(|(id, name)| format!("{name} ({id})"))
                .collect();
            failures.push(format!("processes don't die: {}", names.join(", ")));
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Lists processes of user space, ourselves left out.
fn processes() -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| *id > 1)
        .filter_map(|id: i32| Some((id, user_process(id)?)))
        .collect()
}

/// Returns the name of a process, unless it is the kernel's own.
fn user_process(id: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    let parent = rest.split_whitespace().nth(1)?;
    // 2 is kthreadd, the parent of all kernel threads.
    if id == 2 || parent == "2" {
        return None;
    }
    Some(head.split_once('(')?.1.to_owned())
}

/// Collects ended children; process 1 inherits every orphan. Returns their ids and statuses.
pub fn reap() -> Vec<WaitStatus> {
    let mut ended = Vec::new();
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return ended,
            Ok(status) => ended.push(status),
            Err(Errno::EINTR) => {}
            Err(_) => return ended,
        }
    }
}

/// Removes the named network namespaces; their devices come back or go.
fn remove_namespaces(failures: &mut Vec<String>) {
    let dir = Path::new("/run/netns");
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // A name that was never mounted is only a file.
        let _ = umount2(&path, MntFlags::MNT_DETACH);
        if let Err(error) = fs::remove_file(&path) {
            failures.push(format!("can't remove {}: {error}", path.display()));
        }
    }
}

/// Unloads the wanted modules that are loaded, users before what they use.
fn unload(wanted: &dyn Fn(&str) -> bool, failures: &mut Vec<String>) {
    let Ok(loaded) = modules::loaded() else {
        return;
    };
    let names: Vec<String> = unload_order(&loaded)
        .into_iter()
        .filter(|name| wanted(name))
        .collect();
    for name in names {
        // A namespace's end goes on in the background and may hold a reference a while.
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            match process::run(&format!("rmmod {name}"), UNLOAD_LIMIT) {
                Ok(output) if output.status.success() => break,
                Ok(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(50)),
                Ok(_) => break,
                Err(error) => {
                    failures.push(format!("{error:#}"));
                    break;
                }
            }
        }
    }
}
