// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is read, against what others read.

use ibmgr_api::{Channel, Limits, Link, Support};
use ibmgrd_engine::{Keys, Port, Query};

use nix::sched::CloneFlags;

use super::namespace::{Namespace, ip, run, sysfs};

fn all(namespace: &mut Namespace, keys: Keys) -> Vec<Link> {
    namespace
        .port
        .observe_all(&Query { keys, via: None })
        .unwrap()
}

#[test]
fn an_interface_is_what_ip_shows() {
    let mut namespace = Namespace::with_veth();
    run("ip link set v0 up");
    run("ip link set v1 up");
    run("ip link property add dev v0 altname a-much-longer-name");
    let (ours, theirs) = (namespace.observe("v0", &[]), ip("v0"));
    assert_eq!(u64::from(ours.index), theirs["ifindex"].as_u64().unwrap());
    assert_eq!(
        ours.kind.as_deref(),
        theirs["linkinfo"]["info_kind"].as_str()
    );
    assert_eq!(ours.address_text().as_deref(), theirs["address"].as_str());
    assert_eq!(ours.alt_names, ["a-much-longer-name"]);
    assert_eq!(ours.driver.as_deref(), Some("veth"));
    assert_eq!(ours.parent_name.unwrap().as_str(), "v1");
    assert!(ours.is_up && ours.has_carrier);
    assert_eq!((ours.arphrd, ours.pkey), (1, None));
    run("ip link set v1 down");
    assert!(!namespace.observe("v0", &[]).has_carrier);
}

#[test]
fn an_interface_is_found_by_its_other_name() {
    let mut namespace = Namespace::with_veth();
    run("ip link property add dev v0 altname rail0");
    assert_eq!(namespace.observe("rail0", &[]).name.as_str(), "v0");
}

#[test]
fn a_peer_in_another_namespace_has_no_name_here() {
    let mut namespace = Namespace::with_veth();
    let other = std::process::Command::new("unshare")
        .args(["-n", "sleep", "30"])
        .spawn();
    let mut other = other.unwrap();
    let pid = other.id();
    // The child needs a moment to be in its namespace.
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    while std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap() == own {
        std::thread::yield_now();
    }
    run(&format!("ip link set v1 netns {pid}"));
    let v0 = namespace.observe("v0", &[]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(v0.parent.is_some());
    assert_eq!(v0.parent_name, None);
}

#[test]
fn a_list_is_that_of_ip() {
    let mut namespace = Namespace::with_veth();
    run("ip tuntap add t0 mode tun");
    run("ip link add d0 type veth peer name d1");
    let ours = all(&mut namespace, Keys::Identity);
    let theirs: serde_json::Value = serde_json::from_str(&run("ip -j link show")).unwrap();
    let names: Vec<_> = ours.iter().map(|link| link.name.as_str()).collect();
    let expected: Vec<_> = theirs
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["ifname"].as_str().unwrap())
        .collect();
    assert_eq!(names, expected);
    assert_eq!(
        ours.iter()
            .find(|l| l.name.as_str() == "t0")
            .unwrap()
            .address_text(),
        None
    );
}

/// Bulk lists and single questions must tell the same, for every knob.
#[test]
fn all_at_once_and_one_by_one_agree() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    for link in ["v0", "v1"] {
        run(&format!("ip link set {link} up"));
    }
    run("ip tuntap add t0 mode tun");
    run("ethtool -C t0 rx-frames 7");
    let links = all(&mut namespace, Keys::All);
    assert_eq!(links.len(), 4);
    for link in &links {
        let query = Query {
            keys: Keys::All,
            via: None,
        };
        let single = namespace.port.observe(&link.name, &query).unwrap();
        for (key, reading) in &link.readings {
            let other = &single.readings[key];
            assert_eq!(reading.value, other.value, "{} {key}", link.name);
            assert_eq!(
                reading.support.name(),
                other.support.name(),
                "{} {key}",
                link.name
            );
            assert_eq!(reading.via, other.via, "{} {key}", link.name);
        }
        assert_eq!(link.readings.len(), single.readings.len());
    }
}

#[test]
fn every_asked_knob_has_a_reading_and_a_reason() {
    let mut namespace = Namespace::with_veth();
    let query = Query {
        keys: Keys::All,
        via: None,
    };
    let link = namespace
        .port
        .observe(&"v0".parse().unwrap(), &query)
        .unwrap();
    for knob in ibmgr_api::registry::knobs().filter(|knob| !knob.is_family) {
        assert!(
            link.readings.contains_key(&ibmgr_api::Key::of(knob)),
            "{}",
            knob.name
        );
    }
    assert!(
        link.readings
            .keys()
            .any(|key| key.to_string() == "feature.tx-scatter-gather")
    );
    for (key, reading) in &link.readings {
        match &reading.support {
            Support::Settable => assert!(reading.value.is_some() && reading.via.is_some(), "{key}"),
            Support::Fixed(why) | Support::StoredNoEffect(why) | Support::Unsupported(why) => {
                assert!(!why.is_empty(), "{key}");
            }
        }
    }
    let why = |key: &str| {
        link.readings[&key.parse().unwrap()]
            .support
            .why()
            .unwrap()
            .to_owned()
    };
    assert_eq!(why("mode"), "this is no IPoIB interface");
    assert_eq!(why("batching"), "only the ipoib_batch driver batches");
    assert_eq!(why("ring.rx"), "driver veth has no ring sizes");
    assert_eq!(
        why("cm-copybreak"),
        "driver veth has no tunable rx-copybreak"
    );
    assert_eq!(
        why("irq-suspend-timeout"),
        "an interface that is down has no NAPI instances"
    );
}

#[test]
fn limits_are_the_devices() {
    let mut namespace = Namespace::with_veth();
    let limits = |reading: ibmgr_api::Reading| reading.limits.unwrap();
    let mtu = limits(namespace.reading("v0", "mtu"));
    assert_eq!(
        mtu,
        Limits {
            min: 68,
            max: 65535
        }
    );
    assert_eq!(
        limits(namespace.reading("v0", "channels.rx")),
        Limits { min: 0, max: 4 }
    );
    let gso = limits(namespace.reading("v0", "gso-max-size"));
    assert_eq!(Some(gso.max), ip("v0")["tso_max_size"].as_u64());
}

#[test]
fn a_feature_that_does_not_exist_gets_the_nearest_names() {
    let mut namespace = Namespace::with_veth();
    let reading = namespace.reading("v0", "feature.rx-gr");
    let why = reading.support.why().unwrap();
    assert!(
        why.contains("no feature is called 'rx-gr'; did you mean") && why.contains("rx-gro"),
        "{why}"
    );
    let flag = namespace.reading("v0", "private-flag.tx-batching");
    assert_eq!(flag.support.why(), Some("driver veth has no private flags"));
}

#[test]
fn each_channel_reads_the_same_value() {
    let mut namespace = Namespace::with_veth();
    run("ip link set v0 mtu 1400 txqueuelen 77 alias rail");
    for key in ["mtu", "txqueuelen", "alias"] {
        let link = namespace.reading_via("v0", key, Channel::Rtnetlink);
        let file = namespace.reading_via("v0", key, Channel::Sysfs);
        assert_eq!(link.value, file.value, "{key}");
        assert_eq!(link.limits, file.limits, "{key}");
    }
    let none = namespace.reading_via("v0", "mtu", Channel::Netdev);
    assert!(matches!(none.support, Support::Unsupported(_)));
}

#[test]
fn a_sysfs_of_another_namespace_is_not_read() {
    let mut namespace = Namespace::enter_without_sysfs();
    // Under the same name as an interface that the old /sys shows, with another address.
    let old = std::fs::read_dir("/sys/class/net")
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            (name != "lo").then_some(name)
        });
    let same = old.into_iter().next();
    let name = same.as_deref().unwrap_or("v0");
    run(&format!("ip link add {name} type veth peer name other-end"));
    let reading = namespace.reading_via(name, "mtu", Channel::Sysfs);
    let why = reading.support.why().unwrap();
    assert!(why.contains("shows another network namespace"), "{why}");
    assert_eq!(
        namespace.get(name, "mtu"),
        "1500",
        "rtnetlink is not concerned"
    );
}

#[test]
fn napi_settings_are_those_that_sysfs_spread() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    std::fs::write("/sys/class/net/v0/gro_flush_timeout", "20000").unwrap();
    std::fs::write("/sys/class/net/v0/napi_defer_hard_irqs", "3").unwrap();
    assert_eq!(sysfs("v0", "gro_flush_timeout"), "20000");
    let reading = namespace.reading("v0", "gro-flush-timeout");
    assert_eq!(reading.via, Some(Channel::Sysfs));
    let of_instances = namespace.reading_via("v0", "gro-flush-timeout", Channel::Netdev);
    assert_eq!(of_instances.value, reading.value);
    assert_eq!(namespace.get("v0", "gro-flush-timeout"), "20us");
    assert_eq!(namespace.get("v0", "napi-defer-hard-irqs"), "3");
}

#[test]
fn a_list_survives_interfaces_that_come_and_go() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    let namespace_path = format!("/proc/self/task/{}/ns/net", nix::unistd::gettid());
    let file = std::fs::File::open(namespace_path).unwrap();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let churn = std::thread::spawn({
        let done = done.clone();
        move || {
            nix::sched::setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                run("ip link add c0 type veth peer name c1");
                run("ip link del c0");
            }
        }
    });
    for _ in 0..300 {
        let links = all(&mut namespace, Keys::All);
        let names: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
        assert!(names.contains(&"v0") && names.contains(&"lo"), "{names:?}");
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    churn.join().unwrap();
}

#[test]
fn namespaces_have_cookies_of_their_own() {
    let here = Namespace::enter().port.namespace_cookie().unwrap();
    let mut next = Namespace::enter();
    let there = next.port.namespace_cookie().unwrap();
    assert_ne!(here, there);
    assert_eq!(there, next.port.namespace_cookie().unwrap());
}
