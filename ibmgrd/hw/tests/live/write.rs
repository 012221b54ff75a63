// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written, read back by others.

use ibmgr_api::{Assignment, Channel, Key, Outcome, ReportLine};
use ibmgrd_engine::{Port, Query, keys_to_observe, plan, run as run_plan};

use super::namespace::{Namespace, ethtool, ip, name, run, sysfs};

#[test]
fn link_attributes() {
    let mut namespace = Namespace::with_veth();
    let mut set = |key: &str, value: &str| namespace.set("v0", key, value, None).unwrap();
    set("mtu", "1400");
    set("txqueuelen", "77");
    set("alias", "rail 0, left");
    set("gso-max-size", "60000");
    set("gro-max-size", "50000");
    set("state", "up");
    let v0 = ip("v0");
    assert_eq!(v0["mtu"], 1400);
    assert_eq!(v0["txqlen"], 77);
    assert_eq!(v0["ifalias"], "rail 0, left");
    assert_eq!(v0["gso_max_size"], 60000);
    assert_eq!(v0["gro_max_size"], 50000);
    assert!(v0["flags"].as_array().unwrap().contains(&"UP".into()));
    set("state", "down");
    set("alias", "");
    let v0 = ip("v0");
    assert!(!v0["flags"].as_array().unwrap().contains(&"UP".into()));
    assert_eq!(v0["ifalias"], serde_json::Value::Null);
    assert_eq!(v0["mtu"], 1400, "what was not asked for stays");
}

#[test]
fn the_longest_alias() {
    let mut namespace = Namespace::with_veth();
    let alias = "x".repeat(255);
    for via in [Channel::Rtnetlink, Channel::Sysfs] {
        namespace.set("v0", "alias", &alias, Some(via)).unwrap();
        assert_eq!(sysfs("v0", "ifalias"), alias, "{via}");
        namespace.set("v0", "alias", "", Some(via)).unwrap();
        assert_eq!(sysfs("v0", "ifalias"), "", "{via}");
    }
}

#[test]
fn coalescing_of_a_tun_device() {
    let mut namespace = Namespace::enter();
    run("ip tuntap add t0 mode tun");
    namespace.set("t0", "rx-frames", "9", None).unwrap();
    assert_eq!(ethtool("-c t0", "rx-frames"), "9");
    run("ethtool -C t0 rx-frames 5");
    assert_eq!(namespace.get("t0", "rx-frames"), "5");
}

#[test]
fn channels_of_a_veth() {
    let mut namespace = Namespace::with_veth();
    namespace.set("v0", "channels.rx", "2", None).unwrap();
    namespace.set("v0", "channels.tx", "3", None).unwrap();
    assert_eq!(ethtool("-l v0", "RX"), "2");
    assert_eq!(ethtool("-l v0", "TX"), "3");
    run("ethtool -L v0 rx 1");
    assert_eq!(namespace.get("v0", "channels.rx"), "1");
    assert_eq!(namespace.get("v0", "channels.tx"), "3");
}

#[test]
fn features() {
    let mut namespace = Namespace::with_veth();
    for value in ["on", "off", "on"] {
        namespace.set("v0", "feature.rx-gro", value, None).unwrap();
        assert_eq!(ethtool("-k v0", "generic-receive-offload"), value);
    }
    // One that others depend on, and the others come back with it.
    namespace
        .set("v0", "feature.tx-scatter-gather", "off", None)
        .unwrap();
    assert_eq!(ethtool("-k v0", "tx-scatter-gather"), "off");
    assert_eq!(
        namespace.get("v0", "feature.tx-generic-segmentation"),
        "off"
    );
    namespace
        .set("v0", "feature.tx-scatter-gather", "on", None)
        .unwrap();
    assert_eq!(ethtool("-k v0", "generic-segmentation-offload"), "on");
}

#[test]
fn files() {
    let mut namespace = Namespace::with_veth();
    let via = Some(Channel::Sysfs);
    namespace.set("v0", "mtu", "1300", via).unwrap();
    namespace.set("v0", "txqueuelen", "33", via).unwrap();
    namespace
        .set("v0", "gro-flush-timeout", "20us", via)
        .unwrap();
    namespace
        .set("v0", "napi-defer-hard-irqs", "2", via)
        .unwrap();
    let v0 = ip("v0");
    assert_eq!(v0["mtu"], 1300);
    assert_eq!(v0["txqlen"], 33);
    assert_eq!(sysfs("v0", "gro_flush_timeout"), "20000");
    assert_eq!(sysfs("v0", "napi_defer_hard_irqs"), "2");
}

#[test]
fn napi_settings() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    let via = Some(Channel::Netdev);
    namespace
        .set("v0", "gro-flush-timeout", "20us", via)
        .unwrap();
    namespace
        .set("v0", "napi-defer-hard-irqs", "5", via)
        .unwrap();
    namespace
        .set("v0", "irq-suspend-timeout", "1ms", via)
        .unwrap();
    assert_eq!(namespace.get("v0", "gro-flush-timeout"), "20us");
    assert_eq!(namespace.get("v0", "napi-defer-hard-irqs"), "5");
    assert_eq!(namespace.get("v0", "irq-suspend-timeout"), "1ms");
    // The device's own value is another one: it holds for instances to come.
    assert_eq!(sysfs("v0", "gro_flush_timeout"), "0");
    namespace.set("v0", "napi-threaded", "on", via).unwrap();
    assert_eq!(namespace.get("v0", "napi-threaded"), "on");
    let threads = run("ps -eo comm");
    assert!(
        threads.lines().any(|thread| thread.starts_with("napi/v0")),
        "{threads}"
    );
}

#[test]
fn a_value_of_more_than_32_bits() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    for via in [Channel::Netdev, Channel::Sysfs] {
        namespace
            .set("v0", "gro-flush-timeout", "10s", Some(via))
            .unwrap();
        assert_eq!(namespace.get("v0", "gro-flush-timeout"), "10s", "{via}");
        namespace
            .set("v0", "gro-flush-timeout", "0", Some(via))
            .unwrap();
    }
}

/// Takes values through the engine, as ibctl does.
fn apply(namespace: &mut Namespace, link: &str, wants: &[(&str, &str)]) -> Vec<ReportLine> {
    let wants: Vec<Assignment> = wants
        .iter()
        .map(|(key, value)| {
            let key: Key = key.parse().unwrap();
            let value = key.knob().domain.parse(value).unwrap();
            Assignment { key, value }
        })
        .collect();
    let query = Query::named(keys_to_observe(&wants, None).unwrap());
    let before = namespace.port.observe(&name(link), &query).unwrap();
    let plan = plan(&before, &wants).unwrap();
    run_plan(&mut namespace.port, &plan, &before).lines
}

#[test]
fn several_knobs_through_the_engine() {
    let mut namespace = Namespace::with_veth();
    let wants = [
        ("state", "up"),
        ("mtu", "9000"),
        ("channels.rx", "2"),
        ("feature.rx-gro", "on"),
    ];
    let lines = apply(&mut namespace, "v0", &wants);
    assert!(
        lines.iter().all(|line| line.outcome == Outcome::Changed),
        "{lines:?}"
    );
    assert_eq!(
        (ip("v0")["mtu"].as_u64(), ethtool("-l v0", "RX")),
        (Some(9000), "2".to_owned())
    );
    let again = apply(&mut namespace, "v0", &wants);
    assert!(
        again.iter().all(|line| line.outcome == Outcome::AlreadySo),
        "{again:?}"
    );
}

#[test]
fn what_was_changed_before_a_refusal_is_put_back() {
    let mut namespace = Namespace::with_veth();
    run("ip link set v0 up");
    run("ip link set v1 up");
    let before = ip("v0");
    // veth refuses less receive queues than its peer has transmit queues, once both are up.
    let wants = [("mtu", "1400"), ("alias", "new"), ("channels.rx", "0")];
    let lines = apply(&mut namespace, "v0", &wants);
    let outcome = |key: &str| {
        let line = lines
            .iter()
            .find(|line| line.key.to_string() == key)
            .unwrap();
        line.outcome.name()
    };
    assert_eq!(outcome("mtu"), "put-back");
    assert_eq!(outcome("alias"), "put-back");
    assert_eq!(outcome("channels.rx"), "refused");
    let after = ip("v0");
    assert_eq!(
        (&after["mtu"], &after["ifalias"]),
        (&before["mtu"], &before["ifalias"])
    );
}
