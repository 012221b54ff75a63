// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs tasks in machines and collects what became of them.
//!
//! A machine that hangs, dies, or says that its kernel can't be trusted is
//! thrown away; the tasks that it didn't run get a fresh one.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::cache::{Cache, Item};
use super::machine::{Heard, Machine, Parts, Shape};
use super::place;
use super::progress::say;
use super::report::line;
use super::roots::{self, Root};
use super::{initramfs, modules};
use crate::guest::task::{Kernel, Task};
use crate::wire::{Event, Figure, Job};

/// How long a machine may take until its runner speaks.
const BOOT_TIMEOUT: Duration = Duration::from_secs(120);

/// What the guest gets beyond a task's own timeout: setting up, tearing down, reading the log.
const GRACE: Duration = Duration::from_secs(150);

/// Everything that machines need, made ready.
pub struct Session {
    cache: Cache,
    tools: Root,
    sid: Option<Root>,
    userland: Item,
    programs: Vec<(PathBuf, String)>,
    logs: PathBuf,
    boots: u32,
}

/// What became of one task.
#[derive(Debug)]
pub struct Outcome {
    /// The task's name.
    pub task: String,
    /// Why it failed; empty when it passed.
    pub failures: Vec<String>,
    /// Figures that it took.
    pub figures: Vec<Figure>,
    /// Its run time.
    pub time: Duration,
    /// Files that it left.
    pub artefacts: Vec<PathBuf>,
    /// Where they lie.
    dir: PathBuf,
}

impl Outcome {
    fn begin(task: String, logs: &Path) -> Self {
        let (failures, figures, artefacts) = (Vec::new(), Vec::new(), Vec::new());
        // A task that is repeated leaves its files in folders of its own.
        let mut dir = logs.join(&task);
        let mut round = 1;
        while dir.exists() {
            round += 1;
            dir = logs.join(format!("{task}.{round}"));
        }
        Self {
            task,
            dir,
            failures,
            figures,
            time: Duration::ZERO,
            artefacts,
        }
    }

    /// Turns the outcome of a task that is there to fail into a pass, if it failed as it must.
    fn judge(mut self, task: &Task) -> Self {
        let Some(wanted) = task.must_fail else {
            return self;
        };
        if self.failures.iter().any(|failure| failure.contains(wanted)) {
            self.failures.clear();
        } else {
            self.failures
                .push(format!("it must fail with {wanted:?}, and didn't"));
        }
        self
    }
}

/// How tasks are to be run.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Long forms.
    pub long: bool,
    /// Arguments for measuring tasks.
    pub args: Vec<String>,
    /// What tasks say is the result, for standard output.
    pub narrate: bool,
}

impl Session {
    /// Makes the root and the userland ready; machines leave their logs in `logs`. Our programs are added by [`Self::add_program`].
    ///
    /// # Errors
    ///
    /// When the host can't carry the lab, with what to do about it.
    pub fn prepare(logs: &Path) -> Result<Self> {
        super::host::check_powers()?;
        let cache = Cache::open()?;
        let tools = roots::TRIXIE.ensure(&cache)?;
        tools.check_glibc()?;
        let userland = initramfs::userland(&cache, &tools)?;
        // Not by its path: building the workspace's tests may have put a new lab there meanwhile.
        let lab = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
        let programs = vec![(lab, "/init".to_owned())];
        Ok(Self {
            cache,
            tools,
            sid: None,
            userland,
            programs,
            logs: logs.to_owned(),
            boots: 0,
        })
    }

    /// Puts a program of the host into each machine.
    pub fn add_program(&mut self, host: PathBuf, guest: &str) {
        self.programs.push((host, guest.to_owned()));
    }

    /// Boots one machine for a job.
    ///
    /// # Errors
    ///
    /// When something that it needs can't be made.
    pub fn boot(&mut self, kernel: Kernel, shape: Shape, job: &Job) -> Result<Machine> {
        if kernel == Kernel::Sid && self.sid.is_none() {
            self.sid = Some(roots::SID.ensure(&self.cache)?);
        }
        let root = match (kernel, &self.sid) {
            (Kernel::Sid, Some(sid)) => sid,
            _ => &self.tools,
        };
        let modules = modules::layer(&self.cache, root, &self.tools)?;
        self.boots += 1;
        let dir = self.logs.join(format!("vm{}", self.boots));
        let parts = Parts {
            tools: &self.tools,
            kernel: root,
            layers: &[self.userland.path(), modules.path()],
            programs: &self.programs,
        };
        Machine::boot(&parts, shape, job, &dir)
    }

    /// Runs tasks, grouped by what they boot, and hands each outcome to `report` at once.
    ///
    /// # Errors
    ///
    /// When a machine can't be made at all. What goes wrong inside is an outcome.
    pub fn run_tasks(
        &mut self,
        tasks: &[&'static Task],
        wish: &Wish,
        report: &mut dyn FnMut(Outcome),
    ) -> Result<()> {
        let mut groups: BTreeMap<(Kernel, Shape), VecDeque<&'static Task>> = BTreeMap::new();
        for task in tasks {
            groups
                .entry((task.kernel, task.shape))
                .or_default()
                .push_back(task);
        }
        for ((kernel, shape), mut waiting) in groups {
            while !waiting.is_empty() {
                let before = waiting.len();
                self.run_boot(kernel, shape, &mut waiting, wish, report)?;
                if waiting.len() == before {
                    bail!(
                        "a machine came up and ran nothing; see {}",
                        self.logs.display()
                    );
                }
            }
        }
        Ok(())
    }

    /// One boot: runs waiting tasks until the machine is done or has to go.
    fn run_boot(
        &mut self,
        kernel: Kernel,
        shape: Shape,
        waiting: &mut VecDeque<&'static Task>,
        wish: &Wish,
        report: &mut dyn FnMut(Outcome),
    ) -> Result<()> {
        let job = Job {
            tasks: waiting.iter().map(|task| task.name.to_owned()).collect(),
            long: wish.long,
            args: wish.args.clone(),
            interactive: false,
        };
        let machine = self.boot(kernel, shape, &job)?;
        say(&format!(
            "    booting {kernel} for {} task(s)",
            waiting.len()
        ));
        let mut watch = Watch::new(machine, &self.logs, wish);
        watch.run(waiting, report)
    }
}

/// Follows one machine.
struct Watch<'a> {
    machine: Machine,
    logs: &'a Path,
    wish: &'a Wish,
    current: Option<(Instant, Outcome)>,
    deadline: Instant,
}

impl<'a> Watch<'a> {
    fn new(machine: Machine, logs: &'a Path, wish: &'a Wish) -> Self {
        Self {
            machine,
            logs,
            wish,
            current: None,
            deadline: Instant::now() + BOOT_TIMEOUT,
        }
    }

    fn run(
        &mut self,
        waiting: &mut VecDeque<&'static Task>,
        report: &mut dyn FnMut(Outcome),
    ) -> Result<()> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let broken = match self.machine.hear(left) {
                Heard::Event(Event::Done) => return Ok(()),
                Heard::Event(event) => {
                    if self.take(event, waiting, report)? {
                        return Ok(());
                    }
                    continue;
                }
                Heard::Silence => "the machine hangs: nothing came from it in time",
                Heard::Gone => "the machine went away",
            };
            let words = format!(
                "{broken}\nend of its console:\n{}",
                self.machine.last_words()
            );
            match self.current.take() {
                Some((start, mut outcome)) => {
                    outcome.time = start.elapsed();
                    outcome.failures.push(words);
                    settle(waiting, outcome, report);
                    return Ok(());
                }
                None => bail!(
                    "{words}\nno task was running; logs: {}",
                    self.logs.display()
                ),
            }
        }
    }

    /// Takes in one event; true when this machine is not to be used any more.
    fn take(
        &mut self,
        event: Event,
        waiting: &mut VecDeque<&'static Task>,
        report: &mut dyn FnMut(Outcome),
    ) -> Result<bool> {
        match event {
            Event::Boot { kernel, uptime } => {
                let age = self.machine.age().as_secs_f64();
                say(&format!(
                    "    Linux {kernel} is up after {age:.1} s ({uptime:.1} s its own)"
                ));
                self.deadline = Instant::now() + GRACE;
            }
            Event::Start { task } => {
                let found = waiting.iter().find(|known| known.name == task);
                let known = found.with_context(|| format!("the guest started unknown {task}"))?;
                self.deadline = Instant::now() + known.time_limit(self.wish.long) + GRACE;
                self.current = Some((Instant::now(), Outcome::begin(task, self.logs)));
            }
            Event::Say { text } if self.wish.narrate => line(&text),
            Event::Say { text } => say(&text),
            Event::Figure(figure) => self.outcome()?.figures.push(figure),
            Event::Failure { message } => self.outcome()?.failures.push(message),
            Event::Artefact { name, data } => self.keep(&name, &data)?,
            Event::End {
                passed,
                seconds,
                dirty,
                ..
            } => {
                let (_, mut outcome) = self.current.take().context("an end without a start")?;
                outcome.time = Duration::from_secs_f64(seconds.max(0.0));
                if !passed && outcome.failures.is_empty() {
                    outcome
                        .failures
                        .push("it failed without saying why".to_owned());
                }
                settle(waiting, outcome, report);
                self.deadline = Instant::now() + GRACE;
                return Ok(dirty);
            }
            Event::Done => {}
        }
        Ok(false)
    }

    fn outcome(&mut self) -> Result<&mut Outcome> {
        let current = self
            .current
            .as_mut()
            .context("news of a task, but none is running")?;
        Ok(&mut current.1)
    }

    fn keep(&mut self, name: &str, data: &str) -> Result<()> {
        let outcome = self.outcome()?;
        fs::create_dir_all(&outcome.dir)?;
        let path = outcome.dir.join(
            Path::new(name)
                .file_name()
                .context("an artefact without a name")?,
        );
        let bytes = STANDARD
            .decode(data)
            .context("an artefact that isn't base64")?;
        File::options()
            .create(true)
            .append(true)
            .open(&path)?
            .write_all(&bytes)?;
        if !outcome.artefacts.contains(&path) {
            outcome.artefacts.push(path);
        }
        Ok(())
    }
}

/// Takes a task off the list and reports what became of it.
fn settle(
    waiting: &mut VecDeque<&'static Task>,
    outcome: Outcome,
    report: &mut dyn FnMut(Outcome),
) {
    let place = waiting.iter().position(|task| task.name == outcome.task);
    match place.and_then(|place| waiting.remove(place)) {
        Some(task) => report(outcome.judge(task)),
        None => report(outcome),
    }
}

/// Builds a program of this workspace and returns where it lies.
///
/// # Errors
///
/// When Cargo refuses; its messages went to standard error.
pub fn build_program(package: &str, release: bool) -> Result<PathBuf> {
    say(&format!("==> building {package}"));
    let mut command = place::cargo();
    command.args(["build", "--quiet", "--package", package, "--bin", package]);
    if release {
        command.arg("--release");
    }
    let status = command.status().context("can't run cargo")?;
    if !status.success() {
        bail!("{package} doesn't build; see above");
    }
    let profile = if release { "release" } else { "debug" };
    Ok(place::target()?.join(profile).join(package))
}
