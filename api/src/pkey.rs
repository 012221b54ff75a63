// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Partition keys.

use std::fmt;
use std::str::FromStr;

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

    /// Returns the low 15 bits, which name the partition.
    #[must_use]
    pub const fn partition(self) -> u16 {
        self.0 & !Self::FULL_MEMBER
    }

    /// Says whether the full-member bit is set.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & Self::FULL_MEMBER != 0
    }
}

/// Why a text is no P_Key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PkeyError {
    /// No number of 16 bits.
    #[error("'{}' is no P_Key: write it as 0x8001, with up to four hexadecimal digits", .0.escape_debug())]
    Form(String),
    /// 0 or 0x8000.
    #[error("P_Key {0} names no partition: its low 15 bits are zero")]
    NoPartition(String),
}

impl FromStr for Pkey {
    type Err = PkeyError;

    /// Reads `0x8001`, or a decimal number.
    fn from_str(text: &str) -> Result<Self, PkeyError> {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
        // `from_str_radix` takes a sign, which no P_Key has.
        let is_plain = digits.chars().all(|c| c.is_digit(radix));
        let raw = u16::from_str_radix(digits, radix).ok().filter(|_| is_plain);
        let raw = raw.ok_or_else(|| PkeyError::Form(text.to_owned()))?;
        Self::new(raw).ok_or_else(|| PkeyError::NoPartition(text.to_owned()))
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
        assert_eq!(Pkey::new(0x8001).unwrap().partition(), 1);
    }

    #[test]
    fn keys_read_as_hexadecimal_or_decimal() {
        assert_eq!("0x8001".parse(), Ok(Pkey(0x8001)));
        assert_eq!("0X1".parse(), Ok(Pkey(1)));
        assert_eq!("32769".parse(), Ok(Pkey(0x8001)));
        for bad in [
            "", "0x", "8001h", "-1", "0x-1", "+1", "0x10000", "65536", " 1", "ffff",
        ] {
            assert!(
                matches!(bad.parse::<Pkey>(), Err(PkeyError::Form(_))),
                "{bad}"
            );
        }
        for none in ["0", "0x8000", "32768"] {
            assert!(
                matches!(none.parse::<Pkey>(), Err(PkeyError::NoPartition(_))),
                "{none}"
            );
        }
    }
}
