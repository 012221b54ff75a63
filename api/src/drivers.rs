// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which IPoIB driver owns each InfiniBand port, which one is chosen for the next time, and what stands
//! in the way.

use std::fmt;

use serde::Serialize;

/// One of the two drivers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverChoice {
    /// The kernel's own, `ib_ipoib`.
    Stock,
    /// The batching one of this project, `ipoib_batch`.
    Batch,
}

impl DriverChoice {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stock, Self::Batch];

    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Batch => "batch",
        }
    }

    /// Returns the kernel module.
    #[must_use]
    pub const fn module(self) -> &'static str {
        match self {
            Self::Stock => "ib_ipoib",
            Self::Batch => "ipoib_batch",
        }
    }

    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Stock => Self::Batch,
            Self::Batch => Self::Stock,
        }
    }
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel module of an IPoIB driver.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DriverModule {
    /// Its name.
    pub name: &'static str,
    /// Whether the running kernel has a file for it, or has it built in.
    pub is_installed: bool,
    /// Whether it is loaded.
    pub is_loaded: bool,
}

/// What the kernel wants of modules, and whether the batching driver has it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModuleSignature {
    /// Whether the firmware's Secure Boot is on; `None` where there is no such firmware.
    pub secure_boot: Option<bool>,
    /// Whether the kernel takes modules with a known signature only.
    pub is_required: bool,
    /// Who signed the batching driver; `None` when nobody did, or it is not installed.
    pub signer: Option<String>,
    /// Whether the kernel has a key of that name; `None` when that can't be seen.
    pub is_known: Option<bool>,
    /// What all that means, and what to do.
    pub verdict: String,
}

/// An InfiniBand port, and whose it is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PortOwner {
    /// The HCA, such as `mlx5_0`.
    pub hca: String,
    /// Number of the port, from 1.
    pub port: u32,
    /// Its state, such as `ACTIVE`.
    pub state: String,
    /// Its interface.
    pub link: Option<String>,
    /// P_Key children of that interface.
    pub children: Vec<String>,
    /// Driver of the interface, as ethtool names it.
    pub driver: Option<String>,
    /// Why it is that one.
    pub why: String,
}

/// The whole answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Drivers {
    /// What the next load of IPoIB brings.
    pub choice: DriverChoice,
    /// The file that says so; `None` when there is none, which means the stock driver.
    pub choice_file: Option<String>,
    /// Release of the running kernel.
    pub kernel: String,
    /// Both modules.
    pub modules: Vec<DriverModule>,
    /// Signatures.
    pub signature: ModuleSignature,
    /// All InfiniBand ports.
    pub ports: Vec<PortOwner>,
}
