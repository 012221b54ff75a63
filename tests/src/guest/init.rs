// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Process 1 of a machine: mounts, runs the tasks one after the other, watches over them.

use std::fs::{self, File};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, sethostname, sync};

use super::dmesg::{self, Log};
use super::fabric::OPENSM_LOG;
use super::port::{self, Port};
use super::process::PATH;
use super::teardown::{reap, tear_down};
use super::{Result, TASK_ARGUMENT, Task, modules, tests};
use crate::wire::{Event, Job};

/// File systems of a machine: type, place, options.
const MOUNTS: &[(&str, &str, &str)] = &[
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/run", ""),
    ("tmpfs", "/tmp", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
];

/// What a task prints.
const TASK_LOG: &str = "/run/task.log";

/// Runs the machine. Never returns with the machine alive.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(error) = live() {
        // The console is all that is left; the host shows its end.
        let _ = fs::write("/dev/console", format!("lab: init: {error:#}\n"));
    }
    sync();
    // Returning would panic the kernel, which also ends the machine.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    ExitCode::FAILURE
}

fn live() -> Result {
    for (kind, place, options) in MOUNTS {
        mount_one(kind, place, options)?;
    }
    fs::create_dir_all("/dev/pts")?;
    mount_one("devpts", "/dev/pts", "gid=5,mode=620")?;
    fs::create_dir_all("/dev/shm")?;
    mount_one("tmpfs", "/dev/shm", "")?;
    sethostname("lab")?;
    // 120 s is longer than most tests last; a hang must show within them.
    let _ = fs::write("/proc/sys/kernel/hung_task_timeout_secs", "20");
    let job = port::read_job().context("reading the job")?;
    let port = Port::open().context("opening the port to the host")?;
    run("ip link set lo up")?;
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime = uptime
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?
        .trim()
        .to_owned();
    port.send(&Event::Boot { kernel, uptime });
    let baseline: Vec<String> = modules::loaded()?
        .into_iter()
        .map(|module| module.name)
        .collect();
    for name in &job.tasks {
        let task = tests::find(name).ok_or_else(|| anyhow!("the guest knows no task {name}"))?;
        if !run_one(task, &job, &port, &baseline)? {
            break;
        }
    }
    port.send(&Event::Done);
    Ok(())
}

fn mount_one(kind: &str, place: &str, options: &str) -> Result {
    fs::create_dir_all(place)?;
    mount(
        Some(kind),
        place,
        Some(kind),
        MsFlags::empty(),
        Some(options),
    )
    .with_context(|| format!("mounting {kind} on {place}"))
}

fn run(line: &str) -> Result {
    super::process::run(line, Duration::from_secs(20))?
        .success()
        .map(|_| ())
}

/// Runs one task and tears down; false when the machine can't be used any more.
fn run_one(task: &'static Task, job: &Job, port: &Port, baseline: &[String]) -> Result<bool> {
    let mut log = Log::from_now()?;
    port.send(&Event::Start {
        task: task.name.to_owned(),
    });
    let started = Instant::now();
    let mut failures = Vec::new();
    let mut passed = match supervise(task, job) {
        Ok(passed) => passed,
        Err(error) => {
            failures.push(format!("{error:#}"));
            false
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let mut left = tear_down(baseline);
    // A line without its newline stays hidden until the next one comes.
    let _ = fs::write("/dev/kmsg", "lab: end of the task\n");
    let records = log.read()?;
    let alarms = dmesg::alarms(&records, task.allowed);
    if let Some(first) = alarms.first() {
        left.push(format!(
            "the kernel log has {} alarm(s), first: {}",
            alarms.len(),
            first.text
        ));
    }
    if log.overflowed() {
        left.push("the kernel log ran over; alarms may be lost".to_owned());
    }
    let dirty = !left.is_empty();
    failures.append(&mut left);
    passed &= failures.is_empty();
    for message in failures {
        port.send(&Event::Failure { message });
    }
    if !passed {
        port.send_file("dmesg.txt", dmesg::print(&records).as_bytes());
        for (name, path) in [("output.txt", TASK_LOG), ("opensm.log", OPENSM_LOG)] {
            if let Ok(content) = fs::read(path)
                && !content.is_empty()
            {
                port.send_file(name, &content);
            }
        }
    }
    let _ = fs::remove_file(OPENSM_LOG);
    port.send(&Event::End {
        task: task.name.to_owned(),
        passed,
        seconds,
        dirty,
    });
    Ok(!dirty)
}

/// Starts the task's process and waits for its end, for as long as it may take.
fn supervise(task: &Task, job: &Job) -> Result<bool> {
    let mut command = if job.interactive {
        // A shell wants a controlling terminal, which /dev/console can't be.
        let console = File::options().read(true).write(true).open("/dev/ttyS0")?;
        let mut command = Command::new("/usr/bin/busybox");
        command.args(["setsid", "-c", "/init"]);
        command
            .stdin(console.try_clone()?)
            .stdout(console.try_clone()?)
            .stderr(console);
        command
    } else {
        let log = File::create(TASK_LOG)?;
        let mut command = Command::new("/init");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        command
    };
    command.args([TASK_ARGUMENT, task.name]).env_clear();
    command
        .env("PATH", PATH)
        .env("HOME", "/root")
        .env("LC_ALL", "C");
    command.env("RUST_BACKTRACE", "1").env("TERM", "vt100");
    let child = Pid::from_raw(i32::try_from(command.spawn()?.id())?);
    let limit = task.time_limit(job.long);
    let started = Instant::now();
    loop {
        for status in reap() {
            match status {
                WaitStatus::Exited(id, code) if id == child => return Ok(code == 0),
                WaitStatus::Signaled(id, signal, _) if id == child => {
                    return Err(anyhow!("the task's process was killed by {signal}"));
                }
                _ => {}
            }
        }
        if !job.interactive && started.elapsed() > limit {
            // Which tasks are blocked, and where, into the kernel log.
            let _ = fs::write("/proc/sysrq-trigger", "w");
            return Err(anyhow!("not done after {limit:?}"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}
