// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The open connections to the kernel.

use std::io;
use std::path::PathBuf;

use crate::genl::Genl;
use crate::rtnl::Rtnl;
use crate::sysfs::Sysfs;

/// Connections, opened as they are needed: a `set` of one knob opens two.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) rtnl: Rtnl,
    pub(super) genl: Genl,
    root: PathBuf,
    opened: Option<Sysfs>,
}

impl Kernel {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            rtnl: Rtnl::new(),
            genl: Genl::new(),
            root,
            opened: None,
        }
    }

    /// Returns the list of CPUs that are online.
    pub(super) fn online_cpus(&self) -> Option<String> {
        let list = std::fs::read_to_string(self.root.join("devices/system/cpu/online")).ok()?;
        Some(list.trim_end().to_owned())
    }

    /// Returns sysfs, or why it cannot be used.
    pub(super) fn sysfs(&mut self) -> Result<&Sysfs, String> {
        let sysfs = match self.opened.take() {
            Some(sysfs) => sysfs,
            None => Sysfs::open(&self.root).map_err(|error| {
                let root = self.root.display();
                match error.kind() {
                    io::ErrorKind::NotFound => format!("no sysfs is mounted at {root}"),
                    _ => format!("sysfs at {root}: {error}"),
                }
            })?,
        };
        Ok(self.opened.insert(sysfs))
    }
}
