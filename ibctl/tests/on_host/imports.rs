// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `import` writes, applied to a real interface.

use std::fs;

use nix::mount::{MsFlags, mount};

use crate::support::{Net, value};

/// systemd's settings for a veth.
const LINK: &str = "[Match]\nOriginalName=v0\n[Link]\nMTUBytes=4K\nTransmitQueueLength=500\n\
                    Alias=rail 0\n";

#[test]
fn an_imported_file_plans_and_applies() {
    let net = Net::new();
    // What 'apply' keeps on disk is this test's own.
    fs::create_dir_all("/run/ibmgr").expect("a folder");
    let (none, size) = (MsFlags::empty(), Some("size=1m"));
    mount(Some("tmpfs"), "/run/ibmgr", Some("tmpfs"), none, size).expect("a tmpfs");
    net.ip("link add v0 type veth peer name v1");
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("10-v0.link");
    let to = folder.path().join("50-v0.toml");
    fs::write(&from, LINK).expect("a write");
    let (from, to) = (from.display(), to.display());
    let done = net.ibctl(&format!(
        "import --from networkd --all-kinds {from} --to {to}"
    ));
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, ""),
        "{}",
        done.stderr
    );
    let plan = net.ibctl(&format!("apply {to} --dry-run")).ok();
    for word in ["mtu", "txqueuelen", "alias"] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    assert_eq!(value(&net, "v0", "mtu", "sysfs"), "1500");
    net.ibctl(&format!("apply {to}")).ok();
    for (knob, wanted) in [("mtu", "4096"), ("txqueuelen", "500"), ("alias", "rail 0")] {
        assert_eq!(value(&net, "v0", knob, "sysfs"), wanted);
    }
}
