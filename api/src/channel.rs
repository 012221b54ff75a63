// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel interfaces that carry knobs.
//!
//! A [`Channel`] is what an administrator names with `--via`; a [`Carrier`] is the exact field on it.
//! Both are closed enums: a new field without a codec arm does not compile.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A kernel interface, as named by `--via`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// rtnetlink(7) link messages.
    Rtnetlink,
    /// The `ethtool` generic netlink family, or its ioctl for what the family lacks (tunables).
    Ethtool,
    /// The `netdev` generic netlink family (per-NAPI settings, Linux 6.13 and later).
    Netdev,
    /// Files below `/sys/class/net`.
    Sysfs,
}

impl Channel {
    /// Every channel, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Rtnetlink, Self::Ethtool, Self::Netdev, Self::Sysfs];

    /// Returns the name that `--via` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtnetlink => "rtnetlink",
            Self::Ethtool => "ethtool",
            Self::Netdev => "netdev",
            Self::Sysfs => "sysfs",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|channel| channel.name() == name)
            .ok_or_else(|| {
                format!("no channel is called '{name}'; use rtnetlink, ethtool, netdev or sysfs")
            })
    }
}

/// One way to read and write one knob.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// A link attribute.
    Rtnl(RtnlField),
    /// An attribute of `ETHTOOL_MSG_COALESCE_*`.
    Coalesce(CoalesceField),
    /// An attribute of `ETHTOOL_MSG_RINGS_*`.
    Ring(RingField),
    /// An attribute of `ETHTOOL_MSG_CHANNELS_*`.
    Channels(ChannelsField),
    /// The device feature that the key's member names.
    Feature,
    /// The private flag that the key's member names.
    PrivateFlag,
    /// The driver's `tx-batching` and `tx-batching-adaptive` private flags, read as one choice.
    BatchingFlags,
    /// An ethtool tunable (ioctl).
    Tunable(TunableField),
    /// An attribute of the netdev family's NAPI objects, set on every NAPI of the device.
    Napi(NapiField),
    /// The same of the one NAPI that the key's member names.
    OneNapi(NapiField),
    /// A file of the queue that the key's member names, in `/sys/class/net/<link>/queues`.
    Queue(QueueField),
    /// A file of `/sys/class/net/<link>`.
    Sysfs(SysfsField),
}

impl Carrier {
    /// Returns the channel that this field belongs to.
    #[must_use]
    pub const fn channel(self) -> Channel {
        match self {
            Self::Rtnl(_) => Channel::Rtnetlink,
            Self::Coalesce(_)
            | Self::Ring(_)
            | Self::Channels(_)
            | Self::Feature
            | Self::PrivateFlag
            | Self::BatchingFlags
            | Self::Tunable(_) => Channel::Ethtool,
            Self::Napi(_) | Self::OneNapi(_) => Channel::Netdev,
            Self::Queue(_) | Self::Sysfs(_) => Channel::Sysfs,
        }
    }
}

/// Link attributes (include/uapi/linux/if_link.h).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RtnlField {
    /// `IFF_UP` of `ifi_flags`.
    State,
    /// `IFLA_MTU`.
    Mtu,
    /// `IFLA_TXQLEN`.
    TxQueueLen,
    /// `IFLA_IFALIAS`.
    Alias,
    /// `IFLA_GSO_MAX_SIZE`.
    GsoMaxSize,
    /// `IFLA_GRO_MAX_SIZE`.
    GroMaxSize,
    /// `IFLA_IPOIB_MODE` inside `IFLA_INFO_DATA`.
    IpoibMode,
    /// `IFLA_IPOIB_UMCAST` inside `IFLA_INFO_DATA`.
    IpoibUmcast,
    /// The driver's own attribute for the batching mode.
    Batching,
    /// The driver's own attribute for the batch limit.
    BatchLimit,
    /// The driver's own attribute for the small-copy threshold.
    CmCopybreak,
    /// Our driver's attribute of the GRO flush timeout.
    GroFlushTimeout,
    /// Our driver's attribute of the polls that put events off.
    DeferHardIrqs,
}

/// Coalescing attributes (`ETHTOOL_A_COALESCE_*`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    missing_docs,
    reason = "each variant is the kernel's attribute of that name"
)]
pub enum CoalesceField {
    RxUsecs,
    RxMaxFrames,
    RxUsecsIrq,
    RxMaxFramesIrq,
    TxUsecs,
    TxMaxFrames,
    TxUsecsIrq,
    TxMaxFramesIrq,
    StatsBlockUsecs,
    UseAdaptiveRx,
    UseAdaptiveTx,
    PktRateLow,
    RxUsecsLow,
    RxMaxFramesLow,
    TxUsecsLow,
    TxMaxFramesLow,
    PktRateHigh,
    RxUsecsHigh,
    RxMaxFramesHigh,
    TxUsecsHigh,
    TxMaxFramesHigh,
    RateSampleInterval,
}

/// Ring attributes (`ETHTOOL_A_RINGS_*`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    missing_docs,
    reason = "each variant is the kernel's attribute of that name"
)]
pub enum RingField {
    Rx,
    RxMini,
    RxJumbo,
    Tx,
}

/// Channel attributes (`ETHTOOL_A_CHANNELS_*`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    missing_docs,
    reason = "each variant is the kernel's attribute of that name"
)]
pub enum ChannelsField {
    Rx,
    Tx,
    Other,
    Combined,
}

/// Tunables (`enum tunable_id`, include/uapi/linux/ethtool.h).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TunableField {
    /// `ETHTOOL_RX_COPYBREAK`, bytes.
    RxCopybreak,
}

/// NAPI attributes (`NETDEV_A_NAPI_*`, include/uapi/linux/netdev.h).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NapiField {
    /// `NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT`, nanoseconds.
    GroFlushTimeout,
    /// `NETDEV_A_NAPI_DEFER_HARD_IRQS`.
    DeferHardIrqs,
    /// `NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT`, nanoseconds.
    IrqSuspendTimeout,
    /// `NETDEV_A_NAPI_THREADED`.
    Threaded,
}

/// Files of `/sys/class/net/<link>/queues/<queue>` (Documentation/ABI/testing/sysfs-class-net-queues).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum QueueField {
    /// `rps_cpus` of a receive queue, a mask.
    RpsCpus,
    /// `rps_flow_cnt` of a receive queue.
    RpsFlowCnt,
    /// `xps_cpus` of a transmit queue, a mask.
    XpsCpus,
}

impl QueueField {
    /// Returns what stands before the number in the name of a queue that has the file.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::RpsCpus | Self::RpsFlowCnt => "rx-",
            Self::XpsCpus => "tx-",
        }
    }

    /// Returns the number of a queue that has the file, from its name such as `rx-3`.
    #[must_use]
    pub fn queue(self, name: &str) -> Option<u32> {
        numbered(self.prefix(), name)
    }
}

/// What stands before the number in the name of a NAPI instance.
pub const NAPI_PREFIX: &str = "napi-";

/// Returns the number of a NAPI instance of a device, from its name such as `napi-0`: they count from 0
/// in the order of their ids, which are others each time the instances are made.
#[must_use]
pub fn napi_number(name: &str) -> Option<u32> {
    numbered(NAPI_PREFIX, name)
}

fn numbered(prefix: &str, name: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    // `rx-+1` and `rx-01` name no queue.
    (number.to_string() == digits).then_some(number)
}

/// Files of `/sys/class/net/<link>`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SysfsField {
    /// `tx_queue_len`.
    TxQueueLen,
    /// `mtu`.
    Mtu,
    /// `ifalias`.
    Alias,
    /// `gro_flush_timeout`, nanoseconds, for every NAPI of the device.
    GroFlushTimeout,
    /// `napi_defer_hard_irqs`.
    DeferHardIrqs,
    /// `threaded`.
    Threaded,
    /// `mode` of an IPoIB interface.
    IpoibMode,
    /// `umcast` of an IPoIB interface.
    IpoibUmcast,
    /// `ipoib/batching` of our driver.
    Batching,
    /// `ipoib/batch_limit` of our driver.
    BatchLimit,
    /// `ipoib/cm_copybreak` of our driver.
    CmCopybreak,
}
