// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Names and numbers of the driver's interface to user space.
//!
//! The rtnl kind and attributes 1 to 3 are in-tree's (include/uapi/linux/if_link.h). Ours start at 32,
//! well above what in-tree may take next and below the 50 at which rtnetlink caps a kind's table.

/// Module name, and the driver name that ethtool reports.
pub const DRIVER: &str = "ipoib_batch";

/// rtnl kind, unless the module is told another.
pub const KIND: &str = "ipoib";

/// `IFLA_IPOIB_PKEY`, u16.
pub const ATTR_PKEY: u16 = 1;
/// `IFLA_IPOIB_MODE`, u16: 0 datagram, 1 connected.
pub const ATTR_MODE: u16 = 2;
/// `IFLA_IPOIB_UMCAST`, u16.
pub const ATTR_UMCAST: u16 = 3;
/// Batching mode, u32: [`crate::batch::Mode`].
pub const ATTR_BATCHING: u16 = 32;
/// Frames per doorbell, u32: [`crate::limits::BATCH_LIMIT`].
pub const ATTR_BATCH_LIMIT: u16 = 33;
/// Small-copy threshold in bytes, u32: [`crate::limits::CM_COPYBREAK`].
pub const ATTR_CM_COPYBREAK: u16 = 34;
/// GRO flush timeout of all NAPIs in nanoseconds, u32; it is left out when it is longer than that can say.
pub const ATTR_GRO_FLUSH_TIMEOUT: u16 = 35;
/// Empty polls of all NAPIs before events are asked for again, u32: [`crate::limits::NAPI_DEFER`].
pub const ATTR_NAPI_DEFER_HARD_IRQS: u16 = 36;

/// Directory of the driver's files below `/sys/class/net/<link>`.
pub const SYSFS_GROUP: &str = "ipoib";
/// File of the batching mode, by name.
pub const SYSFS_BATCHING: &str = "batching";
/// File of the batch limit.
pub const SYSFS_BATCH_LIMIT: &str = "batch_limit";
/// File of the small-copy threshold.
pub const SYSFS_CM_COPYBREAK: &str = "cm_copybreak";

/// ethtool private flag: batching is on or adaptive.
pub const FLAG_BATCHING: &str = "tx-batching";
/// ethtool private flag: batching is adaptive; set together with [`FLAG_BATCHING`].
pub const FLAG_ADAPTIVE: &str = "tx-batching-adaptive";
