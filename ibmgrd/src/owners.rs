// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Other programs that manage interfaces, by the marks that they leave below `/run` and `/etc`.

use std::fs;
use std::path::{Path, PathBuf};

use ibmgr_api::status::Owner;

/// Looks for marks below one root.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    root: PathBuf,
}

/// Largest mark that is read.
const MARK_MAX: u64 = 64 * 1024;

impl Owners {
    /// Returns one that looks below `root`, which is `/` but for tests.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Returns the programs that say they manage the interface with that index.
    pub(crate) fn of(&self, index: u32) -> Vec<Owner> {
        [
            self.network_manager(index),
            self.networkd(index),
            self.tuned(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        let path = self.root.join(path);
        let is_small = fs::metadata(&path).ok()?.len() <= MARK_MAX;
        is_small.then(|| fs::read_to_string(&path).ok()).flatten()
    }

    /// NetworkManager keeps a key file for each interface that it knows.
    fn network_manager(&self, index: u32) -> Option<Owner> {
        let path = format!("run/NetworkManager/devices/{index}");
        let text = self.read(&path)?;
        (value(&text, "managed") == Some("true")).then(|| Owner {
            program: "NetworkManager".to_owned(),
            what: match value(&text, "connection-uuid") {
                Some(uuid) => format!("manages it with connection {uuid} (/{path})"),
                None => format!("manages it (/{path})"),
            },
        })
    }

    /// systemd-networkd tells the state of each interface.
    fn networkd(&self, index: u32) -> Option<Owner> {
        let path = format!("run/systemd/netif/links/{index}");
        let text = self.read(&path)?;
        let state = value(&text, "ADMIN_STATE")?;
        (!matches!(state, "unmanaged" | "initialized" | "pending")).then(|| Owner {
            program: "systemd-networkd".to_owned(),
            what: match value(&text, "NETWORK_FILE") {
                Some(file) => format!("manages it with {file} (/{path})"),
                None => format!("manages it, in state {state} (/{path})"),
            },
        })
    }

    /// tuned sets interfaces when its active profile has a section of the plugin `net`.
    fn tuned(&self) -> Option<Owner> {
        let is_running = self.root.join("run/tuned/tuned.pid").exists();
        let active = is_running.then(|| self.read("etc/tuned/active_profile"))??;
        let uses = |profile: &&str| {
            [
                "etc/tuned/profiles",
                "etc/tuned",
                "usr/lib/tuned/profiles",
                "usr/lib/tuned",
            ]
            .iter()
            .find_map(|folder| self.read(&format!("{folder}/{profile}/tuned.conf")))
            .is_some_and(|text| uses_net(&text))
        };
        let profile = active
            .split_whitespace()
            .filter(|profile| !profile.contains('/') && *profile != "..")
            .find(uses)?;
        Some(Owner {
            program: "tuned".to_owned(),
            what: format!("may set it: its active profile {profile} has a section for interfaces"),
        })
    }
}

/// Returns what stands behind `key=`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let behind = |line: &'a str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then_some(value.trim())
    };
    text.lines()
        .find_map(behind)
        .filter(|value| !value.is_empty())
}

fn uses_net(text: &str) -> bool {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name;
            if name == "net" {
                return true;
            }
        } else if !section.is_empty() && value(line, "type") == Some("net") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn marks_of_other_programs_are_read() {
        let root = tempfile::tempdir().unwrap();
        let owners = Owners::new(root.path());
        assert_eq!(owners.of(7), []);
        write(
            root.path(),
            "run/NetworkManager/devices/7",
            "[device]\nmanaged=true\nconnection-uuid=1234\nnm-owned=false\n",
        );
        write(
            root.path(),
            "run/NetworkManager/devices/8",
            "[device]\nmanaged=false\n",
        );
        write(
            root.path(),
            "run/systemd/netif/links/8",
            "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/ib.network\n",
        );
        write(
            root.path(),
            "run/systemd/netif/links/7",
            "ADMIN_STATE=unmanaged\n",
        );
        let names = |index| {
            let owners = owners.of(index).into_iter();
            owners.map(|owner| owner.program).collect::<Vec<_>>()
        };
        assert_eq!(names(7), ["NetworkManager"]);
        assert!(owners.of(7)[0].what.contains("connection 1234"));
        assert_eq!(names(8), ["systemd-networkd"]);
        assert!(
            owners.of(8)[0]
                .what
                .contains("/etc/systemd/network/ib.network")
        );

        write(root.path(), "etc/tuned/active_profile", "balanced lab\n");
        write(
            root.path(),
            "usr/lib/tuned/balanced/tuned.conf",
            "[cpu]\ngovernor=x\n",
        );
        write(
            root.path(),
            "etc/tuned/profiles/lab/tuned.conf",
            "[main]\ninclude=x\n[ib]\ntype=net\nmtu=2044\n",
        );
        assert_eq!(names(9), [""; 0], "it does not run");
        write(root.path(), "run/tuned/tuned.pid", "1\n");
        assert_eq!(names(9), ["tuned"]);
    }
}
