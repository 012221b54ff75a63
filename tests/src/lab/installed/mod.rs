// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packages in a Debian machine: installed, declared, rebooted, upgraded, switched, purged.

mod steps;

use anyhow::{Context, Result, ensure};

use super::booted::Disks;
use super::dist::{Kinds, Version};
use super::jobs::Room;
use steps::{
    ACCESS, CHOOSE, DECLARED, DRIFT, FALLBACK, HOTPLUG, INSTALL, LEFT, PURGE, RUNNING, SWITCH,
    TIDY, UPGRADE,
};

/// Pages whose `sh` blocks run, one after the other, as root.
const PAGES: [(&str, &str); 4] = [
    ("README.md", include_str!("../../../../README.md")),
    (
        "docs/administration.md",
        include_str!("../../../../docs/administration.md"),
    ),
    ("docs/driver.md", include_str!("../../../../docs/driver.md")),
    (
        "docs/orchestration.md",
        include_str!("../../../../docs/orchestration.md"),
    ),
];

/// Leads the whole life of the packages.
///
/// # Errors
///
/// The step that went wrong, with what it printed.
pub fn life(room: &Room) -> Result<()> {
    let new = Version::of_commit()?;
    let before = room.pack(&new.older(), Kinds::Deb, "old")?;
    let now = room.pack(&new, Kinds::Deb, "new")?;
    let deb = |packages: &super::dist::Packages, start: &str| {
        let name = packages
            .names
            .iter()
            .find(|name| name.starts_with(start) && name.ends_with(".deb"));
        name.map(|name| packages.dir.join(name))
            .context("a package is missing")
    };
    let files = [
        deb(&before, "ibmgr_")?,
        deb(&before, "ipoib-batch-dkms_")?,
        deb(&now, "ibmgr_")?,
        deb(&now, "ipoib-batch-dkms_")?,
    ];
    let disks = Disks::make(
        &room.cache,
        &room.workshop,
        &room.dir.join("vm"),
        &files,
        INSTALL,
    )?;
    let mut vm = disks.boot()?;

    // One command to install, one to see: three are allowed.
    vm.must("apt install", "apt-get install --yes /root/old/ibmgr_*.deb")?;
    let shown = vm.must("ibctl show", "ibctl show")?;
    ensure!(
        shown
            .lines()
            .any(|line| line.starts_with("ib0 ") && line.contains("ib_ipoib")),
        "ib0 with the stock driver was to be shown:\n{shown}"
    );
    vm.must("the daemon as installed", RUNNING)?;
    vm.must("who may do what", ACCESS)?;
    vm.must("choosing the driver", CHOOSE)?;
    vm.reboot()?;
    vm.must("as declared, by our driver", DECLARED)?;
    vm.must("drift is put right", DRIFT)?;
    vm.must("apt upgrade", UPGRADE)?;
    vm.must("still as declared", DECLARED)?;
    for (path, page) in PAGES {
        vm.must(path, &format!("cd /root/new\n{}", blocks(page)))?;
    }
    vm.must("what pages declared goes", TIDY)?;
    vm.must("to stock and back", SWITCH)?;
    vm.must("as declared once more", DECLARED)?;
    vm.must("a port that comes", HOTPLUG)?;
    vm.must("as declared after it", DECLARED)?;
    vm.must("a driver that is missing does no harm", FALLBACK)?;
    // The last switch made the children anew: the purge counts interfaces that are whole again.
    vm.must("as declared before the purge", DECLARED)?;
    vm.must("apt purge", PURGE)?;
    let left = vm.must("what is left", LEFT)?;
    ensure!(
        left.trim().is_empty(),
        "after the purge there is still:\n{left}"
    );
    Ok(())
}

/// Returns the `sh` blocks of a page, each command with an echo of itself. What Cargo does needs a clone, not
/// an installed machine; other tests run it.
fn blocks(page: &str) -> String {
    let mut is_inside = false;
    let mut script = String::from("set -x\n");
    for line in page.lines() {
        if line.starts_with("```") {
            is_inside = line == "```sh";
        } else if is_inside && !line.starts_with("cargo ") {
            script.push_str(line);
            script.push('\n');
        }
    }
    script
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn blocks_of_pages_are_scripts() {
        assert_eq!(
            blocks("a\n```sh\nb\ncargo x\n```\n```text\nc\n```\n"),
            "set -x\nb\n"
        );
        for (path, page) in PAGES {
            assert!(
                blocks(page).lines().count() >= 3,
                "{path} has no commands to run"
            );
        }
    }
}
