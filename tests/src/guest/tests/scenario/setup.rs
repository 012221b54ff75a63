// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameter of every scenario: whose drivers the two ends have, and the mode they carry in.

use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Allowed, Kernel, Task};
use crate::guest::tests::stock;
use crate::guest::{Guest, Result};

/// The in-tree driver.
pub const STOCK: &str = "ib_ipoib";

/// Our driver.
pub const OURS: &str = "ipoib_batch";

/// Whose drivers the two ends have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drivers {
    /// The in-tree driver at both ends.
    Stock,
    /// Ours at both ends.
    Ours,
    /// Ours on the first HCA, the in-tree one on the second.
    OursToStock,
    /// The in-tree driver on the first HCA, ours on the second.
    StockToOurs,
}

/// How a scenario is run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The drivers.
    pub drivers: Drivers,
    /// The mode.
    pub mode: Mode,
    /// The kernel.
    pub kernel: Kernel,
}

impl Setup {
    /// Names drivers and mode, on Debian 13's kernel.
    #[must_use]
    pub const fn usual(drivers: Drivers, mode: Mode) -> Self {
        Self {
            drivers,
            mode,
            kernel: Kernel::Trixie,
        }
    }

    /// Names drivers and mode, on unstable's kernel.
    #[must_use]
    pub const fn sid(drivers: Drivers, mode: Mode) -> Self {
        Self {
            drivers,
            mode,
            kernel: Kernel::Sid,
        }
    }

    /// Gives a scenario's task its kernel, and what its drivers are known for.
    #[must_use]
    pub const fn task(self, task: Task) -> Task {
        let known: &'static [Allowed] = match (self.drivers, self.mode) {
            (Drivers::Ours, _) => &[],
            (_, Mode::Datagram) => stock::KNOWN,
            (_, Mode::Connected) => stock::CONNECTED,
        };
        task.kernel(self.kernel).allow(known)
    }

    /// Lists the modules, that of the first end first.
    #[must_use]
    pub fn modules(self) -> &'static [&'static str] {
        match self.drivers {
            Drivers::Stock => &[STOCK],
            Drivers::Ours => &[OURS],
            Drivers::OursToStock => &[OURS, STOCK],
            Drivers::StockToOurs => &[STOCK, OURS],
        }
    }

    /// Says whether an end of a pair of this set-up has our driver.
    #[must_use]
    pub fn is_ours(self, pair: &Pair, end: &End) -> bool {
        match self.drivers {
            Drivers::Stock => false,
            Drivers::Ours => true,
            Drivers::OursToStock => end.dev == pair.a.dev,
            Drivers::StockToOurs => end.dev == pair.b.dev,
        }
    }

    /// Loads the drivers and sets an interface up on either HCA.
    ///
    /// # Errors
    ///
    /// When a driver doesn't load, or the two don't reach each other.
    pub fn pair(self, guest: &Guest) -> Result<Pair> {
        // The in-tree driver takes every HCA. Loaded second, it makes ib1 and ib2; one of them rests.
        let devs = match self.drivers {
            Drivers::Stock => {
                guest.load(STOCK)?;
                ["ib0", "ib1"]
            }
            Drivers::Ours => {
                guest.load(OURS)?;
                ["ib0", "ib1"]
            }
            Drivers::OursToStock => {
                guest.load("ipoib_batch kind=ipoib_batch hcas=vhca0")?;
                guest.load(STOCK)?;
                ["ib0", "ib2"]
            }
            Drivers::StockToOurs => {
                guest.load("ipoib_batch kind=ipoib_batch hcas=vhca1")?;
                guest.load(STOCK)?;
                ["ib1", "ib0"]
            }
        };
        Pair::of_devices(guest, devs, Some(self.mode))
    }

    /// Returns the modes of batching that are to be tried; none when no end batches, or `wanted` isn't.
    #[must_use]
    pub fn batching(self, wanted: bool) -> &'static [&'static str] {
        if self.drivers == Drivers::Stock || !wanted {
            &[]
        } else {
            &["off", "on", "adaptive"]
        }
    }

    /// Sets the mode of batching at each end that has our driver.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn set_batching(self, pair: &Pair, mode: &str) -> Result {
        for end in [&pair.a, &pair.b] {
            if self.is_ours(pair, end) {
                end.ns
                    .run(&format!("ibctl set {} batching={mode}", end.dev))?;
            }
        }
        Ok(())
    }
}
