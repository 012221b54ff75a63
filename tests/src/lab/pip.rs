// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of the Python registry, taken once and kept in the cache (docs/adr/0010).

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::cache::{Cache, Item};
use super::chroot::tail;
use super::host;
use super::key::KeyMaker;

/// A program, and how pip gets it.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// All packages that it takes, one a line, with their versions, as pip pins them.
    pub packages: &'static str,
    /// Whether each line has the content's hash.
    pub is_hashed: bool,
}

impl Program {
    /// Takes it from the cache, or gets it first. It stays in the cache while the returned value lives.
    ///
    /// # Errors
    ///
    /// When pip is missing and can't be installed, or can't get a package; says what to do.
    pub fn ensure(&self, cache: &Cache) -> Result<Item> {
        let key = KeyMaker::new().add("wheel", self.packages).finish();
        cache.item("tool", self.name, &key, |dir| {
            host::install_test_tools()?;
            let pinned = dir.join("wheel.txt");
            fs::write(&pinned, self.packages)?;
            let mut pip = Command::new("pip3");
            pip.args(["install", "--no-deps", "--only-binary=:all:"])
                .args(["--disable-pip-version-check", "--no-input", "--target"])
                .arg(dir)
                .args(self.is_hashed.then_some("--require-hashes"))
                .arg("--requirement")
                .arg(&pinned)
                .stdin(Stdio::null());
            let output = pip.output().context("can't run pip3")?;
            if !output.status.success() {
                let text = [output.stdout, output.stderr].concat();
                bail!(
                    "pip3 can't get {}, which {}.\n\
                     Check the network and pip's settings, then try again; it said:\n{}",
                    self.name,
                    self.about,
                    tail(&String::from_utf8_lossy(&text), 8)
                );
            }
            Ok(())
        })
    }
}
