// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon on the host, in a network namespace of its own: how fast it heals, starts, and sleeps.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ibmgr_api::status::Status;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::bench::{Bench, Case, Goal, median};
use crate::lab::session::build_program;

/// How fast a foreign write is put right.
pub(super) const DRIFT: Case = Case {
    name: "drift",
    about: "time from a foreign write to the healed value",
    run: drift,
};

/// What the daemon costs.
pub(super) const DAEMON: Case = Case {
    name: "daemon",
    about: "start, memory and wake-ups of the daemon",
    run: daemon,
};

/// Knobs that drift, one after the other: each once on each interface, so that no fight begins.
const KNOBS: [(&str, &str, &str); 4] = [
    ("mtu", "1400", "1300"),
    ("tx_queue_len", "77", "5"),
    ("ifalias", "kept", "other"),
    ("mtu", "1400", "1200"),
];
/// Interfaces that drift.
const DRIFTING: u32 = 250;
/// Interfaces of the daemon that is measured at rest.
const LINKS: u32 = 100;
/// Starts that are measured.
const STARTS: usize = 9;
/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(20);

const DECLARED: &str = r#"
[[link]]
match = { name = "v*" }
mtu = 1400
txqueuelen = 77
alias = "kept"
state = "up"
"#;

fn drift(bench: &mut Bench) -> Result<()> {
    let program = build_program("ibmgrd", true)?;
    let mut times = in_namespace(move || drifts(&program))?;
    let middle = median(&times).context("no drifts")? * 1e3;
    times.sort_by(f64::total_cmp);
    let last = times.len() * 99 / 100;
    let p99 = times.get(last).copied().unwrap_or(f64::NAN) * 1e3;
    bench.bar("drift.median_ms", middle, None, Goal::AtMost(10.0), "ms")?;
    bench.bar("drift.p99_ms", p99, None, Goal::Open, "ms")
}

fn daemon(bench: &mut Bench) -> Result<()> {
    let program = build_program("ibmgrd", true)?;
    let size = crate::bench::file_size(&program)?;
    let rest = in_namespace(move || at_rest(&program))?;
    bench.bar(
        "daemon.ready_ms",
        rest.ready,
        None,
        Goal::AtMost(150.0),
        "ms",
    )?;
    bench.bar("daemon.rss_mb", rest.rss, None, Goal::AtMost(12.0), "MB")?;
    let goal = Goal::AtMost(0.0);
    bench.bar("daemon.wakeups_per_s", rest.wakeups, None, goal, "1/s")?;
    let size = f64::from(u32::try_from(size)?) / 1e6;
    bench.bar("daemon.size_mb", size, None, Goal::Open, "MB")
}

/// Runs in a thread, so that the namespaces end with it.
pub(super) fn in_namespace<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let worker = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
            .context("namespaces of its own (are you root?)")?;
        let none: Option<&str> = None;
        let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
        mount(none, "/", none, private, none).context("making mounts private")?;
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
            .context("mounting sysfs")?;
        // Memory, as systemd has it: the journal lies there, and a disk would take its time for each fsync.
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)
            .context("mounting /run")?;
        work()
    });
    match worker.join() {
        Ok(done) => done,
        Err(_) => bail!("the measuring thread panicked"),
    }
}

pub(super) fn make_links(count: u32) -> Result<()> {
    let mut ip = Command::new("ip");
    let batch = ip.args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
    let mut batch = batch.context("running ip")?;
    let mut input = batch.stdin.take().context("ip has an input")?;
    for n in 0..count {
        writeln!(input, "link add v{n} type veth peer name p{n}")?;
        writeln!(input, "link set p{n} up")?;
    }
    drop(input);
    ensure!(batch.wait()?.success(), "ip could not make {count} pairs");
    Ok(())
}

/// A daemon in folders of its own.
pub(super) struct Running {
    child: Child,
    folder: tempfile::TempDir,
    /// What outlives a reboot: on the disk.
    _kept: tempfile::TempDir,
    /// From its start until it said that it is ready, seconds.
    ready: f64,
}

impl Running {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir_in("/run")?;
        let kept = tempfile::tempdir()?;
        let at = |name: &str| -> PathBuf { folder.path().join(name) };
        fs::create_dir(at("conf.d"))?;
        fs::write(at("conf.d/10.toml"), DECLARED)?;
        let manager = UnixDatagram::bind(at("notify"))?;
        manager.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut command = Command::new(program);
        command.arg("--config-dir").arg(at("conf.d"));
        command.arg("--socket").arg(at("http.sock"));
        command.arg("--state-dir").arg(at("state"));
        command.arg("--keep-dir").arg(kept.path());
        command.arg("--lock").arg(at("lock"));
        command.env("NOTIFY_SOCKET", at("notify"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let child = command.spawn().context("starting ibmgrd")?;
        let mut running = Self {
            child,
            folder,
            _kept: kept,
            ready: f64::NAN,
        };
        let mut said = [0; 256];
        let length = manager.recv(&mut said).context("it never was ready")?;
        let said = String::from_utf8_lossy(&said[..length]);
        ensure!(said.contains("READY=1"), "it said {said}");
        running.ready = start.elapsed().as_secs_f64();
        Ok(running)
    }

    fn status(&self) -> Result<Status> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").context("no body")?.1;
        Ok(serde_json::from_str(body)?)
    }

    /// Returns the path of its socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("http.sock")
    }

    /// Returns the seconds of processor time that all its threads have used.
    pub(super) fn processor_time(&self) -> Result<f64> {
        // Nanoseconds on a processor come first (Documentation/scheduler/sched-stats.rst).
        let mut sum = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().context("no schedstat")?;
            sum += first.parse::<f64>()?;
        }
        Ok(sum / 1e9)
    }

    /// Returns a number of `/proc/PID/status`.
    pub(super) fn kernel_says(&self, field: &str) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let line = line.with_context(|| format!("the kernel tells no {field}"))?;
        let first = line.trim_start_matches(':').split_whitespace().next();
        Ok(first.context("no number")?.parse()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes as others do, and reads until the declared value is back.
fn drifts(program: &Path) -> Result<Vec<f64>> {
    make_links(DRIFTING)?;
    let running = Running::start(program)?;
    // The notifications of its own writes come first.
    thread::sleep(Duration::from_secs(1));
    let mut times = Vec::new();
    for (file, declared, foreign) in KNOBS {
        for n in 0..DRIFTING {
            let path = format!("/sys/class/net/v{n}/{file}");
            let start = Instant::now();
            fs::write(&path, foreign).with_context(|| path.clone())?;
            while fs::read_to_string(&path)?.trim() != declared {
                ensure!(start.elapsed() < Duration::from_secs(5), "{path} stays");
                thread::sleep(Duration::from_micros(100));
            }
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let status = running.status()?;
    ensure!(status.ok, "not everything is as declared");
    // A value can be back before it was read; a drift that was not seen is no drift that was healed.
    let (healed, all) = (status.counters.healed, times.len() as u64);
    ensure!(healed == all, "{healed} of {all} were healed");
    Ok(times)
}

struct Rest {
    ready: f64,
    rss: f64,
    wakeups: f64,
}

fn at_rest(program: &Path) -> Result<Rest> {
    make_links(LINKS)?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        // As after a boot: nothing is as declared.
        let lines: Vec<String> = (0..LINKS)
            .map(|n| format!("/sys/class/net/v{n}/mtu"))
            .collect();
        for path in lines {
            fs::write(path, "1500")?;
        }
        starts.push(Running::start(program)?.ready);
    }
    let running = Running::start(program)?;
    let status = running.status()?;
    ensure!(status.ok && status.polled == 0, "it is not at rest");
    thread::sleep(Duration::from_secs(2));
    let before = running.kernel_says("voluntary_ctxt_switches")?;
    thread::sleep(REST);
    let after = running.kernel_says("voluntary_ctxt_switches")?;
    Ok(Rest {
        ready: median(&starts).context("no starts")? * 1e3,
        rss: running.kernel_says("VmRSS")? * 1024.0 / 1e6,
        wakeups: (after - before) / REST.as_secs_f64(),
    })
}
