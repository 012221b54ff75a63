// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each knob of a veth and of a tap: set by `ibctl` and read by others, set by others and read by `ibctl`.

use std::collections::BTreeSet;

use crate::support::{Net, value};

/// One knob of `v0`.
struct Case {
    knob: &'static str,
    /// Values to set, as `ibctl` prints them.
    values: [&'static str; 2],
    /// The channel to go through; empty for the preferred one.
    via: &'static str,
    /// Returns what another program reads.
    read: fn(&Net) -> String,
    /// What it reads, in the order of `values`.
    reads: [&'static str; 2],
    /// Sets the first of `reads` by another program.
    write: fn(&Net, &str),
}

fn ip(net: &Net, field: &str) -> String {
    match &net.ip_link("v0")[field] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn ethtool_channels(net: &Net, name: &str, number: &str) {
    net.program("ethtool", ["-L", "v0", name, number]).ok();
}

/// `state` is the last: a veth that is down has no NAPI.
const CASES: &[Case] = &[
    Case {
        knob: "mtu",
        values: ["1400", "9000"],
        via: "",
        read: |net| ip(net, "mtu"),
        reads: ["1400", "9000"],
        write: |net, mtu| drop(net.ip(&format!("link set v0 mtu {mtu}"))),
    },
    Case {
        knob: "mtu",
        values: ["1401", "9001"],
        via: "sysfs",
        read: |net| net.sysfs("v0", "mtu"),
        reads: ["1401", "9001"],
        write: |net, mtu| net.write_sysfs("v0", "mtu", mtu),
    },
    Case {
        knob: "txqueuelen",
        values: ["555", "0"],
        via: "",
        read: |net| net.sysfs("v0", "tx_queue_len"),
        reads: ["555", "0"],
        write: |net, length| drop(net.ip(&format!("link set v0 txqueuelen {length}"))),
    },
    Case {
        knob: "txqueuelen",
        values: ["556", "1"],
        via: "sysfs",
        read: |net| ip(net, "txqlen"),
        reads: ["556", "1"],
        write: |net, length| net.write_sysfs("v0", "tx_queue_len", length),
    },
    Case {
        knob: "alias",
        values: ["rail-1", "\u{e4}=\u{fc}"],
        via: "",
        read: |net| ip(net, "ifalias"),
        reads: ["rail-1", "\u{e4}=\u{fc}"],
        write: |net, alias| drop(net.ip(&format!("link set v0 alias {alias}"))),
    },
    Case {
        knob: "alias",
        values: ["rail-2", ""],
        via: "sysfs",
        read: |net| net.sysfs("v0", "ifalias"),
        reads: ["rail-2", ""],
        write: |net, alias| net.write_sysfs("v0", "ifalias", alias),
    },
    Case {
        knob: "gso-max-size",
        values: ["32768", "131072"],
        via: "",
        read: |net| ip(net, "gso_max_size"),
        reads: ["32768", "131072"],
        write: |net, size| drop(net.ip(&format!("link set v0 gso_max_size {size}"))),
    },
    Case {
        knob: "gro-max-size",
        values: ["32768", "131072"],
        via: "",
        read: |net| ip(net, "gro_max_size"),
        reads: ["32768", "131072"],
        write: |net, size| drop(net.ip(&format!("link set v0 gro_max_size {size}"))),
    },
    Case {
        knob: "gro-flush-timeout",
        values: ["20us", "1ms"],
        via: "sysfs",
        read: |net| net.sysfs("v0", "gro_flush_timeout"),
        reads: ["20000", "1000000"],
        write: |net, text| net.write_sysfs("v0", "gro_flush_timeout", text),
    },
    Case {
        knob: "napi-defer-hard-irqs",
        values: ["7", "0"],
        via: "sysfs",
        read: |net| net.sysfs("v0", "napi_defer_hard_irqs"),
        reads: ["7", "0"],
        write: |net, text| net.write_sysfs("v0", "napi_defer_hard_irqs", text),
    },
    Case {
        knob: "napi-threaded",
        values: ["on", "off"],
        via: "sysfs",
        read: |net| net.sysfs("v0", "threaded"),
        reads: ["1", "0"],
        write: |net, text| net.write_sysfs("v0", "threaded", text),
    },
    Case {
        knob: "channels.rx",
        values: ["2", "3"],
        via: "",
        read: |net| net.channels("v0", "RX"),
        reads: ["2", "3"],
        write: |net, number| ethtool_channels(net, "rx", number),
    },
    Case {
        knob: "channels.tx",
        values: ["2", "3"],
        via: "",
        read: |net| net.channels("v0", "TX"),
        reads: ["2", "3"],
        write: |net, number| ethtool_channels(net, "tx", number),
    },
    Case {
        knob: "state",
        values: ["down", "up"],
        via: "",
        read: |net| {
            let flags = ip(net, "flags");
            let is_up = flags.contains("\"UP\"");
            is_up.to_string()
        },
        reads: ["false", "true"],
        write: |net, _| drop(net.ip("link set v0 down")),
    },
];

#[test]
fn what_ibctl_sets_others_read() {
    let net = Net::with_veth();
    for case in CASES {
        for (value, reads) in case.values.iter().zip(case.reads) {
            let mut line = format!("set v0 {}={value} -o json", case.knob);
            if !case.via.is_empty() {
                line = format!("{line} --via {}", case.via);
            }
            let done = net.ibctl(&line);
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{line}");
            let report = done.json();
            let outcome = &report["knobs"][case.knob];
            assert_eq!(outcome["outcome"], "changed", "{line}: {report}");
            assert_eq!(outcome["value"], *value, "{line}: {report}");
            assert_eq!((case.read)(&net), reads, "{line}");

            let again = net.ibctl(&line);
            assert_eq!(again.status, 0, "{line}");
            assert_eq!(again.json()["knobs"][case.knob]["outcome"], "already-so");
        }
    }
}

#[test]
fn what_others_set_ibctl_reads() {
    let net = Net::with_veth();
    for case in CASES {
        (case.write)(&net, case.reads[0]);
        assert_eq!((case.read)(&net), case.reads[0], "{}", case.knob);
        let ours = value(&net, "v0", case.knob, case.via);
        assert_eq!(ours, case.values[0], "{} by '{}'", case.knob, case.via);
    }
}

#[test]
fn no_settable_knob_is_missing_here() {
    let net = Net::with_veth();
    let document = net.ibctl("show v0 -o json").json();
    let knobs = document["knobs"].as_object().expect("an object");
    let settable: BTreeSet<&str> = knobs
        .iter()
        .filter(|(_, reading)| reading["support"] == "settable")
        .map(|(name, _)| name.as_str())
        .filter(|name| !name.starts_with("feature."))
        // One for each queue: see `queues.rs`.
        .filter(|name| !name.contains(".rx-") && !name.contains(".tx-"))
        // One for each NAPI instance: see `single_napi_instances_can_differ`.
        .filter(|name| !name.contains(".napi-"))
        // Carried by the netdev family alone: see `napi_settings_agree_between_channels`.
        .filter(|name| *name != "irq-suspend-timeout")
        .collect();
    let tested: BTreeSet<&str> = CASES.iter().map(|case| case.knob).collect();
    assert_eq!(settable, tested);
}

#[test]
fn every_feature_goes_both_ways() {
    let net = Net::with_veth();
    let document = net.ibctl("get v0 -o json").json();
    let knobs = document["knobs"].as_object().expect("an object");
    let listed = net.features("v0");
    assert!(listed.len() > 40, "{listed:?}");
    for (name, active) in &listed {
        let reading = &knobs[&format!("feature.{name}")];
        let expected = if *active { "on" } else { "off" };
        assert_eq!(reading["value"], expected, "feature.{name}");
    }
    let active = |name: &str| {
        let features = net.features("v0");
        let found = features.into_iter().find(|(feature, _)| feature == name);
        found.expect("it was listed before").1
    };
    let mut tried = 0;
    for (name, was) in &listed {
        let knob = format!("feature.{name}");
        if knobs[&knob]["support"] != "settable" {
            continue;
        }
        let [other, back] = if *was { ["off", "on"] } else { ["on", "off"] };
        let done = net.ibctl(&format!("set v0 {knob}={other} -o json"));
        // The kernel takes some back because of others: then the old value is in force, and it is told.
        if done.status == 11 {
            assert_eq!(active(name), *was, "{done:?}");
            assert!(done.stderr.contains("read back"), "{done:?}");
            continue;
        }
        assert_eq!(done.status, 0, "{done:?}");
        assert_eq!(active(name), !was, "{knob}");
        net.ibctl(&format!("set v0 {knob}={back}")).ok();
        assert_eq!(active(name), *was, "{knob}");
        tried += 1;
    }
    assert!(tried >= 15, "{tried} features could be tried");
}

/// Says whether this kernel has `NETDEV_CMD_NAPI_SET`.
fn sets_napis() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 13)
}

#[test]
fn napi_settings_agree_between_channels() {
    let net = Net::with_veth();
    if !sets_napis() {
        let done = net.ibctl("set v0 gro-flush-timeout=20us --via netdev");
        assert_eq!(done.status, 6, "{done:?}");
        assert!(done.stderr.contains("needs Linux 6."), "{done:?}");
        net.ibctl("set v0 gro-flush-timeout=20us").ok();
        assert_eq!(net.sysfs("v0", "gro_flush_timeout"), "20000");
        return;
    }
    for (knob, values) in [
        ("gro-flush-timeout", ["20us", "0"]),
        ("napi-defer-hard-irqs", ["7", "0"]),
    ] {
        for text in values {
            // A write to sysfs reaches every NAPI.
            net.ibctl(&format!("set v0 {knob}={text} --via sysfs")).ok();
            assert_eq!(value(&net, "v0", knob, "netdev"), text);
        }
        net.ibctl(&format!("set v0 {knob}={} --via netdev", values[0]))
            .ok();
        assert_eq!(value(&net, "v0", knob, "netdev"), values[0]);
    }
    net.ibctl("set v0 irq-suspend-timeout=50us").ok();
    assert_eq!(value(&net, "v0", "irq-suspend-timeout", "netdev"), "50us");
}

#[test]
fn single_napi_instances_can_differ() {
    let net = Net::with_veth();
    if !sets_napis() {
        let done = net.ibctl("set v0 gro-flush-timeout-of.napi-0=20us");
        assert_eq!(done.status, 6, "{done:?}");
        assert!(done.stderr.contains("needs Linux 6."), "{done:?}");
        return;
    }
    net.ibctl("set v0 gro-flush-timeout=20us").ok();
    net.ibctl("set v0 gro-flush-timeout-of.napi-1=50us napi-defer-hard-irqs-of.napi-1=3")
        .ok();
    let of = |number| {
        value(
            &net,
            "v0",
            &format!("gro-flush-timeout-of.napi-{number}"),
            "",
        )
    };
    assert_eq!([of(0), of(1), of(2)], ["20us", "50us", "20us"]);
    let differ = net.ibctl("get v0 gro-flush-timeout -o json").json();
    assert!(
        differ["knobs"]["gro-flush-timeout"]["value"].is_null(),
        "{differ}"
    );
    // Both at once: the whole is for the others.
    let wants = "gro-flush-timeout=30us gro-flush-timeout-of.napi-3=1us";
    net.ibctl(&format!("set v0 {wants}")).ok();
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        ["30us", "30us", "30us", "1us"]
    );
    let again = net.ibctl(&format!("set v0 {wants} -o json")).json();
    assert!(!again.to_string().contains("changed"), "{again}");
    let done = net.ibctl("set v0 gro-flush-timeout-of.napi-4=1us");
    assert_eq!(done.status, 6, "{done:?}");
    assert!(
        done.stderr.contains("there are 4 NAPI instances"),
        "{done:?}"
    );
    net.ip("link set v0 down");
    let done = net.ibctl("set v0 napi-threaded-of.napi-0=on");
    assert_eq!(done.status, 6, "{done:?}");
}

#[test]
fn a_napi_setting_outlives_its_instances() {
    let net = Net::with_veth();
    // Instances of before and after: the interface goes down, up again, and gets more channels.
    net.ibctl("set v0 state=down gro-flush-timeout=20us channels.rx=1")
        .ok();
    net.ibctl("set v0 state=up channels.rx=4 gro-flush-timeout=20us")
        .ok();
    assert_eq!(value(&net, "v0", "gro-flush-timeout", ""), "20us");
    net.ibctl("set v0 feature.rx-gro=off gro-flush-timeout=30us")
        .ok();
    net.ibctl("set v0 feature.rx-gro=on").ok();
    for via in if sets_napis() {
        &["", "netdev", "sysfs"][..]
    } else {
        &["", "sysfs"]
    } {
        assert_eq!(value(&net, "v0", "gro-flush-timeout", via), "30us", "{via}");
    }
}

#[test]
fn napi_instances_that_differ_have_no_value_in_common() {
    let net = Net::with_veth();
    if !sets_napis() {
        return;
    }
    net.ibctl("set v0 channels.rx=1").ok();
    net.ibctl("set v0 gro-flush-timeout=20us --via netdev").ok();
    // sysfs still has 0, which no instance uses.
    assert_eq!(value(&net, "v0", "gro-flush-timeout", "sysfs"), "0");
    assert_eq!(value(&net, "v0", "gro-flush-timeout", ""), "20us");
    net.ibctl("set v0 gro-flush-timeout=0 mtu=1400 --via sysfs")
        .ok();
    assert_eq!(value(&net, "v0", "gro-flush-timeout", "netdev"), "20us");
    // New instances begin with what sysfs has: the old value is no longer that of all.
    let done = net.ibctl("set v0 channels.rx=4 gro-flush-timeout=20us");
    assert_eq!(done.status, 11, "{done:?}");
    assert_eq!(value(&net, "v0", "gro-flush-timeout", ""), "20us");
    net.ibctl("set v0 channels.rx=4").ok();
    let document = net.ibctl("get v0 gro-flush-timeout -o json").json();
    let reading = &document["knobs"]["gro-flush-timeout"];
    let (value_of_all, support) = (&reading["value"], &reading["support"]);
    assert_eq!(
        (value_of_all.is_null(), support),
        (true, &"settable".into())
    );
    net.ibctl("set v0 gro-flush-timeout=0").ok();
    assert_eq!(value(&net, "v0", "gro-flush-timeout", "netdev"), "0");
}

#[test]
fn several_knobs_go_in_one_command() {
    let net = Net::with_veth();
    let line =
        "set v0 state=down feature.rx-gro=off mtu=3000 txqueuelen=77 alias=all channels.rx=2";
    let done = net.ibctl(line);
    assert_eq!(done.status, 0, "{done:?}");
    let link = net.ip_link("v0");
    assert_eq!((&link["mtu"], &link["txqlen"]), (&3000.into(), &77.into()));
    assert_eq!(link["ifalias"], "all");
    assert!(!link["flags"].to_string().contains("\"UP\""));
    assert_eq!(net.channels("v0", "RX"), "2");
    assert!(net.features("v0").contains(&("rx-gro".to_owned(), false)));
}

#[test]
fn a_tap_has_coalescing() {
    let net = Net::new();
    net.ip("tuntap add t0 mode tap");
    net.ip("link set t0 up");
    let frames = || {
        let text = net.program("ethtool", ["-c", "t0"]).ok();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("rx-frames:"));
        line.expect("ethtool prints it").trim().to_owned()
    };
    net.ibctl("set t0 rx-frames=12").ok();
    assert_eq!(frames(), "12");
    net.program("ethtool", ["-C", "t0", "rx-frames", "5"]).ok();
    assert_eq!(value(&net, "t0", "rx-frames", "ethtool"), "5");
    let done = net.ibctl("set t0 rx-usecs=5");
    assert_eq!(done.status, 6, "a tap has rx-frames only: {done:?}");
    assert_eq!(frames(), "5");
}

#[test]
fn the_list_says_what_ip_says() {
    let net = Net::with_veth();
    net.ip("link set v1 down");
    net.ip("tuntap add t0 mode tun");
    let ours = net.ibctl("show -o json").json();
    let theirs = net.program("ip", ["-j", "-d", "link", "show"]).json();
    let (ours, theirs) = (ours.as_array(), theirs.as_array());
    let (ours, theirs) = (ours.expect("an array"), theirs.expect("an array"));
    assert_eq!(ours.len(), theirs.len());
    for (our, their) in ours.iter().zip(theirs) {
        assert_eq!(our["index"], their["ifindex"]);
        assert_eq!(our["name"], their["ifname"]);
        assert_eq!(our["kind"], their["linkinfo"]["info_kind"]);
        assert_eq!(our["knobs"]["mtu"]["raw"], their["mtu"]);
        let flags = their["flags"].to_string();
        assert_eq!(our["up"], flags.contains("\"UP\""), "{our}");
        assert_eq!(our["carrier"], flags.contains("\"LOWER_UP\""), "{our}");
        if their["link_type"] == "ether" {
            assert_eq!(our["address"], their["address"]);
        }
    }
    let table = net.ibctl("show").ok();
    assert_eq!(table.lines().count(), ours.len() + 1, "{table}");
}
