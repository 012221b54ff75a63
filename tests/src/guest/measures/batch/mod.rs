// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures of our driver beside the stock one: the same work, in turns, in one boot, on the same HCAs.

pub mod gso;

use std::fmt;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::{Guest, Result};

/// What is compared: the stock driver, and ours in each batching mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Driver {
    Stock,
    Off,
    On,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stock => "stock",
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

impl Driver {
    /// Loads it, makes a pair of ends, works with them, and takes all away again.
    fn with<T>(
        self,
        guest: &mut Guest,
        work: impl FnOnce(&mut Guest, &Pair) -> Result<T>,
    ) -> Result<T> {
        let module = if self == Self::Stock {
            "ib_ipoib"
        } else {
            "ipoib_batch"
        };
        guest.load(module)?;
        let pair = Pair::of_loaded(guest, Mode::Datagram)?;
        if self != Self::Stock {
            for end in [&pair.a, &pair.b] {
                end.ns
                    .run(&format!("ibctl set {} batching={self}", end.dev))?;
            }
        }
        let result = work(guest, &pair)?;
        guest.unload(module)?;
        for end in [&pair.a, &pair.b] {
            guest.run(&format!("ip netns del {}", end.ns.name()))?;
        }
        Ok(result)
    }
}
