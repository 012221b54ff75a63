// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Without the privilege: everything can be read, and a set names what it lacks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Done, Net, ibctl_path};

/// Root without `CAP_NET_ADMIN`.
const ROOT: [&str; 4] = ["--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];

fn as_root_without(net: &Net, line: &str) -> Done {
    let ibctl = ibctl_path().to_str().expect("UTF-8");
    let args = ROOT.into_iter().chain(["--", ibctl]).chain(line.split(' '));
    net.program("setpriv", args)
}

#[test]
fn reading_takes_no_privilege() {
    let net = Net::with_veth();
    for line in [
        "show",
        "show v0",
        "get v0 mtu",
        "explain mtu v0",
        "show -o json",
    ] {
        let with = net.ibctl(line);
        let without = as_root_without(&net, line);
        assert_eq!(without.status, 0, "{line}: {without:?}");
        assert_eq!(without.stdout, with.stdout, "{line}");
    }
}

#[test]
fn setting_names_the_capability_and_changes_nothing() {
    let net = Net::with_veth();
    let before = net.snapshot("v0");
    for (assignment, shown) in [
        ("mtu=1400", "1500"),
        ("txqueuelen=5 mtu=1400", "not-tried"),
        ("state=down", "up"),
        ("alias=x", "refused"),
        ("channels.rx=2", "4"),
        ("feature.rx-gro=off", "on"),
        ("gro-flush-timeout=20us", "refused"),
        ("gro-flush-timeout=20us --via sysfs", "refused"),
        ("mtu=1400 --via sysfs", "1500"),
    ] {
        let done = as_root_without(&net, &format!("set v0 {assignment}"));
        assert_eq!(done.status, 9, "{assignment}: {done:?}");
        assert!(
            done.stderr.contains("CAP_NET_ADMIN"),
            "{assignment}: {done:?}"
        );
        assert!(
            done.stderr.contains("nothing was changed"),
            "{assignment}: {done:?}"
        );
        assert!(done.stdout.contains(shown), "{assignment}: {done:?}");
        assert_eq!(net.snapshot("v0"), before, "{assignment}");
    }
    let same = as_root_without(&net, "set v0 mtu=1500");
    assert_eq!(
        same.status, 0,
        "what is so already needs no privilege: {same:?}"
    );
}

/// Returns a copy of the program that every user can reach, and the folder that it lives in.
fn reachable_copy(net: &Net) -> (tempfile::TempDir, String) {
    // The target folder may be out of the user's reach.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("ibctl");
    let copy = copy.to_str().expect("UTF-8");
    // By another process: a descriptor that a fork of this one inherits would keep the copy busy.
    let source = ibctl_path().to_str().expect("UTF-8");
    net.program("install", ["-m", "755", source, copy]).ok();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    let copy = copy.to_owned();
    (folder, copy)
}

#[test]
fn a_service_with_the_capability_need_not_be_root() {
    let net = Net::with_veth();
    let (_folder, copy) = reachable_copy(&net);
    let service = "--reuid 65534 --regid 65534 --clear-groups --inh-caps +net_admin \
                   --ambient-caps +net_admin --";
    let run = |line: &str| {
        let words = service.split_whitespace();
        net.program("setpriv", words.chain([&copy[..]]).chain(line.split(' ')))
    };
    run("set v0 mtu=1400 txqueuelen=7").ok();
    let done = run("set v0 gro-flush-timeout=20us mtu=1300");
    // Files of sysfs are root's, but NAPI can be set without them since Linux 6.13.
    let sets_napis = net.ibctl("get v0 gro-flush-timeout --via netdev").status == 0;
    if sets_napis {
        done.ok();
        assert!(run("get v0 gro-flush-timeout").ok().contains("20us"));
    } else {
        assert_eq!(done.status, 9, "{done:?}");
        assert!(done.stderr.contains("it takes root"), "{done:?}");
        assert_eq!(net.ip_link("v0")["mtu"], 1400);
    }
}

#[test]
fn a_user_can_read() {
    let net = Net::with_veth();
    let (_folder, copy) = reachable_copy(&net);
    let user = [
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--",
        &copy,
    ];
    let run = |line: &str| net.program("setpriv", user.into_iter().chain(line.split(' ')));
    // For one who may not write its files, sysfs is not the way to set NAPI.
    let shown = |text: String| text.replace("netdev", "sysfs");
    assert_eq!(shown(run("show v0").ok()), shown(net.ibctl("show v0").ok()));
    let done = run("set v0 mtu=1400");
    assert_eq!(done.status, 9, "{done:?}");
    assert!(done.stderr.contains("CAP_NET_ADMIN"), "{done:?}");
    let done = run("set v0 mtu=1400 --via sysfs");
    assert_eq!(done.status, 9, "{done:?}");
    assert_eq!(net.ip_link("v0")["mtu"], 1500);
}

#[test]
fn root_of_a_user_namespace_sets_what_its_namespace_allows() {
    let net = Net::new();
    let ibctl = ibctl_path().display();
    let script = format!(
        "mount -t sysfs none /sys && ip link add v0 type veth peer name v1 && ip link set v0 up &&
         {ibctl} set v0 mtu=1400 && ip link show v0 | grep -q 'mtu 1400' &&
         {ibctl} set v0 gro-flush-timeout=20us; echo status=$?"
    );
    let args = [
        "--user",
        "--map-root-user",
        "--net",
        "--mount",
        "bash",
        "-c",
        &script,
    ];
    let done = net.program("unshare", args);
    assert!(
        done.stdout.contains("mtu   changed  1500 -> 1400"),
        "{done:?}"
    );
    // NAPI settings take the capability in the initial user namespace.
    assert!(done.stdout.ends_with("status=9\n"), "{done:?}");
    assert!(
        done.stderr
            .contains("CAP_NET_ADMIN in the initial user namespace"),
        "{done:?}"
    );
}
