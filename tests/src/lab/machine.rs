// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One virtual machine: QEMU from the lab's root, without hardware help.
//!
//! The first serial port is the console and goes to a file; the second one
//! carries events and is QEMU's standard output.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::chroot::tail;
use super::initramfs::{self, LAYER};
use super::roots::Root;
use crate::wire::{Event, JOB_PATH, Job};

/// What a machine is made from.
pub struct Parts<'a> {
    /// The root that QEMU and tools come from.
    pub tools: &'a Root,
    /// The root whose kernel is booted.
    pub kernel: &'a Root,
    /// Layers of the initramfs, in order.
    pub layers: &'a [&'a Path],
    /// Our programs: path on the host, path in the machine.
    pub programs: &'a [(PathBuf, String)],
}

/// How a machine is set up. Tasks with equal shapes share a boot.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Shape {
    /// Memory in MB.
    pub memory: u32,
    /// Virtual processors.
    pub cpus: u32,
    /// More words for the kernel's command line.
    pub kernel_args: &'static str,
    /// Nanoseconds that an instruction takes, a power of two. Then time stands still for nothing else: one processor,
    /// and the same seed (the job's argument `seed`) gives the same run.
    pub counted: Option<u32>,
}

/// Nanoseconds that an instruction takes on the usual machine that counts them.
pub const COUNTED_NS: u32 = 4;

impl Shape {
    /// Two processors and 2 GB: enough for every ordinary test.
    pub const USUAL: Self = Self {
        memory: 2048,
        cpus: 2,
        kernel_args: "",
        counted: None,
    };

    /// The kernel checks its slabs: writes past an object, or after it was freed, are alarms.
    /// For tests in which memory comes and goes a lot.
    pub const CHECKED: Self = Self {
        kernel_args: "slab_debug=FZP,kmalloc-*,skbuff*",
        ..Self::USUAL
    };

    /// Time is counted in instructions.
    pub const COUNTED: Self = Self {
        cpus: 1,
        kernel_args: "nokaslr",
        counted: Some(COUNTED_NS),
        ..Self::USUAL
    };

    /// The same with a faster processor, for what the kernel's tick cuts short.
    pub const SWIFT: Self = Self {
        counted: Some(1),
        ..Self::COUNTED
    };
}

/// A running machine. It is killed when this value goes.
pub struct Machine {
    child: Child,
    events: Receiver<Event>,
    dir: PathBuf,
    started: Instant,
}

/// What came from a machine.
pub enum Heard {
    /// An event.
    Event(Event),
    /// Nothing, until the time was over.
    Silence,
    /// The machine is gone.
    Gone,
}

impl Machine {
    /// Boots a machine whose files lie in the new folder `dir`.
    ///
    /// # Errors
    ///
    /// When the initramfs can't be put together or QEMU can't be started.
    pub fn boot(parts: &Parts<'_>, shape: Shape, job: &Job, dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        join_initrd(parts, job, dir)?;
        let mut command = parts
            .tools
            .chroot()
            .bind(dir, "vm")
            .bind(&parts.kernel.path().join("boot"), "boot")
            .command("/usr/bin/qemu-system-x86_64");
        command.args(["-machine", "q35"]);
        command.args(processor(shape, job));
        command.args([
            "-smp",
            &shape.cpus.to_string(),
            "-m",
            &shape.memory.to_string(),
        ]);
        command.args(["-nic", "none", "-display", "none", "-no-reboot"]);
        command.args([
            "-kernel",
            &format!("/mnt/boot/vmlinuz-{}", parts.kernel.kernel()),
        ]);
        command.args([
            "-initrd",
            "/mnt/vm/initrd.img",
            "-append",
            &command_line(shape, job),
        ]);
        if job.interactive {
            command.args(["-serial", "mon:stdio", "-serial", "file:/mnt/vm/events"]);
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        } else {
            command.args(["-monitor", "none", "-serial", "file:/mnt/vm/console.log"]);
            command.args(["-serial", "stdio"]).stdout(Stdio::piped());
        }
        command.stderr(File::create(dir.join("qemu.log"))?);
        let started = Instant::now();
        let mut child = command.spawn().context("can't start QEMU")?;
        let (sender, events) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || listen(stdout, &sender));
        }
        Ok(Self {
            child,
            events,
            dir: dir.to_owned(),
            started,
        })
    }

    /// Waits up to `time` for the next event.
    #[must_use]
    pub fn hear(&self, time: Duration) -> Heard {
        match self.events.recv_timeout(time) {
            Ok(event) => Heard::Event(event),
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => Heard::Gone,
        }
    }

    /// Waits for the end of an interactive machine.
    ///
    /// # Errors
    ///
    /// When it can't be waited for.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(|_| ())
    }

    /// Returns the time since QEMU was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the end of what the console and QEMU printed.
    #[must_use]
    pub fn last_words(&self) -> String {
        let read = |name: &str| {
            let bytes = fs::read(self.dir.join(name)).unwrap_or_default();
            tail(&String::from_utf8_lossy(&bytes).replace("\r", ""), 60)
        };
        let (console, qemu) = (read("console.log"), read("qemu.log"));
        if qemu.trim().is_empty() {
            console
        } else {
            format!("{console}\nQEMU: {qemu}")
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Killing unshare kills QEMU with it; both may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(self.dir.join("initrd.img"));
    }
}

fn processor(shape: Shape, job: &Job) -> Vec<String> {
    let words = if let Some(nanoseconds) = shape.counted {
        // QEMU counts an instruction per byte of `rep movsb` and `rep stosb`, so the kernel must not find them fast.
        let seed = job.args.iter().find_map(|word| word.strip_prefix("seed="));
        format!(
            "-cpu max,-erms,-fsrm,-fsrs -accel tcg,thread=single -rtc clock=vm \
             -icount shift={},sleep=off -seed {}",
            nanoseconds.ilog2(),
            seed.unwrap_or("1")
        )
    } else {
        "-cpu max -accel tcg,thread=multi".to_owned()
    };
    words.split(' ').map(str::to_owned).collect()
}

fn command_line(shape: Shape, job: &Job) -> String {
    let mut words = vec![
        "console=ttyS0",
        "quiet",
        "loglevel=5",
        "panic=-1",
        "oops=panic",
        "log_buf_len=8M",
        "printk.devkmsg=on",
        "random.trust_cpu=on",
        "mitigations=off",
        "net.ifnames=0",
        "no_timer_check",
    ];
    if job.interactive {
        words.push("loglevel=3");
    }
    if !shape.kernel_args.is_empty() {
        words.push(shape.kernel_args);
    }
    words.join(" ")
}

/// Joins the cached layers with a fresh one: our programs and the job.
fn join_initrd(parts: &Parts<'_>, job: &Job, dir: &Path) -> Result<()> {
    let stage = dir.join("stage");
    fs::create_dir_all(&stage)?;
    let names: Vec<&str> = parts
        .programs
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    for (from, name) in parts.programs {
        let content = fs::read(from).with_context(|| format!("can't read {}", from.display()))?;
        initramfs::put(&stage, name, &content, 0o755)?;
    }
    initramfs::put(&stage, JOB_PATH, &serde_json::to_vec(job)?, 0o644)?;
    // Line tables are for the host; they would cost the guest memory and time.
    let strip = "cd /mnt/stage; for name in \"$@\"; do strip --strip-debug \".$name\"; done";
    parts
        .tools
        .chroot()
        .bind(&stage, "stage")
        .script(strip, &names)?;
    let fresh = dir.join("fresh.cpio");
    initramfs::pack(&parts.tools.chroot(), &stage, &fresh)?;
    let mut initrd = File::create(dir.join("initrd.img"))?;
    for layer in parts.layers {
        io::copy(&mut File::open(layer.join(LAYER))?, &mut initrd)?;
    }
    io::copy(&mut File::open(&fresh)?, &mut initrd)?;
    fs::remove_file(&fresh)?;
    fs::remove_dir_all(&stage)?;
    Ok(())
}

fn listen(stdout: ChildStdout, sender: &mpsc::Sender<Event>) {
    for line in BufReader::new(stdout).split(b'\n') {
        let Ok(line) = line else { break };
        // The port is quiet until our runner opens it; anything else is noise of the firmware.
        if let Ok(event) = serde_json::from_slice(&line)
            && sender.send(event).is_err()
        {
            break;
        }
    }
}
