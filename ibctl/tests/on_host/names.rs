// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interface names that are odd, but the kernel takes.

use crate::support::{Net, ibctl_path, value};

const NAMES: [&str; 15] = [
    "fifteen-letters",
    "a",
    "b\u{fc}ro",
    "\u{540d}\u{524d}",
    "-o",
    "--help",
    "--",
    "json",
    "show",
    "a=b",
    "$(reboot)",
    "...",
    "*",
    "ib0.8001",
    "\u{1b}[31mred",
];

#[test]
fn each_is_shown_read_and_set() {
    let net = Net::new();
    for (at, name) in NAMES.iter().enumerate() {
        let peer = format!("peer{at}");
        net.program(
            "ip",
            [
                "link", "add", "name", name, "type", "veth", "peer", "name", &peer,
            ],
        )
        .ok();
    }
    let list = net.ibctl("show -o json").json();
    let listed: Vec<&str> = list
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|link| link["name"].as_str())
        .collect();
    let table = net.ibctl("show").ok();
    for name in NAMES {
        let printed = name.replace('\u{1b}', "\\u{1b}");
        assert!(listed.contains(&name), "{name}: {listed:?}");
        assert!(
            table.lines().any(|line| line.starts_with(&printed)),
            "{name}: {table}"
        );
        assert_eq!(value(&net, name, "mtu", ""), "1500", "{name}");
        let set = net.program(
            ibctl_path(),
            ["set", "--", name, "mtu=1400", "txqueuelen=7"],
        );
        assert_eq!((set.status, set.stderr.as_str()), (0, ""), "{name}");
        assert_eq!(value(&net, name, "mtu", "sysfs"), "1400", "{name}");
        let explain = net
            .program(ibctl_path(), ["explain", "--", "mtu", name])
            .ok();
        let show = net.program(ibctl_path(), ["show", "--", name]).ok();
        assert!(show.starts_with(&printed), "{show}");
        assert!(!explain.contains('\u{1b}') && !show.contains('\u{1b}'));
        assert!(explain.contains("1400"), "{explain}");
    }
}

#[test]
fn what_cannot_be_a_name_is_refused_before_the_kernel_is_asked() {
    let net = Net::with_veth();
    for name in [
        "",
        "a b",
        "a/b",
        "a:b",
        "..",
        ".",
        &"x".repeat(128),
        "a\tb",
        "\u{1b} [m",
    ] {
        for args in [&["show", "--", name][..], &["set", "--", name, "mtu=1400"]] {
            let done = net.program(ibctl_path(), args);
            assert_eq!(done.status, 4, "{name:?}: {done:?}");
            assert!(done.stderr.contains("cannot name an interface"), "{done:?}");
            assert!(!done.stderr.contains(['\u{1b}', '\t']), "{done:?}");
        }
    }
}

#[test]
fn a_word_that_is_not_text_is_malformed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let net = Net::new();
    let odd = OsStr::from_bytes(b"v\xff");
    let done = net.program(ibctl_path(), [OsStr::new("show"), odd]);
    assert_eq!(done.status, 2, "{done:?}");
}

#[test]
fn a_long_alternative_name_is_a_name_too() {
    let net = Net::with_veth();
    let long = format!("storage-rail-{}", "x".repeat(114));
    net.ip(&format!("link property add dev v0 altname {long}"));
    net.ibctl(&format!("set {long} mtu=1400 txqueuelen=7")).ok();
    assert_eq!(value(&net, &long, "mtu", "sysfs"), "1400");
    assert!(
        net.ibctl(&format!("explain mtu {long}"))
            .ok()
            .contains("on v0\n")
    );
    let done = net.ibctl("show storage-rail-xx");
    assert_eq!(done.status, 4, "{done:?}");
    assert!(
        done.stderr.contains(&format!("did you mean {long}?")),
        "{done:?}"
    );
}

#[test]
fn another_name_leads_to_the_interface() {
    let net = Net::with_veth();
    net.ip("link property add dev v0 altname storage");
    assert_eq!(value(&net, "storage", "mtu", ""), "1500");
    net.ibctl("set storage mtu=1400 txqueuelen=7").ok();
    assert_eq!(value(&net, "v0", "mtu", "sysfs"), "1400");
    let shown = net.ibctl("show storage").ok();
    assert!(
        shown.starts_with("v0: ") && shown.contains("altnames  storage"),
        "{shown}"
    );
}
