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
/// The default is in-tree's fixed threshold (drivers/infiniband/ulp/ipoib/ipoib.h). The maximum keeps
/// the copy, its headroom and `struct skb_shared_info` within one page.
pub const CM_COPYBREAK: Limit = Limit {
    min: 0,
    max: 2048,
    default: 256,
};

/// Slots of the transmit ring; a power of two.
///
/// The minimum holds two chains of [`BATCH_LIMIT`], so that one can be built while one is sent.
pub const RING_TX: Limit = Limit {
    min: 128,
    max: 8192,
    default: 512,
};

/// Slots of the receive ring; a power of two.
pub const RING_RX: Limit = Limit {
    min: 64,
    max: 8192,
    default: 1024,
};

/// Delay of a completion event in microseconds, and frames before one: 16 bits in
/// `ib_modify_cq`'s moderation arguments (include/rdma/ib_verbs.h).
pub const CQ_MODERATION: Limit = Limit {
    min: 0,
    max: 0xffff,
    default: 0,
};

/// Empty polls before completion events are asked for again: the kernel counts them in an `int` (net/core/net-sysfs.c).
pub const NAPI_DEFER: Limit = Limit {
    min: 0,
    max: 0x7fff_ffff,
    default: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_within_their_limits() {
        for limit in [
            BATCH_LIMIT,
            CM_COPYBREAK,
            RING_TX,
            RING_RX,
            CQ_MODERATION,
            NAPI_DEFER,
        ] {
            assert!(
                limit.contains(limit.min) && limit.contains(limit.max),
                "{limit:?}"
            );
            assert!(limit.contains(limit.default), "{limit:?}");
            assert!(!limit.contains(limit.max + 1), "{limit:?}");
        }
    }

    #[test]
    fn rings_are_powers_of_two_and_hold_two_chains() {
        for limit in [RING_TX, RING_RX] {
            for size in [limit.min, limit.max, limit.default] {
                assert!(size.is_power_of_two(), "{limit:?}");
            }
        }
        const { assert!(RING_TX.min >= 2 * BATCH_LIMIT.max) };
    }
}
