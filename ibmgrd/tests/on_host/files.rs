// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that change, break and go.

use nix::sys::signal::Signal;

use crate::support::{Home, Net, wait};

#[test]
fn a_broken_file_takes_no_setting_away() {
    let net = Net::with_veth();
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n");
    home.declare(
        "20-other.toml",
        "[[link]]\nmatch = { name = \"v1\" }\nmtu = 1450\n",
    );
    let daemon = home.start(&[]);
    assert_eq!(net.sysfs("v1", "mtu"), "1450");
    home.declare(
        "10-test.toml",
        "[[link]]\nmatch = { name = \"v0\" }\nmut = 1300\n",
    );
    home.declare(
        "20-other.toml",
        "[[link]]\nmatch = { name = \"v1\" }\nmtu = 1350\n",
    );
    daemon.signal(Signal::SIGHUP);
    net.wait_sysfs("v1", "mtu", "1350");
    let status = daemon.status();
    assert!(!status.ok);
    let state = |file: &str| {
        let found = status.files.iter().find(|other| other.file.ends_with(file));
        found.unwrap().state.clone()
    };
    assert_eq!(state("10-test.toml"), "kept-last-good");
    assert_eq!(state("20-other.toml"), "used");
    let problem = &status.problems[0];
    assert_eq!(
        (problem.severity.as_str(), problem.origin.line),
        ("error", 3)
    );
    home.wait_log(&["failed", "10-test.toml:3:1", "did you mean"]);
    // What it said last counts on.
    net.run("ip link set v0 mtu 1234");
    net.wait_sysfs("v0", "mtu", "1400");
    // Mended, it counts again.
    home.declare(
        "10-test.toml",
        "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1300\n",
    );
    daemon.signal(Signal::SIGHUP);
    net.wait_sysfs("v0", "mtu", "1300");
    wait("all to be well", || {
        let status = daemon.status();
        if status.ok {
            Ok(())
        } else {
            Err(Box::new(status))
        }
    });
    // Taken away, it is not managed any more, and left as it is.
    std::fs::remove_file(home.path("conf.d/10-test.toml")).unwrap();
    daemon.signal(Signal::SIGHUP);
    wait("v0 to be let go", || {
        let links = daemon.status().links;
        if links.iter().any(|link| link.link == "v0") {
            Err(links)
        } else {
            Ok(())
        }
    });
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
}

#[test]
fn what_a_broken_file_said_last_counts_after_a_reboot_too() {
    let net = Net::with_veth();
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n");
    let mut daemon = home.start(&[]);
    home.declare(
        "10-test.toml",
        "[[link]]\nmatch = { name = \"v0\" }\nmtu = \n",
    );
    daemon.signal(Signal::SIGKILL);
    daemon.ended();
    net.run("ip link set v0 mtu 1234");
    // A reboot empties /run.
    std::fs::remove_dir_all(home.path("state")).unwrap();
    let mut daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    assert_eq!(daemon.status().files[0].state, "kept-last-good");
    let mode = std::fs::metadata(home.path("keep/last-good.json")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o600);
    // A file that is gone is not kept, and one that is damaged is none.
    std::fs::remove_file(home.path("conf.d/10-test.toml")).unwrap();
    daemon.signal(Signal::SIGTERM);
    daemon.ended();
    let mut daemon = home.start(&[]);
    assert_eq!(daemon.status().files, []);
    daemon.signal(Signal::SIGTERM);
    daemon.ended();
    std::fs::write(home.path("keep/last-good.json"), "{ torn").unwrap();
    let daemon = home.start(&[]);
    assert!(daemon.status().ok);
}
