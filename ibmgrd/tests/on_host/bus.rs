// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A system bus with polkit, both the real ones, that only this test sees, and clients of it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::mount::{MsFlags, mount};

use crate::support::{Net, wait};

/// A user whom polkit's rules of this bus let change settings.
pub(crate) const TRUSTED: u32 = 1;
/// A user whom they let do nothing at all.
pub(crate) const BANNED: u32 = 2;
/// A user whom they don't mention.
pub(crate) const NOBODY: u32 = 65534;

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
  </policy>
  <policy user="polkitd"><allow own="org.freedesktop.PolicyKit1"/></policy>
  <policy user="root"><allow own="org.freedesktop.PolicyKit1"/></policy>
  <include>OURS</include>
</busconfig>
"#;

const RULES: &str = r#"
polkit.addRule(function(action, subject) {
    if (action.id == "org.ibmgr1.change" && subject.user == "daemon") return polkit.Result.YES;
    if (subject.user == "bin") return polkit.Result.NO;
});
"#;

/// The bus and polkit; both end with it.
pub(crate) struct Bus {
    daemon: Child,
    polkit: Option<Child>,
}

impl Bus {
    /// Starts both, in the calling thread's mount namespace.
    pub(crate) fn start(_net: &Net) -> Self {
        for folder in ["/run", "/etc/polkit-1", "/usr/share/polkit-1/actions"] {
            mount(
                Some("tmpfs"),
                folder,
                Some("tmpfs"),
                MsFlags::empty(),
                Some("mode=755"),
            )
            .unwrap_or_else(|error| panic!("{folder}: {error} (is polkitd installed?)"));
        }
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
        let policy = ours.join("polkit/org.ibmgr1.policy");
        fs::copy(policy, "/usr/share/polkit-1/actions/org.ibmgr1.policy").expect("the policy");
        fs::create_dir("/etc/polkit-1/rules.d").expect("a folder");
        fs::write("/etc/polkit-1/rules.d/10-test.rules", RULES).expect("rules");
        fs::create_dir("/run/dbus").expect("a folder");
        let ours = fs::canonicalize(ours.join("dbus/org.ibmgr1.conf")).expect("the policy");
        // A user that there is not, such as `ibmgr` without the package, is left out by the bus.
        let text = CONFIG.replace("OURS", &ours.to_string_lossy());
        fs::write("/run/dbus/system.conf", text).expect("a file");
        let mut bus = Self {
            daemon: broker(),
            polkit: None,
        };
        bus.start_polkit();
        bus
    }

    /// Ends the bus, and starts it and polkit again.
    pub(crate) fn restart(&mut self) {
        self.stop_polkit();
        self.daemon.kill().expect("it can be ended");
        self.daemon.wait().expect("it ends");
        self.daemon = broker();
        self.start_polkit();
    }

    pub(crate) fn start_polkit(&mut self) {
        let polkit = quiet(Command::new("/usr/lib/polkit-1/polkitd").arg("--no-debug"));
        self.polkit = Some(polkit);
        self.wait_name("org.freedesktop.PolicyKit1");
    }

    pub(crate) fn stop_polkit(&mut self) {
        if let Some(mut polkit) = self.polkit.take() {
            polkit.kill().expect("it can be ended");
            polkit.wait().expect("it ends");
        }
    }

    /// Waits until somebody has the name.
    #[track_caller]
    pub(crate) fn wait_name(&self, name: &str) {
        wait(name, || {
            let told = self.call(0, &format!("org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus NameHasOwner s {name}"));
            if told.as_deref() == Ok("b true") {
                Ok(())
            } else {
                Err(told)
            }
        });
    }

    /// Calls a method with `busctl` as a user; the answer, or what it says of the failure.
    pub(crate) fn call(&self, user: u32, words: &str) -> Result<String, String> {
        self.busctl(user, &format!("call {words}"))
    }

    /// Calls a method of the manager.
    pub(crate) fn manager(&self, user: u32, words: &str) -> Result<String, String> {
        self.call(
            user,
            &format!("org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager {words}"),
        )
    }

    /// Calls a method of the manager as root, and returns all that is known of how it went.
    pub(crate) fn call_verbosely(&self, words: &str) -> String {
        let words = words
            .split_whitespace()
            .map(|word| word.replace("%20", " "));
        let mut command = Command::new("busctl");
        command.env("SYSTEMD_LOG_LEVEL", "debug");
        command
            .args([
                "--system",
                "call",
                "org.ibmgr1",
                "/org/ibmgr1",
                "org.ibmgr1.Manager",
            ])
            .args(words);
        run(command, 0).unwrap_or_else(|why| why)
    }

    /// Runs `busctl` as a user. Words are parted by blanks; `%20` is a blank in a word.
    pub(crate) fn busctl(&self, user: u32, words: &str) -> Result<String, String> {
        let words = words
            .split_whitespace()
            .map(|word| word.replace("%20", " "));
        let mut command = Command::new("busctl");
        command.arg("--system").arg("--no-pager").args(words);
        run(command, user)
    }

    /// Runs `gdbus` as a user, with words that may have blanks.
    pub(crate) fn gdbus(&self, user: u32, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("gdbus");
        command.args(words);
        run(command, user)
    }

    /// Writes what the daemon signals to a file, from the return on.
    pub(crate) fn monitor(&self, file: PathBuf) -> Monitor {
        let output = fs::File::create(&file).expect("a file");
        let mut command = Command::new("gdbus");
        command.args(["monitor", "--system", "--dest", "org.ibmgr1"]);
        let child = command
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .expect("gdbus");
        let monitor = Monitor { child, file };
        monitor.wait(&["is owned by"]);
        monitor
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop_polkit();
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// A running `gdbus monitor`.
pub(crate) struct Monitor {
    child: Child,
    file: PathBuf,
}

impl Monitor {
    /// Waits for a line that has all of these.
    #[track_caller]
    pub(crate) fn wait(&self, parts: &[&str]) -> String {
        wait(&format!("a signal with {parts:?}"), || {
            let told = fs::read_to_string(&self.file).unwrap_or_default();
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            told.lines().find(has_all).map(str::to_owned).ok_or(told)
        })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn broker() -> Child {
    let socket = "/run/dbus/system_bus_socket";
    let _ = fs::remove_file(socket);
    let mut command = Command::new("dbus-daemon");
    let command = command.args([
        "--nofork",
        "--nopidfile",
        "--config-file",
        "/run/dbus/system.conf",
    ]);
    let child = quiet(command);
    wait("the bus", || fs::metadata(socket).map(|_| ()));
    child
}

fn quiet(command: &mut Command) -> Child {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let program = command.get_program().to_owned();
    let child = command.spawn();
    child.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn run(mut command: Command, user: u32) -> Result<String, String> {
    command
        .uid(user)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    let output = command.output().expect("the client starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}
