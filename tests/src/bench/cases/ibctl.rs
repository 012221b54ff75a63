// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl` against `ip`, on the host, in a network namespace of its own.

use std::fs::{self, File};
use std::io::{Read, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sched::{CloneFlags, unshare};

use crate::bench::{Bench, Case, Goal, median};

/// The case.
pub(super) const CASE: Case = Case {
    name: "ibctl",
    about: "time, memory and size of ibctl, beside ip",
    run,
};

/// Interfaces that `show` lists: pairs of veth.
const LINKS: u32 = 256;

/// Runs of each command, in turn.
const ROUNDS: usize = 41;

fn run(bench: &mut Bench) -> Result<()> {
    let ibctl = bench.ibctl()?;
    let size = fs::metadata(&ibctl)?.len();
    // A thread, so that the namespace ends with it.
    let worker = std::thread::spawn(move || in_namespace(&ibctl));
    let Ok(figures) = worker.join() else {
        bail!("the measuring thread panicked")
    };
    let Figures {
        show,
        ip_show,
        set,
        ip_set,
        rss_kib,
    } = figures?;

    bench.bar(
        "ibctl.show256_vs_ip",
        show / ip_show,
        Some(1.0),
        Goal::AtMost(2.0),
        "ratio",
    )?;
    bench.bar(
        "ibctl.set1_vs_ip",
        set / ip_set,
        Some(1.0),
        Goal::AtMost(1.5),
        "ratio",
    )?;
    bench.bar(
        "ibctl.show256_ms",
        show * 1e3,
        Some(ip_show * 1e3),
        Goal::Open,
        "ms",
    )?;
    bench.bar(
        "ibctl.set1_ms",
        set * 1e3,
        Some(ip_set * 1e3),
        Goal::Open,
        "ms",
    )?;
    let size = f64::from(u32::try_from(size)?) / 1e6;
    bench.bar("ibctl.size_mb", size, None, Goal::AtMost(6.0), "MB")?;
    let rss = f64::from(rss_kib) * 1024.0 / 1e6;
    bench.bar("ibctl.show256_rss_mb", rss, None, Goal::AtMost(12.0), "MB")
}

/// Medians, in seconds, and a peak.
struct Figures {
    show: f64,
    ip_show: f64,
    set: f64,
    ip_set: f64,
    rss_kib: u32,
}

fn in_namespace(ibctl: &Path) -> Result<Figures> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace of its own (are you root?)")?;
    let mut ip = Command::new("ip");
    let batch = ip.args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
    let mut batch = batch.context("running ip")?;
    {
        use std::io::Write;
        let mut input = batch.stdin.take().context("ip has an input")?;
        for n in 0..LINKS / 2 {
            writeln!(input, "link add v{n}a type veth peer name v{n}b")?;
        }
    }
    ensure!(
        batch.wait()?.success(),
        "ip could not make {LINKS} veth interfaces"
    );

    let mut times = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        let mtu = (1400 + round % 2).to_string();
        let knob = format!("mtu={mtu}");
        let [show, ip_show, set, ip_set] = &mut times;
        show.push(timed(Command::new(ibctl).arg("show"))?);
        ip_show.push(timed(
            Command::new("ip").args(["-j", "-d", "link", "show"]),
        )?);
        set.push(timed(Command::new(ibctl).args(["set", "v0a", &knob]))?);
        ip_set.push(timed(
            Command::new("ip").args(["link", "set", "v1a", "mtu", &mtu]),
        )?);
    }
    let [show, ip_show, set, ip_set] = times.map(|times| median(&times).unwrap_or(f64::NAN));
    let rss_kib = peak_memory(ibctl)?;
    Ok(Figures {
        show,
        ip_show,
        set,
        ip_set,
        rss_kib,
    })
}

fn timed(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("running {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?}: {status}");
    Ok(seconds)
}

/// Returns the peak resident set of `ibctl show` in KiB. The pipe that it writes to holds one page,
/// so it stands still, with everything in memory, when its first byte has arrived.
fn peak_memory(ibctl: &Path) -> Result<u32> {
    let (mut output, input) = pipe()?;
    fcntl(&input, FcntlArg::F_SETPIPE_SZ(4096)).context("shrinking a pipe")?;
    let child = Command::new(ibctl).arg("show").stdout(input).spawn();
    let mut child = child.context("running ibctl")?;
    let mut text = vec![0; 1];
    output.read_exact(&mut text)?;
    let mut status = String::new();
    File::open(format!("/proc/{}/status", child.id()))?.read_to_string(&mut status)?;
    let rest = output.read_to_end(&mut text)?;
    ensure!(
        child.wait()?.success() && rest > 4096,
        "ibctl show was not caught: {rest} bytes"
    );
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    peak.context("the kernel tells no VmHWM")?
        .trim()
        .parse()
        .context("VmHWM is no number")
}
