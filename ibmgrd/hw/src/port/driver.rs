// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of drivers beyond what they tell, and why: the reasons that users read.

use ibmgr_api::abi;
use ibmgr_api::{Carrier, NapiField, RtnlField, SysfsField};

/// A driver, as far as knobs differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Driver {
    /// In-tree ib_ipoib.
    InTree,
    /// In-tree mlx5 with enhanced IPoIB.
    Enhanced,
    /// This project's.
    Batch,
    /// Any other.
    Other,
}

impl Driver {
    /// Tells drivers apart by the name that ethtool reports.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "ib_ipoib" => Self::InTree,
            // "mlx5_core[ib_ipoib]" (drivers/net/ethernet/mellanox/mlx5/core/ipoib/ethtool.c).
            name if name.ends_with("[ib_ipoib]") => Self::Enhanced,
            abi::DRIVER => Self::Batch,
            _ => Self::Other,
        }
    }

    /// Returns why the driver stores a knob without using it.
    pub(super) const fn ignores(
        self,
        carrier: Carrier,
        is_connected: bool,
    ) -> Option<&'static str> {
        match (self, carrier) {
            (
                Self::InTree,
                Carrier::Napi(NapiField::GroFlushTimeout | NapiField::DeferHardIrqs)
                | Carrier::OneNapi(NapiField::GroFlushTimeout | NapiField::DeferHardIrqs)
                | Carrier::Sysfs(SysfsField::GroFlushTimeout | SysfsField::DeferHardIrqs),
            ) => Some(
                "in-tree ib_ipoib reports each poll as if it had found nothing, \
                 and then the kernel does not use the value",
            ),
            (Self::InTree, Carrier::Rtnl(RtnlField::GroMaxSize)) if is_connected => {
                Some("in-tree ib_ipoib passes no packet of connected mode through GRO")
            }
            _ => None,
        }
    }

    /// Returns why the driver cannot have a knob, where that is known without asking it.
    pub(super) const fn lacks(self, carrier: Carrier) -> Option<&'static str> {
        match (self, carrier) {
            (
                Self::InTree | Self::Enhanced | Self::Other,
                Carrier::Rtnl(RtnlField::Batching | RtnlField::BatchLimit)
                | Carrier::BatchingFlags
                | Carrier::Sysfs(SysfsField::Batching | SysfsField::BatchLimit),
            ) => Some("only the ipoib_batch driver batches"),
            (
                Self::InTree | Self::Enhanced | Self::Other,
                Carrier::Rtnl(RtnlField::GroFlushTimeout | RtnlField::DeferHardIrqs),
            ) => Some("only the ipoib_batch driver has such an attribute"),
            (
                Self::InTree,
                Carrier::Tunable(_)
                | Carrier::Rtnl(RtnlField::CmCopybreak)
                | Carrier::Sysfs(SysfsField::CmCopybreak),
            ) => Some("in-tree ib_ipoib has a fixed threshold of 256 bytes"),
            (Self::InTree, Carrier::Ring(_)) => {
                Some("in-tree ib_ipoib takes ring sizes as module parameters only")
            }
            _ => None,
        }
    }
}

/// Says whether the driver can use connected mode with this address: it sets the flag when its
/// connection manager is ready (`IPOIB_FLAGS_RC`, drivers/infiniband/ulp/ipoib/ipoib.h).
pub(super) fn has_connected_mode(address: &[u8]) -> bool {
    address.first().is_some_and(|flags| flags & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_told_apart_by_name() {
        assert_eq!(Driver::named("ib_ipoib"), Driver::InTree);
        assert_eq!(Driver::named("mlx5_core[ib_ipoib]"), Driver::Enhanced);
        assert_eq!(Driver::named("ipoib_batch"), Driver::Batch);
        assert_eq!(Driver::named("veth"), Driver::Other);
    }

    #[test]
    fn the_rc_flag_is_the_top_bit_of_the_address() {
        assert!(has_connected_mode(&[0x80, 0, 0, 0x48]));
        assert!(!has_connected_mode(&[0x00, 0, 0, 0x48]));
        assert!(!has_connected_mode(&[]));
    }
}
