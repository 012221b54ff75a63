// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that cannot be met: the right exit status, a clear error, nothing changed.

use ibmgr_api::ErrorCode;

use crate::support::{Net, ibctl_path};

/// A request, its code, what the error says, and what the output says.
struct Case(
    &'static str,
    ErrorCode,
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    Case(
        "set v0 mtuu=1400",
        ErrorCode::UnknownKnob,
        &["'mtuu'", "did you mean mtu?"],
        &[],
    ),
    Case(
        "set v0 feature=on",
        ErrorCode::UnknownKnob,
        &["feature.NAME"],
        &[],
    ),
    Case(
        "set v0 mtu",
        ErrorCode::Usage,
        &["'mtu' has no value"],
        &["1500"],
    ),
    Case("set v0 =1", ErrorCode::Usage, &["names no knob"], &[]),
    Case("set v0", ErrorCode::Usage, &["KNOB=VALUE"], &[]),
    Case(
        "set v0 mtu=1400 mtu=1300",
        ErrorCode::Usage,
        &["given twice"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=1400 --via netdev",
        ErrorCode::Usage,
        &["rtnetlink, sysfs"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=1400 --via smoke",
        ErrorCode::Usage,
        &["rtnetlink", "sysfs"],
        &[],
    ),
    Case(
        "set v0 mtu=",
        ErrorCode::BadValue,
        &["no value given"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=many",
        ErrorCode::BadValue,
        &["'many'"],
        &["1500"],
    ),
    Case("set v0 mtu=-1", ErrorCode::BadValue, &["'-1'"], &["1500"]),
    Case(
        "set v0 mtu=1400us",
        ErrorCode::BadValue,
        &["unit 'us'"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=4294967296",
        ErrorCode::BadValue,
        &["out of range"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=70000",
        ErrorCode::BadValue,
        &["68 to 65535"],
        &["1500"],
    ),
    Case(
        "set v0 mtu=67 txqueuelen=9",
        ErrorCode::BadValue,
        &["68 to 65535"],
        &["not-tried"],
    ),
    Case(
        "set v0 gro-flush-timeout=20kg",
        ErrorCode::BadValue,
        &["unit 'kg'"],
        &[],
    ),
    Case(
        "set v0 state=sideways",
        ErrorCode::BadValue,
        &["down, up"],
        &["up"],
    ),
    Case(
        "set v0 mode=connected",
        ErrorCode::Unsupported,
        &["v0: mode"],
        &["unsupported"],
    ),
    Case(
        "set v0 rx-usecs=20us",
        ErrorCode::Unsupported,
        &["v0: rx-usecs"],
        &["unsupported"],
    ),
    Case(
        "set v0 ring.rx=512",
        ErrorCode::Unsupported,
        &["v0: ring.rx"],
        &["unsupported"],
    ),
    Case(
        "set v0 batching=on mtu=1400",
        ErrorCode::Unsupported,
        &["batching"],
        &["not-tried"],
    ),
    Case(
        "set v0 cm-copybreak=128",
        ErrorCode::Unsupported,
        &["cm-copybreak"],
        &[],
    ),
    Case(
        "set v0 private-flag.x=on",
        ErrorCode::Unsupported,
        &["private-flag.x"],
        &[],
    ),
    Case(
        "set v0 feature.rx-grow=on",
        ErrorCode::Unsupported,
        &["feature.rx-grow"],
        &[],
    ),
    Case(
        "set v0 feature.rx-lro=on",
        ErrorCode::Unsupported,
        &["fixed"],
        &["off"],
    ),
    Case(
        "set v0 channels.rx=5 mtu=1400",
        ErrorCode::BadValue,
        &["channels.rx"],
        &["not-tried"],
    ),
    Case(
        "set v00 mtu=1400",
        ErrorCode::UnknownLink,
        &["'v00'", "did you mean v0?"],
        &[],
    ),
    Case(
        "set nothing-like mtu=1400",
        ErrorCode::UnknownLink,
        &["'ibctl show'"],
        &[],
    ),
    Case(
        "set ../v0 mtu=1400",
        ErrorCode::UnknownLink,
        &["'../v0' cannot name"],
        &[],
    ),
    Case(
        "get v0 mtuu",
        ErrorCode::UnknownKnob,
        &["did you mean mtu?"],
        &[],
    ),
    Case(
        "get v0 mode mtu",
        ErrorCode::Unsupported,
        &["v0: mode"],
        &["1500"],
    ),
    Case(
        "get v0 mtu --via ethtool",
        ErrorCode::Usage,
        &["rtnetlink, sysfs"],
        &[],
    ),
    Case("get v00", ErrorCode::UnknownLink, &["v0"], &[]),
    Case("show v00", ErrorCode::UnknownLink, &["v0"], &[]),
    Case("explain mtuu", ErrorCode::UnknownKnob, &["mtu"], &[]),
    Case("explain mtu v00", ErrorCode::UnknownLink, &["v0"], &[]),
    Case("fix v0", ErrorCode::Usage, &["'fix'"], &[]),
];

#[test]
fn each_has_its_code_and_changes_nothing() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    for Case(line, code, says, shows) in CASES {
        let done = net.ibctl(line);
        assert_eq!(
            done.status,
            i32::from(code.exit_status()),
            "{line}: {done:?}"
        );
        assert!(done.stderr.starts_with("ibctl: "), "{line}: {done:?}");
        for part in *says {
            assert!(
                done.stderr.contains(part),
                "{line}: no {part:?} in {done:?}"
            );
        }
        for part in *shows {
            assert!(
                done.stdout.contains(part),
                "{line}: no {part:?} in {done:?}"
            );
        }
        assert_eq!(net.snapshot("v0"), before, "{line} changed something");
    }
}

#[test]
fn each_is_an_object_with_json() {
    let net = Net::with_veth();
    for Case(line, code, ..) in CASES {
        let done = net.ibctl(&format!("{line} -o json"));
        let error: serde_json::Value = serde_json::from_str(&done.stderr).expect(line);
        assert_eq!(error["code"], code.name(), "{line}");
        assert_eq!(error["exit-status"], code.exit_status(), "{line}");
        assert_eq!(done.status, i32::from(code.exit_status()), "{line}");
        if !done.stdout.is_empty() {
            assert!(done.json().is_object(), "{line}");
        }
    }
}

#[test]
fn a_refused_knob_puts_the_others_back() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    // The kernel wants at least one receive and one transmit channel.
    let line = "set v0 channels.rx=0 mtu=1400 txqueuelen=77 alias=x";
    let done = net.ibctl(&format!("{line} -o json"));
    assert_eq!(
        done.status,
        i32::from(ErrorCode::Refused.exit_status()),
        "{done:?}"
    );
    let report = done.json();
    assert_eq!(
        (&report["ok"], &report["code"]),
        (&false.into(), &"refused".into())
    );
    for (knob, outcome, value) in [
        ("mtu", "put-back", "1500"),
        ("txqueuelen", "put-back", "1000"),
        ("alias", "put-back", ""),
        ("channels.rx", "refused", "4"),
    ] {
        let line = &report["knobs"][knob];
        assert_eq!(
            (&line["outcome"], &line["value"]),
            (&outcome.into(), &value.into()),
            "{line}"
        );
    }
    assert!(!report["knobs"]["channels.rx"]["why"].to_string().is_empty());
    assert_eq!(net.snapshot("v0"), before);

    let done = net.ibctl(line);
    assert!(
        done.stderr
            .contains("what was changed before it was put back"),
        "{done:?}"
    );
    assert_eq!(net.snapshot("v0"), before);
}

#[test]
fn the_kernels_own_words_reach_the_user() {
    let net = Net::with_veth();
    let theirs = net.program("ethtool", ["-L", "v0", "rx", "0"]);
    let ours = net.ibctl("set v0 channels.rx=0");
    let words = "requested channel counts would result in no RX or TX channel being configured";
    assert!(theirs.stderr.contains(words), "{theirs:?}");
    assert!(ours.stderr.contains(words), "{ours:?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    let done = net.ibctl("set v0 --dry-run state=down mtu=1400 channels.rx=2 txqueuelen=1000");
    assert_eq!(net.snapshot("v0"), before);
    let text = done.ok();
    let order = ["mtu", "channels.rx", "state"].map(|knob| text.find(knob).expect(knob));
    assert!(order.is_sorted(), "{text}");
    assert!(text.contains("already so"), "{text}");
}

#[test]
fn a_sysfs_of_another_namespace_is_not_used() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    let ibctl = ibctl_path().display();
    // The inner namespace has a v0 of its own, while /sys shows the outer one.
    let script = format!(
        "ip link add v0 type veth peer name v1; {ibctl} set v0 mtu=1400 --via sysfs; echo $?;
         {ibctl} set v0 mtu=1400 >&2; ip -o link show v0"
    );
    let done = net.program("unshare", ["--net", "bash", "-c", &script]);
    assert!(
        done.stdout.contains("another network namespace"),
        "{done:?}"
    );
    assert!(done.stdout.contains("\n6\n"), "{done:?}");
    assert!(done.stdout.contains("mtu 1400"), "{done:?}");
    assert_eq!(net.snapshot("v0"), before);
}

#[test]
fn a_sysfs_that_is_missing_or_read_only_is_named() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    let ibctl = ibctl_path().display();
    let run = |script: &str| net.program("unshare", ["--mount", "bash", "-c", script]);
    let missing = run(&format!(
        "mount -t tmpfs none /sys; ip link set v0 down;
         {ibctl} set v0 mtu=1400 --via sysfs; {ibctl} set v0 gro-flush-timeout=20us; status=$?
         ip link set v0 up; exit $status"
    ));
    assert_eq!(missing.status, 6, "{missing:?}");
    let told = missing
        .stderr
        .matches("no sysfs is mounted at /sys")
        .count();
    assert_eq!(told, 2, "{missing:?}");
    let read_only = run(&format!(
        "mount -o remount,ro,bind /sys; {ibctl} set v0 mtu=1400 --via sysfs"
    ));
    assert_eq!(read_only.status, 7, "{read_only:?}");
    assert!(
        read_only.stderr.contains("sysfs is mounted read-only here"),
        "{read_only:?}"
    );
    net.wait("carrier", || net.sysfs("v0", "carrier") == "1");
    assert_eq!(net.snapshot("v0"), before);
}
