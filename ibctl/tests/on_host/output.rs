// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Broken pipes, full disks, closed descriptors, and what a terminal may see.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{Net, ibctl_path};

const LINES: [&str; 9] = [
    "show",
    "show -o json",
    "show v0",
    "get v0",
    "get v0 mtu",
    "set v0 mtu=1400",
    "explain",
    "explain mtu v0",
    "--help",
];

#[test]
fn a_reader_that_is_gone_is_success() {
    let net = Net::with_veth();
    for line in LINES {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = net
            .command(ibctl_path(), line.split(' '))
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("ibctl runs");
        assert_eq!(output.status.signal(), None, "{line}");
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        assert!(output.stderr.is_empty(), "{line}: {output:?}");
    }
    assert_eq!(
        net.ip_link("v0")["mtu"],
        1400,
        "the set was done all the same"
    );
}

#[test]
fn pipelines_that_stop_early_succeed() {
    let net = Net::with_veth();
    for at in 0..100 {
        net.ip(&format!("link add a{at} type veth peer name b{at}"));
    }
    for reader in ["head -0", "head -1", "true"] {
        for line in ["show", "show -o json", "show v0 -o json"] {
            let script = format!(
                "set -o pipefail; {} {line} | {reader}",
                ibctl_path().display()
            );
            let done = net.program("bash", ["-c", &script]);
            assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{script}");
        }
    }
}

#[test]
fn a_full_disk_and_closed_descriptors_are_told_or_survived() {
    let net = Net::with_veth();
    let ibctl = ibctl_path().display();
    let full = net.program("bash", ["-c", &format!("{ibctl} show > /dev/full")]);
    assert_eq!(full.status, 13, "{full:?}");
    assert!(full.stderr.contains("No space left on device"), "{full:?}");
    let set = net.program(
        "bash",
        ["-c", &format!("{ibctl} set v0 mtu=1400 > /dev/full")],
    );
    assert_eq!(set.status, 13, "{set:?}");
    assert!(
        set.stderr.contains("v0: all is set as asked, but"),
        "{set:?}"
    );
    assert_eq!(net.ip_link("v0")["mtu"], 1400);
    let closed = net.program("bash", ["-c", &format!("{ibctl} show >&- 2>&-")]);
    assert_eq!(closed.status, 0, "{closed:?}");
    let closed = net.program("bash", ["-c", &format!("{ibctl} show nothing 2>&-")]);
    assert_eq!(closed.status, 4, "{closed:?}");
}

#[test]
fn texts_of_others_do_not_steer_the_terminal() {
    let net = Net::with_veth();
    net.write_sysfs("v0", "ifalias", "\u{1b}[31mred");
    for line in ["show v0", "get v0 alias", "set v0 alias=plain"] {
        let text = net.ibctl(line).ok();
        assert!(text.contains("\\u{1b}[31mred"), "{text:?}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
