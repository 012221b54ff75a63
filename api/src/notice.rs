// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which knobs the kernel tells of when somebody changes them, and which must be polled.

use crate::channel::{Carrier, RtnlField, SysfsField};
use crate::registry::Knob;

/// A notification of the kernel's that a knob may have changed.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Notice {
    /// `RTM_NEWLINK` of the rtnetlink group `RTNLGRP_LINK`.
    Link,
    /// `ETHTOOL_MSG_COALESCE_NTF`.
    Coalesce,
    /// `ETHTOOL_MSG_RINGS_NTF`.
    Rings,
    /// `ETHTOOL_MSG_CHANNELS_NTF`.
    Channels,
    /// `ETHTOOL_MSG_FEATURES_NTF`.
    Features,
    /// `ETHTOOL_MSG_PRIVFLAGS_NTF`.
    PrivateFlags,
}

impl Notice {
    /// Returns the word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Coalesce => "coalesce",
            Self::Rings => "rings",
            Self::Channels => "channels",
            Self::Features => "features",
            Self::PrivateFlags => "private flags",
        }
    }
}

impl Carrier {
    /// Returns what the kernel sends after a write through this field; `None` when it sends nothing.
    ///
    /// The ethtool family tells of writes through the old ioctl, too (net/ethtool/ioctl.c), but of
    /// tunables never. NAPI settings have no notification (the netdev family's groups are `mgmt` and
    /// `page-pool`), neither by netlink nor by file, and neither do the CPUs
    /// of queues (net/core/net-sysfs.c). In-tree ib_ipoib stores `umcast` in silence
    /// (drivers/infiniband/ulp/ipoib/ipoib_main.c); a mode change moves the MTU, which is told.
    /// rtnetlink itself sends nothing for the sizes of GSO and GRO (`do_setlink`, net/core/rtnetlink.c):
    /// they come with the next message about something else.
    #[must_use]
    pub const fn told_by(self) -> Option<Notice> {
        match self {
            Self::Rtnl(RtnlField::GsoMaxSize | RtnlField::GroMaxSize) => None,
            Self::Rtnl(_) => Some(Notice::Link),
            Self::Coalesce(_) => Some(Notice::Coalesce),
            Self::Ring(_) => Some(Notice::Rings),
            Self::Channels(_) => Some(Notice::Channels),
            Self::Feature => Some(Notice::Features),
            Self::PrivateFlag | Self::BatchingFlags => Some(Notice::PrivateFlags),
            Self::Tunable(_) | Self::Napi(_) | Self::OneNapi(_) | Self::Queue(_) => None,
            Self::Sysfs(field) => match field {
                SysfsField::TxQueueLen
                | SysfsField::Mtu
                | SysfsField::Alias
                | SysfsField::IpoibMode
                | SysfsField::Batching
                | SysfsField::BatchLimit
                | SysfsField::CmCopybreak => Some(Notice::Link),
                SysfsField::GroFlushTimeout
                | SysfsField::DeferHardIrqs
                | SysfsField::Threaded
                | SysfsField::IpoibUmcast => None,
            },
        }
    }
}

impl Carrier {
    /// Says whether a write through this field is told of only while the interface is up: the kernel's
    /// `netdev_state_change` is silent for one that is down (net/core/dev.c). The message that tells of
    /// its going up carries the value.
    #[must_use]
    pub const fn is_told_only_while_up(self) -> bool {
        match self {
            Self::Rtnl(field) => match field {
                // These have notifiers of their own, and a mode change moves the MTU.
                RtnlField::State
                | RtnlField::Mtu
                | RtnlField::TxQueueLen
                | RtnlField::IpoibMode => false,
                RtnlField::Alias
                | RtnlField::GsoMaxSize
                | RtnlField::GroMaxSize
                | RtnlField::IpoibUmcast
                | RtnlField::Batching
                | RtnlField::BatchLimit
                | RtnlField::CmCopybreak
                | RtnlField::GroFlushTimeout
                | RtnlField::DeferHardIrqs => true,
            },
            Self::Sysfs(field) => matches!(
                field,
                SysfsField::Alias
                    | SysfsField::Batching
                    | SysfsField::BatchLimit
                    | SysfsField::CmCopybreak
            ),
            Self::Coalesce(_)
            | Self::Ring(_)
            | Self::Channels(_)
            | Self::Feature
            | Self::PrivateFlag
            | Self::BatchingFlags
            | Self::Tunable(_)
            | Self::Napi(_)
            | Self::OneNapi(_)
            | Self::Queue(_) => false,
        }
    }
}

impl Knob {
    /// Says whether `notice` can mean that this knob changed.
    #[must_use]
    pub fn is_told_by(&self, notice: Notice) -> bool {
        let mut carriers = self.carriers.iter();
        carriers.any(|carrier| carrier.told_by() == Some(notice))
    }

    /// Says whether it can change without a notification, so that only polling finds it out, on an
    /// interface that is up, or down.
    #[must_use]
    pub fn is_polled(&self, is_up: bool) -> bool {
        self.carriers
            .iter()
            .any(|carrier| carrier.told_by().is_none() || !is_up && carrier.is_told_only_while_up())
    }

    /// Returns the notifications that can mean that this knob changed, each once.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let carriers = self.carriers.iter();
        let mut notices: Vec<Notice> = carriers.filter_map(|c| c.told_by()).collect();
        notices.sort_unstable();
        notices.dedup();
        notices
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;

    #[test]
    fn what_has_no_notification_is_polled() {
        let polled = |is_up| {
            let polled = registry::knobs().filter(|knob| knob.is_polled(is_up));
            polled.map(|knob| knob.name).collect::<Vec<_>>()
        };
        let expected = [
            "gso-max-size",
            "gro-max-size",
            "umcast",
            "gro-flush-timeout",
            "gro-flush-timeout-of",
            "napi-defer-hard-irqs",
            "napi-defer-hard-irqs-of",
            "irq-suspend-timeout",
            "irq-suspend-timeout-of",
            "napi-threaded",
            "napi-threaded-of",
            "rps-cpus",
            "rps-flow-cnt",
            "xps-cpus",
            "cm-copybreak",
        ];
        assert_eq!(polled(true), expected);
        for name in expected.into_iter().chain(["alias", "batching"]) {
            assert!(polled(false).contains(&name), "{name}");
        }
        for name in ["mtu", "mode", "txqueuelen", "state", "rx-usecs", "feature"] {
            assert!(!polled(false).contains(&name), "{name}");
        }
    }

    #[test]
    fn every_knob_is_told_of_or_polled() {
        for knob in registry::knobs() {
            assert!(
                knob.is_polled(true) || !knob.notices().is_empty(),
                "{}",
                knob.name
            );
            for notice in knob.notices() {
                assert!(knob.is_told_by(notice), "{}", knob.name);
            }
        }
    }
}
