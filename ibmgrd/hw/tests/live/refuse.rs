// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What cannot be done, and what the user is told of it.

use ibmgr_api::{Channel, Key};
use ibmgrd_engine::{Port, PortError, Target};

use super::namespace::{Namespace, ip, name, parts, run, sysfs};

fn write(
    namespace: &mut Namespace,
    target: &Target,
    key: &str,
    value: &str,
    channel: Channel,
) -> Result<(), PortError> {
    let key: Key = key.parse().unwrap();
    let (value, carrier) = parts(&key, value, channel);
    namespace.port.write(target, &key, &value, carrier)
}

#[test]
fn a_link_that_does_not_exist_gets_the_nearest_names() {
    let mut namespace = Namespace::with_veth();
    run("ip link set v0 name ib0");
    let error = namespace.query("ibo", &[], None).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("no interface is called 'ibo'") && text.contains("ib0"),
        "{text}"
    );
}

#[test]
fn the_kernels_sentence_reaches_the_user() {
    let mut namespace = Namespace::with_veth();
    let target = namespace.target("v0");
    let error = write(&mut namespace, &target, "mtu", "70000", Channel::Rtnetlink).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("v0: the kernel refused mtu: mtu greater than device maximum"),
        "{text}"
    );
    assert!(text.contains("EINVAL"), "{text}");
    let error = write(
        &mut namespace,
        &target,
        "channels.rx",
        "9",
        Channel::Ethtool,
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("requested channel count exceeds maximum"),
        "{text}"
    );
    assert!(text.contains("ETHTOOL_A_CHANNELS_RX_COUNT"), "{text}");
}

#[test]
fn what_the_device_lacks_is_unsupported() {
    let mut namespace = Namespace::with_veth();
    let target = namespace.target("v0");
    for (key, value, channel) in [
        ("rx-usecs", "20us", Channel::Ethtool),
        ("ring.rx", "64", Channel::Ethtool),
        ("private-flag.some", "on", Channel::Ethtool),
        ("cm-copybreak", "128", Channel::Ethtool),
        ("mode", "connected", Channel::Sysfs),
        ("mode", "connected", Channel::Rtnetlink),
        ("batching", "on", Channel::Sysfs),
        ("gro-flush-timeout", "20us", Channel::Netdev),
        ("napi-threaded", "on", Channel::Sysfs),
    ] {
        let error = write(&mut namespace, &target, key, value, channel).unwrap_err();
        assert!(
            matches!(error, PortError::Unsupported { .. }),
            "{key} {channel}: {error}"
        );
        assert!(error.to_string().starts_with("v0: "), "{error}");
    }
}

#[test]
fn a_link_that_is_gone() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    let target = namespace.target("v0");
    run("ip link del v0");
    for (key, value, channel) in every_channel() {
        let error = write(&mut namespace, &target, key, value, channel).unwrap_err();
        assert!(
            matches!(error, PortError::Gone { .. }),
            "{key} {channel}: {error}"
        );
    }
}

#[test]
fn a_name_that_another_link_took_over() {
    let mut namespace = Namespace::with_veth();
    let target = namespace.target("v0");
    run("ip link set v0 name old");
    run("ip link add v0 type veth peer name w1");
    run("ethtool -K v0 gro on");
    let before = [ip("v0"), ip("old")];
    for (key, value, channel) in every_channel() {
        let error = write(&mut namespace, &target, key, value, channel).unwrap_err();
        assert!(
            matches!(error, PortError::Gone { .. }),
            "{key} {channel}: {error}"
        );
    }
    assert_eq!(before, [ip("v0"), ip("old")]);
    assert_eq!(sysfs("v0", "gro_flush_timeout"), "0");
}

fn every_channel() -> [(&'static str, &'static str, Channel); 7] {
    [
        ("mtu", "1400", Channel::Rtnetlink),
        ("mtu", "1400", Channel::Sysfs),
        ("channels.rx", "1", Channel::Ethtool),
        ("feature.rx-gro", "off", Channel::Ethtool),
        ("cm-copybreak", "1", Channel::Ethtool),
        ("gro-flush-timeout", "20us", Channel::Netdev),
        ("gro-flush-timeout", "20us", Channel::Sysfs),
    ]
}

/// A feature that needs another one: the kernel would keep the wish and grant it later.
#[test]
fn a_feature_that_does_not_come_leaves_no_wish_behind() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 tx-scatter-gather off tx-generic-segmentation off");
    let target = namespace.target("v0");
    let key = "feature.tx-generic-segmentation";
    let error = write(&mut namespace, &target, key, "on", Channel::Ethtool).unwrap_err();
    assert!(error.to_string().contains("it stays off"), "{error}");
    run("ethtool -K v0 tx-scatter-gather on");
    assert_eq!(namespace.get("v0", key), "off");
}

#[test]
fn without_privilege_the_capability_is_named() {
    let mut namespace = Namespace::with_veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    let target = namespace.target("v0");
    drop_capabilities();
    for (key, value, channel) in every_channel() {
        let error = write(&mut namespace, &target, key, value, channel).unwrap_err();
        let text = error.to_string();
        // veth has no tunables, and the kernel looks for the capability first.
        assert!(
            matches!(error, PortError::Permission { .. }),
            "{key} {channel}: {text}"
        );
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
    }
    assert_eq!(namespace.get("v0", "mtu"), "1500", "reading is free");
    let error = namespace
        .query(&name("v9").to_string(), &[], None)
        .unwrap_err();
    assert!(matches!(error, PortError::NoSuchLink { .. }));
}

/// Gives up every capability of the calling thread (capset(2); other threads keep theirs).
#[expect(
    unsafe_code,
    reason = "capset(2) has no safe interface in the crates that are used"
)]
fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // _LINUX_CAPABILITY_VERSION_3, which takes two sets of three words.
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let none = [0_u32; 6];
    // SAFETY: both structures have the layout of that version and live through the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) };
    assert_eq!(result, 0);
}
