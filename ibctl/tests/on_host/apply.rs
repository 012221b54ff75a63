// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole hosts on real interfaces: applied, refused, confirmed, rolled back, killed midway.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{Done, Net, ibctl_path};

/// A namespace with pairs of veth, a `/run/ibmgr` of its own, and a place for files.
struct Host {
    net: Net,
    files: tempfile::TempDir,
}

impl Host {
    fn with_pairs(pairs: usize) -> Self {
        let net = Net::new();
        fs::create_dir_all("/run/ibmgr").expect("a folder");
        let (none, size) = (MsFlags::empty(), Some("size=1m"));
        mount(Some("tmpfs"), "/run/ibmgr", Some("tmpfs"), none, size).expect("a tmpfs");
        let lines: String = (0..pairs)
            .map(|n| format!("link add a{n} type veth peer name b{n}\n"))
            .collect();
        let files = tempfile::tempdir().expect("a folder");
        let batch = files.path().join("batch");
        fs::write(&batch, lines).expect("a file");
        net.program("ip", ["-batch", batch.to_str().expect("UTF-8")])
            .ok();
        Self { net, files }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// Declares values for every veth.
    fn declare(&self, mtu: u32) -> PathBuf {
        let text = format!(
            "[[link]]\nmatch = {{ kind = \"veth\" }}\nmtu = {mtu}\ntxqueuelen = {mtu}\n\
             alias = \"rail {mtu}\"\ngso-max-size = {}\n",
            mtu + 50_000
        );
        self.file(&format!("{mtu}.toml"), &text)
    }

    fn run(&self, verb: &str, file: &Path, more: &[&str]) -> Done {
        let mut args = vec![verb, file.to_str().expect("UTF-8")];
        args.extend(more);
        self.net.program(ibctl_path(), args)
    }

    /// Returns what ip(8) says of every veth: MTU, queue length, alias, GSO size.
    fn state(&self) -> BTreeMap<String, [String; 4]> {
        let text = self
            .net
            .program("ip", ["-j", "-d", "link", "show", "type", "veth"])
            .ok();
        let links: Value = serde_json::from_str(&text).expect("JSON");
        let link = |link: &Value| {
            let fields = ["mtu", "txqlen", "ifalias", "gso_max_size"];
            let name = link["ifname"].as_str().expect("a name").to_owned();
            (name, fields.map(|field| link[field].to_string()))
        };
        links.as_array().expect("a list").iter().map(link).collect()
    }

    #[track_caller]
    fn assert_all(&self, mtu: u32) {
        for (link, [found, queue, alias, gso]) in self.state() {
            let wanted = [
                mtu.to_string(),
                mtu.to_string(),
                format!("\"rail {mtu}\""),
                (mtu + 50_000).to_string(),
            ];
            assert_eq!([found, queue, alias, gso], wanted, "{link}");
        }
    }

    /// Kills an apply when its journal has so many notes behind the first, or at once for 0.
    fn kill_after(&self, notes: usize, file: &Path, more: &[&str]) {
        let journal = self.journal();
        let count = || {
            let text = fs::read(&journal).unwrap_or_default();
            // The plan names the file: it is this one's journal.
            let is_it = text.windows(9).any(|part| part == b"1300.toml");
            is_it.then(|| text.iter().filter(|byte| **byte == b'\n').count())
        };
        let before = fs::metadata(&journal)
            .and_then(|m| m.modified())
            .expect("a journal");
        let mut command = self.net.command(ibctl_path(), ["apply"]);
        command
            .arg(file)
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("ibctl runs");
        while notes > 0 && child.try_wait().expect("it can be asked").is_none() {
            let is_new = fs::metadata(&journal).and_then(|m| m.modified());
            if is_new.is_ok_and(|now| now != before) && count().is_some_and(|now| now > notes) {
                break;
            }
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process"));
        let _ = kill(pid, Signal::SIGKILL);
        child.wait().expect("it ended");
    }

    fn journal(&self) -> PathBuf {
        let folder = fs::read_dir("/run/ibmgr").expect("a folder").flatten();
        let mut journals = folder.map(|entry| entry.path().join("journal"));
        journals.find(|path| path.exists()).expect("a journal")
    }

    fn status(&self) -> Value {
        self.net.ibctl("status -o json").json()
    }
}

#[test]
fn hundreds_of_interfaces_and_nothing_the_second_time() {
    let host = Host::with_pairs(150);
    assert_eq!(host.status()["state"], "idle");
    let file = host.declare(1400);
    let done = host
        .run("apply", &file, &["--dry-run", "-o", "json"])
        .json();
    assert_eq!(done["steps"].as_array().expect("a list").len(), 1200);
    let before = host.state();
    let done = host.run("apply", &file, &["-o", "json"]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    assert_eq!(done.json()["end"], "applied");
    assert_ne!(host.state(), before);
    host.assert_all(1400);
    let done = host.run("apply", &file, &["-o", "json"]).json();
    assert_eq!(done["end"], "nothing-to-do");
    assert_eq!(host.status()["state"], "applied");
}

#[test]
fn one_refusal_puts_everything_back() {
    let host = Host::with_pairs(3);
    host.net.ip("link set a1 up");
    host.net.ip("link set b1 up");
    // Both ends are up: less receive queues than the peer sends through are refused.
    let file = host.file(
        "one.toml",
        "[[link]]\nmatch = { kind = \"veth\" }\nmtu = 1400\n\n\
         [[link]]\nmatch = { name = \"a1\" }\n\"channels.rx\" = 0\n",
    );
    let before = host.state();
    let done = host.run("apply", &file, &["-o", "json"]);
    assert_eq!(done.status, 7, "{done:?}");
    let report = done.json();
    assert_eq!(
        (&report["end"], &report["code"]),
        (&"rolled-back".into(), &"refused".into())
    );
    assert!(done.stderr.contains("everything was put back"), "{done:?}");
    assert_eq!(host.state(), before);
    assert_eq!(host.status()["state"], "rolled-back");
}

#[test]
fn what_cannot_be_planned_changes_nothing() {
    let host = Host::with_pairs(2);
    let before = host.state();
    let file = host.file(
        "bad.toml",
        "[[link]]\nmatch = { kind = \"veth\" }\nmtu = 1400\nmode = \"connected\"\n",
    );
    let done = host.run("apply", &file, &[]);
    assert_eq!(done.status, 6, "{done:?}");
    assert!(done.stdout.contains("can't be done"), "{done:?}");
    assert!(
        done.stderr.contains("and 3 more cannot be done"),
        "{done:?}"
    );
    let file = host.file(
        "broken.toml",
        "[[link]]\nmatch = { kind = \"veth\" }\nmtuu = 1400\n",
    );
    let done = host.run("apply", &file, &[]);
    assert_eq!(done.status, 5, "{done:?}");
    assert!(done.stderr.contains("broken.toml:3"), "{done:?}");
    let done = host.run("apply", &PathBuf::from("/nowhere.toml"), &[]);
    assert_eq!(done.status, 5, "{done:?}");
    assert_eq!(host.state(), before);
    assert_eq!(host.status()["state"], "idle");
}

#[test]
fn applies_at_once_do_not_mix() {
    let host = Host::with_pairs(20);
    let files: Vec<_> = (0..4).map(|n| host.declare(1400 + n)).collect();
    for _ in 0..4 {
        let children: Vec<_> = files
            .iter()
            .map(|file| {
                let mut command = host.net.command(ibctl_path(), ["apply"]);
                command
                    .arg(file)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                command.spawn().expect("ibctl runs")
            })
            .collect();
        for child in children {
            let done = Done::of(child.wait_with_output().expect("it ends"));
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
        }
        let state = host.state();
        let mtu: u32 = state["a0"][0].parse().expect("a number");
        host.assert_all(mtu);
    }
}

#[test]
fn unconfirmed_is_put_back_and_confirmed_stays() {
    let host = Host::with_pairs(4);
    let (first, second) = (host.declare(1400), host.declare(1300));
    host.run("apply", &first, &[]).ok();
    let done = host.run("apply", &second, &["--confirm-within", "2s", "-o", "json"]);
    assert_eq!(done.json()["confirm-within-seconds"], 2, "{done:?}");
    host.assert_all(1300);
    let pending = host.status();
    assert_eq!(pending["state"], "pending");
    // Until that is decided, no other change goes on top of it.
    let done = host.run("apply", &first, &[]);
    assert_eq!(done.status, 16, "{done:?}");
    host.net
        .wait("rollback", || host.status()["state"] == "rolled-back");
    host.assert_all(1400);
    assert_eq!(host.status()["why"], "it was not confirmed in time");

    host.run("apply", &second, &["--confirm-within", "2s"]).ok();
    host.net.ibctl("confirm").ok();
    assert_eq!(host.net.ibctl("confirm").status, 16);
    thread::sleep(Duration::from_millis(2500));
    host.assert_all(1300);

    host.run("apply", &first, &["--confirm-within", "100s"])
        .ok();
    let done = host.net.ibctl("rollback");
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
    host.assert_all(1300);
    assert_eq!(host.net.ibctl("rollback").status, 16);
}

#[test]
fn the_rollback_outlives_whoever_asked() {
    let host = Host::with_pairs(100);
    let (first, second) = (host.declare(1400), host.declare(1300));
    host.run("apply", &first, &[]).ok();
    let mut interrupted = 0;
    // On a busy machine the signal may come when all is done: then it is tried again.
    for (round, notes) in [0, 1, 100, 400].into_iter().cycle().enumerate() {
        if round >= 4 && interrupted >= 2 {
            break;
        }
        assert!(round < 24, "{interrupted} were interrupted");
        host.kill_after(notes, &second, &["--confirm-within", "1s"]);
        interrupted += u32::from(host.status()["state"] == "interrupted");
        host.net.wait("rollback", || {
            host.status()["state"] != "interrupted" && host.state()["a0"][0] == "1400"
        });
        host.assert_all(1400);
        // One that was killed before its first note has changed nothing, and says nothing.
        let state = host.status()["state"].clone();
        assert!(
            state == "rolled-back" || notes == 0 && state == "applied",
            "{state}"
        );
    }
}

#[test]
fn killed_midway_the_next_one_converges_and_says_so() {
    let host = Host::with_pairs(100);
    let (first, second) = (host.declare(1400), host.declare(1300));
    host.run("apply", &first, &[]).ok();
    let mut interrupted = 0;
    for round in 0..60 {
        host.kill_after(1 + 37 * (round % 17), &second, &[]);
        let status = host.status();
        if status["state"] != "interrupted" {
            // It was done before the signal came.
            host.run("apply", &first, &[]).ok();
            continue;
        }
        interrupted += 1;
        assert_eq!(status["what"].as_str(), second.to_str());
        if interrupted % 2 == 0 {
            let done = host.net.ibctl("rollback -o json");
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
            assert_eq!(done.json()["end"], "rolled-back", "{done:?}");
            host.assert_all(1400);
            assert_eq!(host.status()["why"], "the change was interrupted");
        } else {
            let done = host.run("apply", &second, &["-o", "json"]);
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
            let report = done.json();
            assert_eq!(report["interrupted"]["end"], "rolled-back", "{report}");
            host.assert_all(1300);
            host.run("apply", &first, &[]).ok();
        }
        if interrupted >= 6 {
            return;
        }
    }
    panic!("it was interrupted {interrupted} times only");
}

#[test]
fn a_full_disk_and_a_damaged_journal_change_nothing() {
    let host = Host::with_pairs(4);
    let (first, second) = (host.declare(1400), host.declare(1300));
    host.run("apply", &first, &[]).ok();
    let _ = fs::write("/run/ibmgr/ballast", vec![0; 2 * 1024 * 1024]);
    let done = host.run("apply", &second, &["-o", "json"]);
    assert_eq!(done.status, 15, "{done:?}");
    assert!(done.stderr.contains("No space left"), "{done:?}");
    assert_eq!(done.json()["end"], "not-started");
    host.assert_all(1400);
    fs::remove_file("/run/ibmgr/ballast").expect("it is there");

    let journal = host.journal();
    fs::write(&journal, b"00000000 {}\n00000000 {}\n").expect("it can be written");
    let done = host.run("apply", &second, &[]);
    assert_eq!(done.status, 15, "{done:?}");
    assert!(done.stderr.contains("damaged in line 1"), "{done:?}");
    host.assert_all(1400);
    fs::remove_file(&journal).expect("it is there");
    host.run("apply", &second, &[]).ok();
    host.assert_all(1300);
}

#[test]
fn an_interface_that_goes_midway_takes_no_other_along() {
    let host = Host::with_pairs(40);
    let mut vanished = 0;
    for round in 0..600_u64 {
        let mtu = 1300 + u32::try_from(round % 2).expect("0 or 1");
        let file = host.declare(mtu);
        let mut command = host.net.command(ibctl_path(), ["apply", "-o", "json"]);
        command
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("ibctl runs");
        thread::sleep(Duration::from_micros(400 * (round % 70)));
        host.net.ip("link del a39");
        let done = Done::of(child.wait_with_output().expect("it ends"));
        assert!(matches!(done.status, 0 | 10), "{done:?}");
        if done.status == 10 && !done.stdout.is_empty() {
            vanished += 1;
            assert_eq!(done.json()["end"], "applied", "{done:?}");
            host.assert_all(mtu);
        }
        host.net.ip("link add a39 type veth peer name b39");
        if vanished >= 2 {
            return;
        }
    }
    panic!("it vanished midway {vanished} times only");
}

#[test]
fn the_guard_is_in_a_scope_of_its_own_where_systemd_runs() {
    let host = Host::with_pairs(1);
    fs::create_dir_all("/run/systemd").expect("a folder");
    mount(
        Some("tmpfs"),
        "/run/systemd",
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=1m"),
    )
    .expect("a tmpfs");
    fs::create_dir("/run/systemd/system").expect("a folder");
    let (first, second) = (host.declare(1400), host.declare(1300));
    host.run("apply", &first, &[]).ok();
    let before = host.state();
    // The real one needs the manager: this one tells what it was asked for, and does what a scope does.
    let told = host.files.path().join("told");
    let works = format!(
        "#!/bin/sh\necho \"$@\" > {}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n",
        told.display()
    );
    for (script, is_scope) in [(works.as_str(), true), ("#!/bin/sh\nexit 1\n", false)] {
        let tool = host.file("systemd-run", script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&tool, mode).expect("a program");
        let file = second.to_str().expect("UTF-8");
        let mut command = host
            .net
            .command(ibctl_path(), ["apply", file, "--confirm-within", "1s"]);
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = host.files.path().display();
        command.env("PATH", format!("{folder}:{path}:/usr/sbin:/sbin"));
        let output = command.output().expect("ibctl runs");
        assert!(output.status.success(), "{output:?}");
        assert_ne!(host.state(), before);
        let words = fs::read_to_string(&told).unwrap_or_default();
        assert_eq!(words.starts_with("--scope "), is_scope, "{words}");
        assert_eq!(words.contains("await-confirmation"), is_scope, "{words}");
        let _ = fs::remove_file(&told);
        let start = std::time::Instant::now();
        while host.state() != before {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "it was not put back"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}
