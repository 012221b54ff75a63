// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Partition keys.

use std::fmt;

use serde::{Serialize, Serializer};

/// A partition key that names a partition (InfiniBand Architecture 1.x, 10.9).
///
/// # Invariants
///
/// The low 15 bits are not zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pkey(u16);

impl Pkey {
    /// Bit 15: the port is a full member of the partition.
    pub const FULL_MEMBER: u16 = 0x8000;

    /// Rejects 0 and 0x8000, which name no partition.
    #[must_use]
    pub const fn new(raw: u16) -> Option<Self> {
        if raw & !Self::FULL_MEMBER == 0 {
            None
        } else {
            Some(Self(raw))
        }
    }

    /// Returns all 16 bits.
    #[must_use]
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// Says whether the full-member bit is set.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & Self::FULL_MEMBER != 0
    }
}

impl fmt::Display for Pkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("0x{:04x}", self.0))
    }
}

impl Serialize for Pkey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_partition_are_refused() {
        assert_eq!(Pkey::new(0), None);
        assert_eq!(Pkey::new(0x8000), None);
        assert_eq!(
            Pkey::new(0x8001).map(|key| key.to_string()).as_deref(),
            Some("0x8001")
        );
        assert!(!Pkey::new(1).unwrap().is_full_member());
    }
}
