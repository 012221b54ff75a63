// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drop-in folders with systemd's precedence.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use ibmgrd_config::{Store, read_folders};

use crate::support::values;

struct Folders {
    root: tempfile::TempDir,
    folders: [PathBuf; 3],
}

impl Folders {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let folders = ["lib", "run", "etc"].map(|name| root.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).expect("a folder");
        }
        Self { root, folders }
    }

    /// Writes a rule with the value `mtu`.
    fn rule(&self, path: &str, mtu: u32) {
        let text = format!("[[link]]\nmatch = {{ name = \"ib0\" }}\nmtu = {mtu}\n");
        self.write(path, &text);
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.path().join(path), text).expect("it can be written");
    }

    fn load(&self) -> (Vec<String>, Vec<String>) {
        let loaded = Store::new().load_listing(read_folders(&self.folders));
        let rules = loaded.desired.rules.iter().map(values).collect();
        let told = loaded.diagnostics.iter().map(|found| found.message.clone());
        (rules, told.collect())
    }

    #[track_caller]
    fn assert_mtus(&self, wanted: &[u32]) {
        let wanted: Vec<_> = wanted.iter().map(|mtu| format!("mtu={mtu} heal")).collect();
        assert_eq!(self.load(), (wanted, Vec::new()));
    }
}

#[test]
fn files_are_in_the_order_of_their_names_over_all_folders() {
    let folders = Folders::new();
    folders.rule("etc/10-a.toml", 1010);
    folders.rule("lib/20-b.toml", 1020);
    folders.write("run/15-c.yaml", "link: [{match: {name: ib0}, mtu: 1015}]");
    folders.rule("etc/30-d.toml", 1030);
    folders.assert_mtus(&[1010, 1015, 1020, 1030]);
}

#[test]
fn a_file_of_a_higher_folder_replaces_one_of_the_same_name() {
    let folders = Folders::new();
    folders.rule("lib/10.toml", 1001);
    folders.rule("run/10.toml", 1002);
    folders.assert_mtus(&[1002]);
    folders.rule("etc/10.toml", 1003);
    folders.assert_mtus(&[1003]);
}

#[test]
fn an_empty_file_and_a_link_to_null_mask() {
    let folders = Folders::new();
    folders.rule("lib/10.toml", 1001);
    folders.rule("lib/20.toml", 1002);
    folders.rule("lib/30.toml", 1003);
    folders.write("run/10.toml", "");
    symlink("/dev/null", folders.root.path().join("etc/20.toml")).expect("a link");
    folders.assert_mtus(&[1003]);
    // A masked file can be unmasked by a folder still higher.
    folders.rule("etc/10.toml", 1004);
    folders.assert_mtus(&[1004, 1003]);
}

#[test]
fn other_files_are_not_looked_at() {
    let folders = Folders::new();
    for name in [
        "etc/README",
        "etc/10.toml.rpmnew",
        "etc/10.toml~",
        "etc/.10.toml",
        "etc/10.conf",
    ] {
        folders.write(name, "this is no TOML");
    }
    folders.assert_mtus(&[]);
}

#[test]
fn folders_that_are_not_there_are_empty() {
    let loaded = Store::new().load_listing(read_folders(["/nowhere/at/all"]));
    assert!(loaded.diagnostics.is_empty() && loaded.files.is_empty());
}

#[test]
fn what_cannot_be_read_is_told_and_stops_nobody() {
    let folders = Folders::new();
    folders.rule("etc/20.toml", 1020);
    fs::create_dir(folders.root.path().join("etc/10.toml")).expect("a folder");
    symlink("nowhere", folders.root.path().join("etc/11.toml")).expect("a link");
    symlink("12.toml", folders.root.path().join("etc/12.toml")).expect("a link");
    let fifo = folders.root.path().join("etc/13.toml");
    let made = Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .expect("mkfifo is needed here");
    assert!(made.success());
    let big = fs::File::create(folders.root.path().join("etc/14.toml")).expect("a file");
    big.set_len(3 << 20).expect("a large file");
    let (rules, told) = folders.load();
    assert_eq!(rules, ["mtu=1020 heal"]);
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(
        told.iter()
            .all(|message| message.starts_with("the file can't be read:")),
        "{told:?}"
    );
}

#[test]
fn a_folder_that_cannot_be_listed_keeps_its_files() {
    let folders = Folders::new();
    folders.rule("lib/10.toml", 1001);
    folders.rule("etc/20.toml", 1002);
    let mut store = Store::new();
    store.load_listing(read_folders(&folders.folders));
    // A file in place of a folder, since root may read any folder.
    let etc = folders.root.path().join("etc");
    fs::remove_dir_all(&etc).expect("it goes");
    fs::write(&etc, "").expect("a file");
    let loaded = store.load_listing(read_folders(&folders.folders));
    let rules: Vec<_> = loaded.desired.rules.iter().map(values).collect();
    assert_eq!(rules, ["mtu=1001 heal", "mtu=1002 heal"]);
    assert!(
        loaded.diagnostics[0]
            .message
            .starts_with("the folder can't be listed"),
        "{loaded:?}"
    );
}

#[test]
fn modes_do_not_matter_to_root_nor_does_the_owner() {
    let folders = Folders::new();
    folders.rule("etc/10.toml", 1001);
    let path: &Path = &folders.root.path().join("etc/10.toml");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode");
    folders.assert_mtus(&[1001]);
}
