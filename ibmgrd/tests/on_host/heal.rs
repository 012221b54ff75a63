// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drift made by `ip`, `ethtool` and files: put right or reported, and explained.

use std::time::{Duration, Instant};

use ibmgr_api::status::Standing;

use crate::support::{Home, Net, wait};

const DECLARED: &str = r#"
[[link]]
match = { name = "v0" }
mtu = 1400
txqueuelen = 77
"feature.rx-gro" = "on"
"#;

#[test]
fn what_is_declared_is_set_at_the_start_and_nothing_else() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let other = net.run("ip -d link show v1");
    let daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "77");
    assert!(
        net.run("ethtool -k v0")
            .contains("generic-receive-offload: on")
    );
    assert_eq!(net.run("ip -d link show v1"), other);
    let status = daemon.status();
    assert!(status.ok, "{status:?}");
    assert_eq!(status.links.len(), 1, "{status:?}");
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(
        (mtu.standing, mtu.value.as_deref()),
        (Standing::Holds, Some("1400"))
    );
    assert_eq!((mtu.origin.line, mtu.origin.column), (4, 1));
    home.wait_log(&[
        "changed",
        "link=\"v0\"",
        "knob=\"mtu\"",
        "from=\"1500\"",
        "to=\"1400\"",
        "the daemon started",
        "10-test.toml:4:1",
    ]);
}

#[test]
fn drift_from_outside_is_healed_and_explained() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    net.run("ip link set v0 mtu 1300");
    net.wait_sysfs("v0", "mtu", "1400");
    net.write_sysfs("v0", "tx_queue_len", "5");
    net.wait_sysfs("v0", "tx_queue_len", "77");
    net.run("ethtool -K v0 gro off");
    wait("gro to be on", || {
        let features = net.run("ethtool -k v0");
        let is_on = features.contains("generic-receive-offload: on");
        is_on.then_some(()).ok_or(features)
    });
    for (knob, from, to) in [
        ("mtu", "1300", "1400"),
        ("txqueuelen", "5", "77"),
        ("feature.rx-gro", "off", "on"),
    ] {
        let (knob_text, origin) = (format!("knob=\"{knob}\""), "10-test.toml:");
        let before = format!("to=\"{from}\"");
        home.wait_log(&[
            "drift",
            "link=\"v0\"",
            &knob_text,
            &before,
            "somebody changed it",
            origin,
        ]);
        let (from, to) = (format!("from=\"{from}\""), format!("to=\"{to}\""));
        home.wait_log(&[
            "changed",
            "link=\"v0\"",
            &knob_text,
            &from,
            &to,
            "somebody changed it",
            origin,
        ]);
        let status = wait("it to hold", || {
            let status = daemon.knob("v0", knob);
            if status.standing == Standing::Holds {
                Ok(status)
            } else {
                Err(Box::new(status))
            }
        });
        assert_eq!(status.drifts, 1, "{status:?}");
    }
    assert_eq!(daemon.status().counters.healed, 3);
}

#[test]
fn policies_say_what_becomes_of_drift() {
    let net = Net::with_veth();
    let home = Home::with(
        r#"
[[link]]
match = { name = "v0" }
mtu = { value = 1400, policy = "report" }
txqueuelen = { value = 77, policy = "ignore" }
"#,
    );
    let daemon = home.start(&[]);
    assert_eq!(
        net.sysfs("v0", "tx_queue_len"),
        "77",
        "it is set at the start"
    );
    net.run("ip link set v0 txqueuelen 5");
    net.run("ip link set v0 mtu 1300");
    home.wait_log(&["drift", "knob=\"mtu\"", "to=\"1300\""]);
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(
        (mtu.standing, mtu.value.as_deref()),
        (Standing::Drifted, Some("1300"))
    );
    assert!(!daemon.status().ok);
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "5");
    assert!(!home.log().contains("drift link=\"v0\" knob=\"txqueuelen\""));
    // Back by its own: told once, and fine.
    net.run("ip link set v0 mtu 1400");
    home.wait_log(&["settled", "knob=\"mtu\""]);
    assert!(daemon.status().ok);
}

#[test]
fn what_has_no_notification_is_polled_and_nothing_else() {
    let net = Net::with_veth();
    net.run("ethtool -K v0 gro on");
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\ngro-flush-timeout = \"20us\"\n");
    let daemon = home.start(&["--poll", "0.2"]);
    assert_eq!(net.sysfs("v0", "gro_flush_timeout"), "20000");
    assert_eq!(daemon.status().polled, 1);
    net.write_sysfs("v0", "gro_flush_timeout", "5000");
    net.wait_sysfs("v0", "gro_flush_timeout", "20000");
    home.wait_log(&[
        "changed",
        "gro-flush-timeout",
        "from=\"5us\"",
        "to=\"20us\"",
    ]);
    drop(daemon);

    home.declare("10-test.toml", DECLARED);
    let daemon = home.start(&["--poll", "0.01"]);
    assert_eq!(daemon.status().polled, 0);
    // The settings' own notifications come first.
    std::thread::sleep(Duration::from_millis(200));
    let before = daemon.status().counters;
    let switches = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    // And the end of the connection that asked.
    std::thread::sleep(Duration::from_millis(200));
    let asleep = switches(daemon.pid());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(
        switches(daemon.pid()),
        asleep,
        "it woke up without an event"
    );
    let after = daemon.status().counters;
    assert_eq!(
        (after.polls, after.wakeups - before.wakeups),
        (0, 1),
        "{after:?}"
    );
}

#[test]
fn a_fight_is_slowed_down_and_told() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    for round in 0..5 {
        net.run(&format!("ip link set v0 mtu {}", 1200 + round));
        // Until it has read back what it wrote.
        wait("it to be healed", || {
            let healed = daemon.status().counters.healed;
            if healed > round { Ok(()) } else { Err(healed) }
        });
    }
    let start = Instant::now();
    net.run("ip link set v0 mtu 1300");
    home.wait_log(&[
        "WARN",
        "waiting",
        "knob=\"mtu\"",
        "changed 6 times of late by somebody else",
    ]);
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(mtu.standing, Standing::Waiting, "{mtu:?}");
    assert!(mtu.retry_ms.is_some_and(|left| left <= 1000), "{mtu:?}");
    // Another knob of the same interface does not wait for it.
    net.run("ip link set v0 txqueuelen 5");
    net.wait_sysfs("v0", "tx_queue_len", "77");
    net.wait_sysfs("v0", "mtu", "1400");
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    home.wait_log(&["changed", "knob=\"mtu\"", "again and again"]);
}

#[test]
fn what_a_device_cannot_take_does_not_stop_the_rest() {
    let net = Net::with_veth();
    let home = Home::with(
        "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\nmode = \"connected\"\ntxqueuelen = 77\n",
    );
    let daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "77");
    let mode = daemon.knob("v0", "mode");
    assert_eq!(mode.standing, Standing::Failed);
    assert_eq!(mode.code.as_deref(), Some("unsupported"));
    assert_eq!(mode.retry_ms, None, "it would fail again");
    assert!(!daemon.status().ok);

    // A value that the kernel refuses, beside one that it takes.
    home.declare(
        "10-test.toml",
        "[[link]]\nmatch = { name = \"v0\" }\nmtu = 99999\ntxqueuelen = 9\n",
    );
    let (status, body) = daemon.http("POST /v1/reload");
    assert_eq!(status, 200, "{body}");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "9");
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(
        (mtu.standing, mtu.value.as_deref()),
        (Standing::Failed, Some("1400")),
        "{mtu:?}"
    );
}

#[test]
fn cpus_that_are_declared_as_local_hold() {
    let net = Net::with_veth();
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\nrps-cpus.rx-0 = \"local\"\n");
    let daemon = home.start(&["--poll", "0.05"]);
    let knob = || daemon.knob("v0", "rps-cpus.rx-0");
    let first = knob();
    assert_eq!(first.standing, Standing::Holds, "{first:?}");
    net.write_sysfs("v0", "queues/rx-0/rps_cpus", "0");
    net.write_sysfs("v0", "queues/rx-0/rps_cpus", "1");
    std::thread::sleep(Duration::from_millis(200));
    let then = knob();
    assert_eq!(then.standing, Standing::Holds, "{then:?}");
    assert!(then.drifts <= 2, "{then:?}");
}

#[test]
fn all_queues_hold_also_those_that_come_later() {
    let net = Net::new();
    let queues = "numrxqueues 4 numtxqueues 4";
    net.run(&format!(
        "ip link add v0 {queues} type veth peer name v1 {queues}"
    ));
    net.run("ethtool -L v0 rx 2");
    net.run("ip link set v0 up");
    let home = Home::with(
        "[[link]]\nmatch = { name = \"v0\" }\nrps-cpus = { all = \"0-1\", rx-1 = \"0\" }\n",
    );
    let daemon = home.start(&["--poll", "0.05"]);
    let mask = |queue: &str| {
        let text = net.sysfs("v0", &format!("queues/{queue}/rps_cpus"));
        text.trim_start_matches(['0', ',']).to_owned()
    };
    assert_eq!([mask("rx-0"), mask("rx-1")], ["3", "1"]);
    assert_eq!(daemon.knob("v0", "rps-cpus.rx-0").standing, Standing::Holds);
    net.write_sysfs("v0", "queues/rx-0/rps_cpus", "0");
    let becomes = |queue: &str| {
        wait(&format!("{queue} to be declared"), || match mask(queue) {
            now if now == "3" => Ok(()),
            now => Err(now),
        });
    };
    becomes("rx-0");
    net.run("ethtool -L v0 rx 4");
    becomes("rx-2");
    becomes("rx-3");
    assert_eq!(mask("rx-1"), "1");
    assert!(daemon.status().ok);
}
