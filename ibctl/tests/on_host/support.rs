// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network namespaces, programs and independent readers.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use serde_json::Value;

/// What a program did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            status: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the output of a command that did what was asked.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(
            (self.status, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        self.stdout
    }
}

/// Returns the path of the program under test.
pub(crate) fn ibctl_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ibctl"))
}

/// A network namespace of the calling thread and of what it starts, with a sysfs that shows it.
/// Both end with the thread, and so do the interfaces in them.
pub(crate) struct Net {
    not_send: PhantomData<*const ()>,
}

impl Net {
    /// Enters a new namespace, which has `lo` only.
    pub(crate) fn new() -> Self {
        assert!(
            geteuid().is_root(),
            "this test makes network namespaces: run it as root"
        );
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
            .expect("a network and a mount namespace can be made");
        let none: Option<&str> = None;
        let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
        mount(none, "/", none, private, none).expect("mounts can be made private");
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
            .expect("sysfs can be mounted");
        Self {
            not_send: PhantomData,
        }
    }

    /// Enters a new namespace with the pair `v0`, `v1`: four queues each, up, NAPI on.
    pub(crate) fn with_veth() -> Self {
        let net = Self::new();
        let queues = "numrxqueues 4 numtxqueues 4";
        net.ip(&format!(
            "link add v0 {queues} type veth peer name v1 {queues}"
        ));
        net.program("ethtool", ["-K", "v0", "gro", "on"]).ok();
        net.ip("link set v0 up");
        net.ip("link set v1 up");
        net.wait("carrier", || net.sysfs("v0", "carrier") == "1");
        net
    }

    /// Waits for what the kernel does by itself.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "no {what} in 10 s"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts a program.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        // A plain `su` leaves the folders of administrators' programs out.
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(args)
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .stdin(Stdio::null())
            .env("LC_ALL", "C");
        command
    }

    /// Runs a program to its end.
    #[track_caller]
    pub(crate) fn program<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Done {
        let program = program.as_ref();
        let output = self.command(program, args).output();
        let output = output.unwrap_or_else(|error| panic!("{program:?} is needed here: {error}"));
        Done::of(output)
    }

    /// Runs `ibctl` with words split at spaces.
    #[track_caller]
    pub(crate) fn ibctl(&self, line: &str) -> Done {
        self.program(ibctl_path(), line.split_whitespace())
    }

    /// Runs `ip`, which must succeed.
    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        self.program("ip", line.split_whitespace()).ok()
    }

    /// Returns what `ip -j -d link` says of one interface.
    #[track_caller]
    pub(crate) fn ip_link(&self, link: &str) -> Value {
        let done = self.program("ip", ["-j", "-d", "link", "show", "dev", link]);
        done.json()[0].clone()
    }

    /// Returns a file of `/sys/class/net/LINK`, trimmed.
    #[track_caller]
    pub(crate) fn sysfs(&self, link: &str, file: &str) -> String {
        let path: PathBuf = ["/sys/class/net", link, file].iter().collect();
        let text = std::fs::read_to_string(&path);
        // A link without carrier answers EINVAL for some files.
        text.map_or_else(|error| error.to_string(), |text| text.trim().to_owned())
    }

    /// Writes a file of `/sys/class/net/LINK`.
    #[track_caller]
    pub(crate) fn write_sysfs(&self, link: &str, file: &str, text: &str) {
        let path: PathBuf = ["/sys/class/net", link, file].iter().collect();
        let written = std::fs::write(&path, text);
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Returns the active features that `ethtool --json -k` lists, by the kernel's names.
    #[track_caller]
    pub(crate) fn features(&self, link: &str) -> Vec<(String, bool)> {
        let done = self.program("ethtool", ["--json", "-k", link]);
        let document = done.json();
        let features = document[0].as_object().expect("an object");
        let single = features
            .iter()
            .filter(|(_, state)| state["requested"].is_boolean());
        single
            .map(|(name, state)| {
                let active = state["active"].as_bool().expect("a boolean");
                (kernel_name(name).to_owned(), active)
            })
            .collect()
    }

    /// Returns one number of the current settings that `ethtool -l` prints.
    #[track_caller]
    pub(crate) fn channels(&self, link: &str, title: &str) -> String {
        let text = self.program("ethtool", ["-l", link]).ok();
        let current = text.split("Current hardware settings:").nth(1);
        let line = current
            .into_iter()
            .flat_map(str::lines)
            .find_map(|line| line.strip_prefix(title)?.strip_prefix(':'));
        line.expect("ethtool prints it").trim().to_owned()
    }

    /// Returns all that independent readers can tell of an interface, to see that nothing changed.
    pub(crate) fn snapshot(&self, link: &str) -> String {
        let files = [
            "mtu",
            "tx_queue_len",
            "ifalias",
            "gro_flush_timeout",
            "napi_defer_hard_irqs",
            "threaded",
        ];
        let mut text = self.ip_link(link).to_string();
        for file in files {
            text = format!("{text}\n{file}={}", self.sysfs(link, file));
        }
        for (args, link) in [("-k", link), ("-l", link), ("-c", link)] {
            text.push_str(&self.program("ethtool", [args, link]).stdout);
        }
        text
    }
}

/// Returns the kernel's name of a feature that ethtool calls by an older one.
fn kernel_name(name: &str) -> &str {
    match name {
        "rx-checksumming" => "rx-checksum",
        "generic-segmentation-offload" => "tx-generic-segmentation",
        "generic-receive-offload" => "rx-gro",
        "large-receive-offload" => "rx-lro",
        "rx-vlan-offload" => "rx-vlan-hw-parse",
        "tx-vlan-offload" => "tx-vlan-hw-insert",
        "ntuple-filters" => "rx-ntuple-filter",
        "receive-hashing" => "rx-hashing",
        name => name,
    }
}

/// Returns the value that `ibctl get` prints in JSON.
#[track_caller]
pub(crate) fn value(net: &Net, link: &str, knob: &str, via: &str) -> String {
    let mut args = vec!["get", "-o", "json"];
    if !via.is_empty() {
        args.extend(["--via", via]);
    }
    args.extend(["--", link, knob]);
    let done = net.program(ibctl_path(), &args);
    let document = done.json();
    let reading = &document["knobs"][knob];
    if !via.is_empty() {
        assert_eq!(reading["via"], via, "{knob}: {reading}");
    }
    let value = reading["value"].as_str();
    value
        .unwrap_or_else(|| panic!("{knob} has no value: {done:?}"))
        .to_owned()
}
