// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl` where the daemon runs, and beside it.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{Home, Net, wait};

const DECLARED: &str = "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n";

fn by_daemon(home: &Home) -> bool {
    home.log().contains("by=\"user 0")
}

#[test]
fn a_set_goes_through_the_daemon_where_it_runs() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let mut daemon = home.start(&[]);
    let done = home.ibctl("set v0 mtu=1350 txqueuelen=9");
    assert!(done.ok().contains("1400 -> 1350"), "{done:?}");
    assert_eq!(net.sysfs("v0", "mtu"), "1350");
    home.wait_log(&["changed", "knob=\"mtu\"", "by=\"user 0"]);
    assert_eq!(daemon.knob("v0", "mtu").declared, "1350");
    let plan = home.ibctl("set v0 mtu=1300 --dry-run");
    assert!(plan.ok().contains("1350 -> 1300"), "{plan:?}");
    let json = home.ibctl("set v0 txqueuelen=10 -o json").json();
    assert_eq!(json["knobs"]["txqueuelen"]["before"], "9");
    // Errors are those of the engine itself.
    for line in [
        "set v0 mtu=99999 txqueuelen=3",
        "set v0 mode=connected",
        "set nope mtu=1",
        "set v0 mtu=x",
    ] {
        let (asked, direct) = (home.ibctl(line), home.ibctl(&format!("{line} --direct")));
        assert_ne!(asked.status, 0, "{line}");
        assert_eq!(
            (asked.status, asked.stderr),
            (direct.status, direct.stderr),
            "{line}"
        );
        assert_eq!(asked.stdout, direct.stdout, "{line}");
    }
    // Directly it is drift.
    home.ibctl("set v0 mtu=1320 --direct").ok();
    net.wait_sysfs("v0", "mtu", "1350");
    // And without a daemon there is nobody to heal.
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.ended().success());
    home.ibctl("set v0 mtu=1320").ok();
    assert_eq!(net.sysfs("v0", "mtu"), "1320");
    assert!(!home.path("http.sock").exists());
}

#[test]
fn hosts_are_changed_through_the_daemon_where_it_runs() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    let file = home.path("fabric.toml");
    fs::write(&file, "[[link]]\nmatch = { name = \"v*\" }\nmtu = 1300\n").unwrap();
    let file = file.display().to_string();
    let (asked, direct) = (
        home.ibctl(&format!("plan {file}")),
        home.ibctl(&format!("plan {file} --direct")),
    );
    assert_eq!(asked.ok(), direct.ok());
    assert!(asked.stdout.contains("fabric.toml:3:1"), "{asked:?}");
    assert_eq!(
        home.ibctl(&format!("apply {file} --dry-run")).ok(),
        asked.stdout
    );
    let applied = home.ibctl(&format!("apply {file} --confirm-within 60s"));
    assert!(applied.ok().contains("ibctl confirm"), "{applied:?}");
    assert!(by_daemon(&home));
    assert_eq!(net.sysfs("v1", "mtu"), "1300");
    let status = home.ibctl("status -o json").json();
    assert_eq!(
        (&status["state"], &status["daemon"]["ok"]),
        (&json!("pending"), &json!(true))
    );
    let text = home.ibctl("status");
    assert!(text.ok().contains("everything is as declared"), "{text:?}");
    let direct = home.ibctl("status --direct -o json").json();
    assert_eq!(
        (&direct["state"], &direct["daemon"]),
        (&json!("pending"), &json!(null))
    );
    // A set that would be put back with it, both ways.
    for line in ["set v1 mtu=1250", "set v1 mtu=1250 --direct"] {
        let refused = home.ibctl(line);
        assert_eq!(refused.status, 16, "{refused:?}");
        assert!(
            refused.stderr.contains("is part of a change that waits"),
            "{refused:?}"
        );
    }
    let back = home.ibctl("rollback");
    assert!(back.ok().contains("was taken back"), "{back:?}");
    assert_eq!(net.sysfs("v1", "mtu"), "1500");
    net.wait_sysfs("v0", "mtu", "1400");
    assert_eq!(home.ibctl("confirm").status, 16);
    home.ibctl(&format!("apply {file} --confirm-within 60s"))
        .ok();
    home.ibctl("confirm").ok();
    assert_eq!(home.ibctl("status -o json").json()["state"], "applied");
    // Nobody confirms this one; the daemon is what takes it back.
    fs::write(&file, "[[link]]\nmatch = { name = \"v1\" }\nmtu = 1200\n").unwrap();
    home.ibctl(&format!("apply {file} --confirm-within 1s"))
        .ok();
    net.wait_sysfs("v1", "mtu", "1300");
    fs::write(&file, "[[link]]\nmatch = { name = \"v1\" }\nmtu = 99999\n").unwrap();
    let refused = home.ibctl(&format!("apply {file}"));
    assert_eq!(refused.status, 5, "{refused:?}");
    assert!(refused.stdout.contains("can't be done"), "{refused:?}");
    drop(daemon);
}

#[test]
fn a_daemon_of_another_namespace_is_not_asked() {
    let _net = Net::with_veth();
    let home = Home::with(DECLARED);
    let _daemon = home.start(&[]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = Net::with_veth();
            home.ibctl("set v0 mtu=1350").ok();
            assert_eq!(other.sysfs("v0", "mtu"), "1350");
            let status = home.ibctl("status -o json").json();
            assert!(status["daemon"].is_null(), "{status}");
        });
    });
    assert!(!by_daemon(&home));
    assert_eq!(
        home.get("/v1/links/v0?knobs=mtu").ok()["knobs"]["mtu"]["value"],
        "1400"
    );
}

#[test]
fn what_happens_is_followed() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let mut daemon = home.start(&[]);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| home.ibctl("watch"));
        wait("somebody to follow", || {
            net.run("ip link set v0 mtu 1300");
            net.wait_sysfs("v0", "mtu", "1400");
            home.ibctl("set v0 txqueuelen=7").ok();
            home.ibctl("set v0 txqueuelen=8").ok();
            std::thread::sleep(std::time::Duration::from_millis(50));
            if home.log().matches("drift").count() > 3 {
                Ok(())
            } else {
                Err(())
            }
        });
        daemon.signal(Signal::SIGTERM);
        assert!(daemon.ended().success());
        let seen = watcher.join().unwrap();
        let text = seen.ok();
        assert!(
            text.contains("v0: mtu 1400 -> 1300 (drift: somebody changed it"),
            "{text}"
        );
        assert!(
            text.contains("v0: txqueuelen 7 -> 8 (changed: it was asked for; by user 0, process"),
            "{text}"
        );
    });
}
