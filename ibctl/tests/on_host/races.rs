// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces that vanish midway, and sets that run at once.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Done, Net, ibctl_path};

/// A set with many steps, so that it is under way for a while.
fn long_set(net: &Net) -> Vec<String> {
    let features = net.features("v0");
    let document = net.ibctl("get v0 -o json").json();
    let settable = features
        .iter()
        .filter(|(name, _)| document["knobs"][format!("feature.{name}")]["support"] == "settable");
    let words = settable.map(|(name, on)| {
        let text = if *on { "off" } else { "on" };
        format!("feature.{name}={text}")
    });
    let mut args = vec!["set".into(), "v0".into(), "-o".into(), "json".into()];
    args.extend(["mtu=1400", "txqueuelen=5", "alias=x", "channels.rx=2"].map(String::from));
    args.extend(words);
    args
}

#[test]
fn an_interface_that_vanishes_midway_is_told() {
    let net = Net::with_veth();
    let args = long_set(&net);
    let mut seen: BTreeMap<(i32, bool), u32> = BTreeMap::new();
    for round in 0..2000_u64 {
        let child = net
            .command(ibctl_path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ibctl runs");
        thread::sleep(Duration::from_micros(100 * (round % 60)));
        net.ip("link del v0");
        let done = Done::of(child.wait_with_output().expect("it ends"));
        // It can vanish while it is read, before anything was set: then there is no report.
        let is_before = done.status == 10 && done.stdout.is_empty();
        *seen.entry((done.status, is_before)).or_default() += 1;
        match done.status {
            // Done before, or refused before (some features depend on others).
            0 | 7 | 11 => {}
            4 => {
                assert_eq!(done.stdout, "", "{done:?}");
                assert!(done.stderr.contains("no interface is called"), "{done:?}");
            }
            10 if is_before => {
                let error: serde_json::Value = serde_json::from_str(&done.stderr).expect("JSON");
                assert_eq!(error["code"], "vanished", "{done:?}");
            }
            10 => {
                let report = done.json();
                assert_eq!(report["code"], "vanished", "{done:?}");
                let knobs = report["knobs"].as_object().expect("an object");
                assert!(knobs.values().any(|knob| knob["outcome"] == "vanished"));
                assert!(done.stderr.contains("disappeared"), "{done:?}");
            }
            _ => panic!("{done:?}"),
        }
        let queues = "numrxqueues 4 numtxqueues 4";
        net.ip(&format!(
            "link add v0 {queues} type veth peer name v1 {queues}"
        ));
        if seen.get(&(10, false)).is_some_and(|count| *count >= 5) {
            return;
        }
    }
    panic!("it never vanished midway: {seen:?}");
}

#[test]
fn a_name_that_passes_to_another_interface_is_not_confused() {
    let net = Net::with_veth();
    let args = long_set(&net);
    let queues = "numrxqueues 4 numtxqueues 4";
    for round in 0..60_u64 {
        let child = net
            .command(ibctl_path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ibctl runs");
        thread::sleep(Duration::from_micros(100 * round));
        // One batch: the name is another interface's at once.
        let script = format!(
            "printf 'link del v0\\nlink add v0 mtu 1234 {queues} type veth peer name v1 {queues}\\n' | ip -batch -"
        );
        net.program("bash", ["-c", &script]).ok();
        let done = Done::of(child.wait_with_output().expect("it ends"));
        let mtu = net.ip_link("v0")["mtu"].clone();
        if done.status == 10 {
            assert_eq!(mtu, 1234, "the new interface was not touched: {done:?}");
        }
    }
}

#[test]
fn sets_at_once_do_not_mix() {
    let net = Net::with_veth();
    for _ in 0..20 {
        let children: Vec<_> = (0..8)
            .map(|at| {
                let words = [
                    format!("mtu={}", 1400 + at),
                    format!("txqueuelen={}", 400 + at),
                    format!("alias={at}"),
                ];
                let mut command = net.command(ibctl_path(), ["set", "v0"]);
                command
                    .args(words)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                command.spawn().expect("ibctl runs")
            })
            .collect();
        for child in children {
            let done = Done::of(child.wait_with_output().expect("it ends"));
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
        }
        let link = net.ip_link("v0");
        let number = |field: &str| link[field].as_i64().expect("a number");
        let alias: i64 = link["ifalias"]
            .as_str()
            .expect("text")
            .parse()
            .expect("a number");
        assert_eq!(
            (number("mtu"), number("txqlen")),
            (1400 + alias, 400 + alias),
            "{link}"
        );
    }
}

#[test]
fn lists_survive_interfaces_that_come_and_go() {
    let net = Net::with_veth();
    for at in 0..30 {
        net.ip(&format!("link add a{at} type veth peer name b{at}"));
    }
    let script = "for i in $(seq 60); do ip link del a$((i % 30)) 2>/dev/null; \
                  ip link add a$((i % 30)) type veth peer name b$((i % 30)); done";
    let mut churn = net
        .command("bash", ["-c", script])
        .spawn()
        .expect("bash runs");
    let mut lists = 0;
    while churn.try_wait().expect("it can be asked").is_none() {
        let done = net.ibctl("show -o json");
        assert_eq!((done.status, done.stderr.as_str()), (0, ""));
        assert!(done.json().as_array().expect("an array").len() > 50);
        lists += 1;
    }
    assert!(lists > 3, "{lists}");
}

/// A set whose last knob is refused: however it ends, all is as it was.
const REFUSED: [&str; 8] = [
    "set",
    "v0",
    "-o",
    "json",
    "mtu=1400",
    "txqueuelen=5",
    "alias=x",
    "channels.rx=0",
];

#[test]
fn an_interface_that_is_renamed_midway_is_not_left_half_set() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    let mut renamed = 0;
    for round in 0..2000_u64 {
        let child = net
            .command(ibctl_path(), REFUSED)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ibctl runs");
        thread::sleep(Duration::from_micros(100 * (round % 60)));
        net.ip("link set v0 name w0");
        let done = Done::of(child.wait_with_output().expect("it ends"));
        net.ip("link set w0 name v0");
        assert_eq!(net.snapshot("v0"), before, "{done:?}");
        if done.stderr.contains("renamed to w0") {
            assert_eq!(done.status, 10, "{done:?}");
            assert_eq!(done.json()["link"], "w0", "{done:?}");
            renamed += 1;
        }
        if renamed >= 5 {
            return;
        }
    }
    panic!("it was never renamed midway");
}

#[test]
fn ctrl_c_does_not_leave_a_set_half_done() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    // A shell's background job, which this may be, ignores Ctrl-C, and so would ibctl.
    let mut interruptible = vec!["--default-signal=INT".as_ref(), ibctl_path().as_os_str()];
    interruptible.extend(REFUSED.map(std::ffi::OsStr::new));
    let mut midway = 0;
    for round in 0..2000_u64 {
        let child = net
            .command("env", &interruptible)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ibctl runs");
        thread::sleep(Duration::from_micros(100 * (round % 60)));
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process number"));
        kill(pid, Signal::SIGINT).expect("it is there until it is waited for");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(net.snapshot("v0"), before, "{output:?}");
        // The signal ended it, but after its report.
        let is_told = String::from_utf8_lossy(&output.stdout).contains("put-back");
        midway += usize::from(is_told && output.status.signal() == Some(Signal::SIGINT as i32));
        if midway >= 5 {
            return;
        }
    }
    panic!("it was never interrupted midway");
}
