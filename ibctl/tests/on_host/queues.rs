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
