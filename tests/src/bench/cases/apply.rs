// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl apply` against `ip -batch` and a shell loop that write the same, on the host, in a network
//! namespace of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::bench::{Bench, Case, Goal, median};

/// The case.
pub(super) const CASE: Case = Case {
    name: "apply",
    about: "4 knobs on 128 links: ibctl apply, ip -batch, a shell loop",
    run,
};

/// Interfaces: pairs of veth.
const LINKS: u32 = 128;

/// Knobs on each.
const KNOBS: u32 = 4;

/// Runs of each, in turn. The shell loop takes a second.
const ROUNDS: u32 = 11;

fn run(bench: &mut Bench) -> Result<()> {
    let ibctl = bench.ibctl()?;
    // A thread, so that the namespaces end with it.
    let folder = bench.folder().to_owned();
    let worker = std::thread::spawn(move || in_namespace(&ibctl, &folder));
    let Ok(figures) = worker.join() else {
        bail!("the measuring thread panicked")
    };
    let Figures {
        ours,
        nothing,
        batch,
        shell,
    } = figures?;
    let settings = f64::from(LINKS * KNOBS);
    let over = (ours - batch) * 1e3 / settings;
    bench.bar(
        "apply.ms_over_ip_batch",
        over,
        None,
        Goal::AtMost(0.08),
        "ms",
    )?;
    bench.bar(
        "apply.vs_shell",
        shell / ours,
        None,
        Goal::AtLeast(20.0),
        "ratio",
    )?;
    let ms = |seconds: f64| seconds * 1e3;
    bench.bar(
        "apply.128x4_ms",
        ms(ours),
        Some(ms(batch)),
        Goal::Open,
        "ms",
    )?;
    bench.bar("apply.shell_ms", ms(shell), None, Goal::Open, "ms")?;
    bench.bar("apply.nothing_ms", ms(nothing), None, Goal::Open, "ms")
}

/// Medians, in seconds.
struct Figures {
    ours: f64,
    /// The same declaration again.
    nothing: f64,
    batch: f64,
    shell: f64,
}

/// The same settings in three languages.
struct Round {
    declaration: PathBuf,
    batch: PathBuf,
    script: PathBuf,
}

fn in_namespace(ibctl: &Path, folder: &Path) -> Result<Figures> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .context("namespaces of its own (are you root?)")?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
        .context("mounting sysfs for the shell loop's echo")?;
    let pairs = folder.join("pairs");
    let lines: String = (0..LINKS / 2)
        .map(|n| format!("link add v{n}a type veth peer name v{n}b\n"))
        .collect();
    fs::write(&pairs, lines)?;
    timed(Command::new("ip").arg("-batch").arg(&pairs))?;

    let rounds = [1400, 1300].map(|mtu| write(folder, mtu));
    let [one, other] = rounds;
    let rounds = [one?, other?];
    let mut times = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        // Each finds the values that the one before did not write.
        let pick = |step: u32| usize::from((round + step) % 2 == 1);
        let [ours, nothing, batch, shell] = &mut times;
        let declaration = &rounds[pick(0)].declaration;
        ours.push(timed(Command::new(ibctl).arg("apply").arg(declaration))?);
        nothing.push(timed(Command::new(ibctl).arg("apply").arg(declaration))?);
        check(pick(0))?;
        batch.push(timed(
            Command::new("ip").arg("-batch").arg(&rounds[pick(1)].batch),
        )?);
        check(pick(1))?;
        shell.push(timed(Command::new("bash").arg(&rounds[pick(2)].script))?);
        check(pick(2))?;
    }
    let [ours, nothing, batch, shell] = times.map(|times| median(&times).unwrap_or(f64::NAN));
    Ok(Figures {
        ours,
        nothing,
        batch,
        shell,
    })
}

fn write(folder: &Path, mtu: u32) -> Result<Round> {
    let gso = mtu + 50_000;
    let names = || (0..LINKS / 2).flat_map(|n| [format!("v{n}a"), format!("v{n}b")]);
    let declaration = format!(
        "[[link]]\nmatch = {{ kind = \"veth\" }}\nmtu = {mtu}\ntxqueuelen = {mtu}\n\
         alias = \"rail-{mtu}\"\ngso-max-size = {gso}\n"
    );
    let mut batch = String::new();
    let mut script = "set -e\n".to_owned();
    for name in names() {
        for words in [
            format!("mtu {mtu}"),
            format!("txqueuelen {mtu}"),
            format!("alias rail-{mtu}"),
            format!("gso_max_size {gso}"),
        ] {
            writeln!(batch, "link set {name} {words}")?;
        }
        writeln!(script, "ip link set {name} mtu {mtu}")?;
        writeln!(script, "ip link set {name} txqueuelen {mtu}")?;
        writeln!(script, "echo rail-{mtu} > /sys/class/net/{name}/ifalias")?;
        writeln!(script, "ip link set {name} gso_max_size {gso}")?;
    }
    let file = |ending: &str, text: &str| -> Result<PathBuf> {
        let path = folder.join(format!("{mtu}.{ending}"));
        fs::write(&path, text)?;
        Ok(path)
    };
    Ok(Round {
        declaration: file("toml", &declaration)?,
        batch: file("batch", &batch)?,
        script: file("sh", &script)?,
    })
}

/// Checks that the last interface has the values of that round.
fn check(round: usize) -> Result<()> {
    let mtu = fs::read_to_string(format!("/sys/class/net/v{}b/mtu", LINKS / 2 - 1))?;
    let wanted = ["1400", "1300"].get(round).copied().unwrap_or_default();
    ensure!(mtu.trim() == wanted, "the MTU is {mtu}, not {wanted}");
    Ok(())
}

fn timed(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("running {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?}: {status}");
    Ok(seconds)
}
