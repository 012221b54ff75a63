// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network namespace, a daemon in it, and independent readers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ibmgr_api::status::{KnobStatus, LinkStatus, Status};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// The same in the long form.
const LONG_LIMIT: Duration = Duration::from_secs(600);

/// Says whether the long form was asked for, as `cargo lab test --long` does.
pub(crate) fn is_long() -> bool {
    std::env::var_os("IB_TESTS_LONG").is_some()
}

fn limit() -> Duration {
    if is_long() { LONG_LIMIT } else { LIMIT }
}

/// A network namespace of the calling thread and of what it starts, with a sysfs that shows it.
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
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("namespaces");
        let none: Option<&str> = None;
        let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
        mount(none, "/", none, private, none).expect("mounts can be made private");
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
            .expect("sysfs can be mounted");
        Self {
            not_send: PhantomData,
        }
    }

    /// Enters a new namespace with the pair `v0`, `v1`, up.
    pub(crate) fn with_veth() -> Self {
        let net = Self::new();
        net.run("ip link add v0 type veth peer name v1");
        net.run("ip link set v0 up");
        net.run("ip link set v1 up");
        net
    }

    /// Runs a program, which must succeed.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new(words.next().expect("a program"))
            .args(words)
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .output();
        let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Feeds lines to `ip -batch`.
    #[track_caller]
    pub(crate) fn batch(&self, lines: &[String]) {
        let mut ip = Command::new("ip");
        let mut ip = ip
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("ip");
        let mut input = ip.stdin.take().expect("an input");
        input
            .write_all(lines.join("\n").as_bytes())
            .expect("ip reads");
        drop(input);
        assert!(ip.wait().expect("ip ends").success());
    }

    /// Returns a file of `/sys/class/net/LINK`, trimmed.
    pub(crate) fn sysfs(&self, link: &str, file: &str) -> String {
        let path: PathBuf = ["/sys/class/net", link, file].iter().collect();
        let text = fs::read_to_string(path);
        text.map_or_else(|error| error.to_string(), |text| text.trim().to_owned())
    }

    /// Writes a file of `/sys/class/net/LINK`.
    #[track_caller]
    pub(crate) fn write_sysfs(&self, link: &str, file: &str, text: &str) {
        let path: PathBuf = ["/sys/class/net", link, file].iter().collect();
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Waits until a file of `/sys/class/net/LINK` reads so.
    #[track_caller]
    pub(crate) fn wait_sysfs(&self, link: &str, file: &str, wanted: &str) {
        wait(&format!("{link}/{file} to be {wanted}"), || {
            let now = self.sysfs(link, file);
            if now == wanted { Ok(()) } else { Err(now) }
        });
    }
}

/// Waits for what happens by itself.
#[track_caller]
pub(crate) fn wait<T, E: std::fmt::Debug>(
    what: &str,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> T {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(now) if start.elapsed() > limit() => {
                panic!("waited {:?} for {what}; it is {now:?}", limit())
            }
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Folders of a daemon, which outlive its process.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// Makes folders with one file of declarations.
    pub(crate) fn with(toml: &str) -> Self {
        let home = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        fs::create_dir(home.path("conf.d")).expect("a folder");
        home.declare("10-test.toml", toml);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of declarations.
    pub(crate) fn declare(&self, name: &str, toml: &str) {
        fs::write(self.path("conf.d").join(name), toml).expect("the file can be written");
    }

    /// Returns the command that starts the daemon.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ibmgrd"));
        command
            .arg("--config-dir")
            .arg(self.path("conf.d"))
            .arg("--socket")
            .arg(self.path("http.sock"))
            .arg("--keep-dir")
            .arg(self.path("keep"))
            .arg("--state-dir")
            .arg(self.path("state"))
            .arg("--lock")
            .arg(self.path("lock"))
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Starts the daemon and returns at once.
    pub(crate) fn spawn(&self, args: &[&str], manager: Option<&Path>) -> Daemon<'_> {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"));
        let mut command = self.command();
        command.args(args).stderr(log.expect("a log"));
        if let Some(manager) = manager {
            command.env("NOTIFY_SOCKET", manager);
        }
        Daemon {
            child: command.spawn().expect("the daemon starts"),
            home: self,
        }
    }

    /// Starts the daemon and waits until it says that it is ready.
    #[track_caller]
    pub(crate) fn start(&self, args: &[&str]) -> Daemon<'_> {
        let path = self.path("notify");
        let _ = fs::remove_file(&path);
        let manager = UnixDatagram::bind(&path).expect("a socket");
        let daemon = self.spawn(args, Some(&path));
        expect_line(&manager, "READY=1");
        daemon
    }

    /// Returns the log of all daemons so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Waits for a line of the log that has all of these.
    #[track_caller]
    pub(crate) fn wait_log(&self, parts: &[&str]) -> String {
        wait(&format!("a line with {parts:?}"), || {
            let log = self.log();
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            log.lines().find(has_all).map(str::to_owned).ok_or(log)
        })
    }
}

/// Waits until a service manager's socket is told a line.
#[track_caller]
pub(crate) fn expect_line(manager: &UnixDatagram, line: &str) -> String {
    manager
        .set_read_timeout(Some(limit()))
        .expect("a time limit");
    let mut buffer = [0; 4096];
    loop {
        let length = manager.recv(&mut buffer);
        let length = length.unwrap_or_else(|error| panic!("no {line}: {error}"));
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if text.lines().any(|other| other == line) {
            return text;
        }
    }
}

/// A running daemon; killed when dropped.
pub(crate) struct Daemon<'a> {
    child: Child,
    home: &'a Home,
}

impl Daemon<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process number");
        kill(Pid::from_raw(pid), signal).expect("it can be signalled");
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait("the daemon's end", || {
            self.child.try_wait().expect("it is our child").ok_or(())
        })
    }

    /// Sends a request, and returns status and body.
    #[track_caller]
    pub(crate) fn http(&self, request: &str) -> (u16, String) {
        let stream = UnixStream::connect(self.home.path("http.sock"));
        let mut stream = stream.expect("the daemon listens");
        stream
            .set_read_timeout(Some(limit()))
            .expect("a time limit");
        let text = format!("{request} HTTP/1.1\r\nHost: ibmgr\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split_whitespace().nth(1).expect("a status");
        (status.parse().expect("a number"), body.to_owned())
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Status {
        let (status, body) = self.http("GET /v1/status");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    #[track_caller]
    pub(crate) fn link(&self, name: &str) -> LinkStatus {
        let status = self.status();
        let link = status.links.iter().find(|link| link.link == name).cloned();
        link.unwrap_or_else(|| panic!("{name} is not managed: {status:?}"))
    }

    #[track_caller]
    pub(crate) fn knob(&self, link: &str, knob: &str) -> KnobStatus {
        let link = self.link(link);
        let status = link.knobs.get(knob).cloned();
        status.unwrap_or_else(|| panic!("{knob} is not declared: {link:?}"))
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let log = self.home.log();
            let _ = writeln!(std::io::stderr(), "the daemon's log:\n{log}");
        }
    }
}
