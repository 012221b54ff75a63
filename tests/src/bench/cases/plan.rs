// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl plan` of a thousand interfaces and of four thousand, on the host, in a network namespace of
//! its own: reading files, observing, resolving, planning, printing.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::bench::{Bench, Case, Goal, median};

/// The case.
pub(super) const CASE: Case = Case {
    name: "plan",
    about: "ibctl plan of 12 knobs on 1,000 and on 4,000 links, and of nothing",
    run,
};

/// Interfaces at first, and at last: pairs of veth.
const LINKS: [u32; 2] = [1000, 4000];

/// Runs of each; the median counts.
const ROUNDS: usize = 7;

/// Twelve knobs over each kernel interface that a list is read from, none as it is.
const DECLARED: &str = "\
[[link]]
match = { kind = \"veth\" }
mtu = 1400
txqueuelen = 77
alias = \"rail\"
gso-max-size = 50000
gro-max-size = 50000
state = \"up\"
feature.rx-gro = true
feature.tx-generic-segmentation = false
feature.tx-nocache-copy = true
feature.rx-udp-gro-forwarding = true
gro-flush-timeout = \"20us\"
napi-defer-hard-irqs = 2
";

fn run(bench: &mut Bench) -> Result<()> {
    let ibctl = bench.ibctl()?;
    let folder = bench.folder().to_owned();
    // A thread, so that the namespaces end with it.
    let worker = std::thread::spawn(move || in_namespace(&ibctl, &folder));
    let Ok(figures) = worker.join() else {
        bail!("the measuring thread panicked")
    };
    let Figures {
        small,
        large,
        nothing,
    } = figures?;
    let ms = |seconds: f64| seconds * 1e3;
    bench.bar(
        "plan.1000x12_ms",
        ms(small),
        None,
        Goal::AtMost(150.0),
        "ms",
    )?;
    let growth = f64::from(LINKS[1]) / f64::from(LINKS[0]);
    bench.bar(
        "plan.linearity",
        large / small / growth,
        Some(1.0),
        Goal::AtMost(1.25),
        "ratio",
    )?;
    bench.bar(
        "plan.nothing_ratio",
        nothing / small,
        None,
        Goal::AtMost(1.0 / 3.0),
        "ratio",
    )?;
    bench.bar("plan.4000x12_ms", ms(large), None, Goal::Open, "ms")?;
    bench.bar("plan.nothing_ms", ms(nothing), None, Goal::Open, "ms")
}

/// Medians, in seconds.
struct Figures {
    small: f64,
    large: f64,
    /// Of a file without a rule, beside the thousand.
    nothing: f64,
}

fn in_namespace(ibctl: &Path, folder: &Path) -> Result<Figures> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .context("namespaces of its own (are you root?)")?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
        .context("mounting sysfs, where NAPI settings are read")?;
    let (all, no) = (folder.join("all.toml"), folder.join("no.toml"));
    fs::write(&all, DECLARED)?;
    fs::write(&no, "# nothing\n")?;
    add(0, LINKS[0])?;
    let small = plan(ibctl, &all, LINKS[0])?;
    let nothing = plan(ibctl, &no, 0)?;
    add(LINKS[0], LINKS[1])?;
    let large = plan(ibctl, &all, LINKS[1])?;
    Ok(Figures {
        small,
        large,
        nothing,
    })
}

/// Adds interfaces until there are `to`.
fn add(from: u32, to: u32) -> Result<()> {
    let mut ip = Command::new("ip");
    let mut batch = ip
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .context("running ip")?;
    {
        let mut input = batch.stdin.take().context("ip has an input")?;
        for pair in from / 2..to / 2 {
            writeln!(input, "link add v{pair}a type veth peer name v{pair}b")?;
        }
    }
    ensure!(batch.wait()?.success(), "ip can't add pairs of veth");
    Ok(())
}

/// Returns the median time of a plan, after a look at what it says.
fn plan(ibctl: &Path, file: &Path, links: u32) -> Result<f64> {
    let mut command = Command::new(ibctl);
    command.arg("plan").arg(file);
    let output = command.output().context("running ibctl")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "ibctl plan: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let steps = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .count();
    // Some of the twelve are so already.
    let least = usize::try_from(links)? * 8;
    ensure!(steps >= least, "{steps} steps for {links} interfaces");
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let status = command.stdout(Stdio::null()).status()?;
        times.push(start.elapsed().as_secs_f64());
        ensure!(status.success(), "ibctl plan: {status}");
    }
    median(&times).context("there were rounds")
}
