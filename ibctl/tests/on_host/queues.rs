// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPUs of single queues, with sysfs as the independent reader.

use crate::support::{Net, value};

#[track_caller]
fn assert_set(net: &Net, assignment: &str, file: &str, text: &str) {
    net.ibctl(&format!("set v0 {assignment}")).ok();
    let found = net.sysfs("v0", file);
    let bare = found.trim_start_matches(['0', ',']);
    assert_eq!(bare, text.trim_start_matches('0'), "{assignment}: {found}");
}

#[test]
fn cpus_of_queues_are_what_sysfs_says() {
    let net = Net::with_veth();
    for (assignment, file, text) in [
        ("rps-cpus.rx-0=0", "queues/rx-0/rps_cpus", "1"),
        ("rps-cpus.rx-3=0-1", "queues/rx-3/rps_cpus", "3"),
        ("rps-cpus.rx-0=none", "queues/rx-0/rps_cpus", "0"),
        ("xps-cpus.tx-2=1", "queues/tx-2/xps_cpus", "2"),
        ("rps-flow-cnt.rx-1=256", "queues/rx-1/rps_flow_cnt", "256"),
    ] {
        assert_set(&net, assignment, file, text);
    }
    assert_eq!(value(&net, "v0", "rps-cpus.rx-3", ""), "0-1");
    net.write_sysfs("v0", "queues/rx-2/rps_cpus", "2");
    assert_eq!(value(&net, "v0", "rps-cpus.rx-2", "sysfs"), "1");
    assert_eq!(value(&net, "v0", "rps-cpus.rx-1", ""), "none");
}

#[test]
fn local_means_the_cpus_that_the_device_is_near() {
    let net = Net::with_veth();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs");
    let done = net.ibctl("set v0 rps-cpus.rx-0=local xps-cpus.tx-0=local -o json");
    assert_eq!(
        done.json()["knobs"]["rps-cpus.rx-0"]["outcome"],
        "changed",
        "{done:?}"
    );
    assert_eq!(value(&net, "v0", "rps-cpus.rx-0", ""), online.trim());
    let again = net.ibctl("set v0 rps-cpus.rx-0=local -o json").json();
    assert_eq!(again["knobs"]["rps-cpus.rx-0"]["outcome"], "already-so");
    let reading = net.ibctl("get v0 rps-cpus.rx-0 -o json").json();
    assert_eq!(reading["knobs"]["rps-cpus.rx-0"]["local"], online.trim());
}

#[test]
fn queues_and_cpus_that_are_not_there_are_refused() {
    let net = Net::with_veth();
    for (assignment, status, words) in [
        ("rps-cpus.rx-9=0", 6, "it has no queue rx-9"),
        ("rps-cpus.tx-0=0", 3, "is not complete"),
        ("rps-cpus=0", 3, "is not complete"),
        ("rps-cpus.rx-0=all", 5, "expected CPUs such as 0-3,8"),
        ("rps-cpus.rx-0=5-1", 5, "expected CPUs such as 0-3,8"),
        ("xps-cpus.tx-0=", 5, "no value given"),
        // Rounded up by the kernel, so not what was asked for.
        ("rps-flow-cnt.rx-0=200", 11, "but 256 is read back"),
    ] {
        let done = net.ibctl(&format!("set v0 {assignment}"));
        assert_eq!(done.status, status, "{assignment}: {done:?}");
        assert!(done.stderr.contains(words), "{assignment}: {}", done.stderr);
    }
    assert_eq!(net.sysfs("v0", "queues/rx-0/rps_flow_cnt"), "0");
}

/// Returns the masks of all four receive queues.
fn rps(net: &Net) -> String {
    let mask = |queue| net.sysfs("v0", &format!("queues/rx-{queue}/rps_cpus"));
    let bare = |mask: String| mask.trim_start_matches(['0', ',']).to_owned();
    (0..4).map(mask).map(bare).collect::<Vec<_>>().join(" ")
}

#[test]
fn all_queues_are_those_without_a_value_of_their_own() {
    let net = Net::with_veth();
    let all = || value(&net, "v0", "rps-cpus.all", "");
    assert_eq!(all(), "none");
    let done = net.ibctl("set v0 rps-cpus.all=0-1 -o json").json();
    let knobs = done["knobs"].as_object().expect("an object");
    assert_eq!(knobs.len(), 4, "one line for each queue: {done}");
    assert_eq!((rps(&net).as_str(), all().as_str()), ("3 3 3 3", "0-1"));
    let done = net
        .ibctl("set v0 rps-cpus.all=1 rps-cpus.rx-2=none -o json")
        .json();
    assert_eq!(
        done["knobs"]["rps-cpus.rx-2"]["outcome"], "changed",
        "{done}"
    );
    assert_eq!(rps(&net), "2 2  2");
    // Without a common value there is none to show.
    let differ = net.ibctl("get v0 rps-cpus.all -o json").json();
    assert!(
        differ["knobs"]["rps-cpus.all"]["value"].is_null(),
        "{differ}"
    );
    let again = net
        .ibctl("set v0 rps-cpus.rx-2=none rps-cpus.all=1 -o json")
        .json();
    assert!(!again.to_string().contains("changed"), "{again}");
    net.ibctl("set v0 xps-cpus.all=local rps-flow-cnt.all=64")
        .ok();
    assert_eq!(net.sysfs("v0", "queues/rx-3/rps_flow_cnt"), "64");
    net.ibctl("set v0 channels.rx=2").ok();
    net.ibctl("set v0 rps-cpus.all=0").ok();
    assert_eq!(
        net.sysfs("v0", "queues/rx-1/rps_cpus")
            .trim_start_matches('0'),
        "1"
    );
}

#[test]
fn all_queues_change_or_none_does() {
    let net = Net::with_veth();
    net.ibctl("set v0 rps-cpus.all=0").ok();
    let done = net.ibctl("set v0 rps-cpus.all=1 rps-flow-cnt.all=200");
    assert_eq!(done.status, 11, "rounded up by the kernel: {done:?}");
    assert_eq!(rps(&net), "1 1 1 1");
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_no_knob() {
    let net = Net::new();
    let one = "numrxqueues 1 numtxqueues 1";
    net.ip(&format!("link add v0 {one} type veth peer name v1 {one}"));
    // With one transmit queue the kernel has the file, and refuses to read it.
    let path = std::path::Path::new("/sys/class/net/v0/queues/tx-0/xps_cpus");
    assert!(path.exists() && std::fs::read(path).is_err());
    let shown = net.ibctl("show v0 -o json").json();
    assert!(shown["knobs"]["rps-cpus.rx-0"].is_object(), "{shown}");
    assert!(shown["knobs"]["xps-cpus.tx-0"].is_null(), "{shown}");
}
