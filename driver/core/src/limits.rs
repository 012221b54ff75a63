// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Minimum, maximum and default of each knob that the driver owns.

/// An inclusive range of whole numbers with a default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// Smallest value that the driver takes.
    pub min: u32,
    /// Largest value that the driver takes.
    pub max: u32,
    /// Value of a new interface.
    pub default: u32,
}

impl Limit {
    /// Says whether the driver takes `value`.
    #[must_use]
    pub const fn contains(self, value: u32) -> bool {
        self.min <= value && value <= self.max
    }
}

/// Frames that one doorbell may cover.
pub const BATCH_LIMIT: Limit = Limit {
    min: 1,
    max: 64,
    default: 64,
};

/// Payload bytes up to which a connected-mode frame is copied to a small skb.
///
/// The default is in-tree's fixed threshold (`IPOIB_CM_COPYBREAK`, drivers/infiniband/ulp/ipoib/ipoib.h);
/// the maximum is one page less the head that the copy needs.
pub const CM_COPYBREAK: Limit = Limit {
    min: 0,
    max: 2048,
    default: 256,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_within_their_limits() {
        for limit in [BATCH_LIMIT, CM_COPYBREAK] {
            assert!(limit.contains(limit.default), "{limit:?}");
            assert!(!limit.contains(limit.max + 1), "{limit:?}");
        }
    }
}
