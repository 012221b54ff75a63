// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's numbers that this crate puts into messages, each with the header that defines it.
//!
//! `tests/headers.rs` compares every row with the C headers of the machine, so that a slip cannot stay.
//! What netlink-packet-route and libc define is not repeated, except where a name is printed.
#![expect(
    missing_docs,
    reason = "each constant is the kernel's of that name; the headers document them"
)]

/// One constant of a kernel header.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Its C name.
    pub name: &'static str,
    /// Its value.
    pub value: u16,
    /// First kernel release with it, where headers older than that are still in use.
    pub since: Option<(u8, u8)>,
}

/// Constants of one kind, such as the attributes of one message.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The header, as C includes it.
    pub header: &'static str,
    /// First kernel release with the header itself, where older ones are still in use.
    pub since: Option<(u8, u8)>,
    /// The constants.
    pub constants: &'static [Constant],
}

impl Table {
    /// Returns the C name of `value`.
    #[must_use]
    pub fn name_of(&self, value: u16) -> Option<&'static str> {
        let row = self.constants.iter().find(|row| row.value == value);
        row.map(|row| row.name)
    }
}

macro_rules! uapi {
    ($($table:ident: $ty:ty, $header:literal $(since($hmajor:literal, $hminor:literal))? {
        $($name:ident = $value:literal $(since($major:literal, $minor:literal))?),* $(,)?
    })*) => {
        $($(pub const $name: $ty = $value;)*
        pub const $table: Table = Table {
            header: $header,
            since: uapi!(@since $($hmajor $hminor)?),
            constants: &[$(Constant {
                name: stringify!($name),
                value: $value,
                since: uapi!(@since $($major $minor)?),
            }),*],
        };)*
        /// Every table.
        pub const TABLES: &[Table] = &[$($table),*];
    };
    (@since) => { None };
    (@since $major:literal $minor:literal) => { Some(($major, $minor)) };
}

uapi! {
    // Link attributes that are decoded, or that a refusal may name.
    LINK: u16, "linux/if_link.h" {
        IFLA_ADDRESS = 1,
        IFLA_IFNAME = 3,
        IFLA_MTU = 4,
        IFLA_LINK = 5,
        IFLA_MASTER = 10,
        IFLA_TXQLEN = 13,
        IFLA_OPERSTATE = 16,
        IFLA_LINKINFO = 18,
        IFLA_IFALIAS = 20,
        IFLA_NUM_TX_QUEUES = 31,
        IFLA_NUM_RX_QUEUES = 32,
        IFLA_CARRIER = 33,
        IFLA_LINK_NETNSID = 37,
        IFLA_GSO_MAX_SIZE = 41,
        IFLA_MIN_MTU = 50,
        IFLA_MAX_MTU = 51,
        IFLA_PROP_LIST = 52,
        IFLA_ALT_IFNAME = 53,
        IFLA_PERM_ADDRESS = 54,
        IFLA_PARENT_DEV_NAME = 56,
        IFLA_GRO_MAX_SIZE = 58,
        IFLA_TSO_MAX_SIZE = 59,
    }
    LINK_INFO: u16, "linux/if_link.h" {
        IFLA_INFO_KIND = 1,
        IFLA_INFO_DATA = 2,
    }
    IPOIB: u16, "linux/if_link.h" {
        IFLA_IPOIB_PKEY = 1,
        IFLA_IPOIB_MODE = 2,
        IFLA_IPOIB_UMCAST = 3,
    }
    ARP_TYPES: u16, "linux/if_arp.h" {
        ARPHRD_INFINIBAND = 32,
    }
    NETLINK: u16, "linux/netlink.h" {
        NLMSGERR_ATTR_MSG = 1,
        NLMSGERR_ATTR_OFFS = 2,
        NLMSGERR_ATTR_MISS_TYPE = 5,
    }
    ETHTOOL_COMMANDS: u8, "linux/ethtool_netlink.h" {
        ETHTOOL_MSG_STRSET_GET = 1,
        ETHTOOL_MSG_FEATURES_GET = 11,
        ETHTOOL_MSG_FEATURES_SET = 12,
        ETHTOOL_MSG_PRIVFLAGS_GET = 13,
        ETHTOOL_MSG_PRIVFLAGS_SET = 14,
        ETHTOOL_MSG_RINGS_GET = 15,
        ETHTOOL_MSG_RINGS_SET = 16,
        ETHTOOL_MSG_CHANNELS_GET = 17,
        ETHTOOL_MSG_CHANNELS_SET = 18,
        ETHTOOL_MSG_COALESCE_GET = 19,
        ETHTOOL_MSG_COALESCE_SET = 20,
        ETHTOOL_MSG_PAUSE_GET = 21,
        ETHTOOL_MSG_PAUSE_SET = 22,
    }
    // The kernel's own messages are numbered apart from the requests.
    ETHTOOL_NOTICES: u8, "linux/ethtool_netlink.h" {
        ETHTOOL_MSG_FEATURES_NTF = 13,
        ETHTOOL_MSG_PRIVFLAGS_NTF = 15,
        ETHTOOL_MSG_RINGS_NTF = 17,
        ETHTOOL_MSG_CHANNELS_NTF = 19,
        ETHTOOL_MSG_COALESCE_NTF = 21,
    }
    ETHTOOL_HEADER: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_HEADER_DEV_INDEX = 1,
        ETHTOOL_A_HEADER_DEV_NAME = 2,
        ETHTOOL_A_HEADER_FLAGS = 3,
    }
    ETHTOOL_FLAGS: u32, "linux/ethtool_netlink.h" {
        ETHTOOL_FLAG_COMPACT_BITSETS = 1,
    }
    ETHTOOL_BITSET_BIT: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_BITSET_BIT_INDEX = 1,
        ETHTOOL_A_BITSET_BIT_NAME = 2,
        ETHTOOL_A_BITSET_BIT_VALUE = 3,
    }
    ETHTOOL_BITSET_BITS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_BITSET_BITS_BIT = 1,
    }
    ETHTOOL_BITSET: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_BITSET_NOMASK = 1,
        ETHTOOL_A_BITSET_SIZE = 2,
        ETHTOOL_A_BITSET_BITS = 3,
        ETHTOOL_A_BITSET_VALUE = 4,
        ETHTOOL_A_BITSET_MASK = 5,
    }
    ETHTOOL_STRING: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_STRING_INDEX = 1,
        ETHTOOL_A_STRING_VALUE = 2,
    }
    ETHTOOL_STRINGS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_STRINGS_STRING = 1,
    }
    ETHTOOL_STRINGSET: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_STRINGSET_ID = 1,
        ETHTOOL_A_STRINGSET_STRINGS = 3,
    }
    ETHTOOL_STRINGSETS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_STRINGSETS_STRINGSET = 1,
    }
    ETHTOOL_STRSET: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_STRSET_HEADER = 1,
        ETHTOOL_A_STRSET_STRINGSETS = 2,
    }
    STRING_SETS: u32, "linux/ethtool.h" {
        ETH_SS_FEATURES = 4,
    }
    FEATURES: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_FEATURES_HEADER = 1,
        ETHTOOL_A_FEATURES_HW = 2,
        ETHTOOL_A_FEATURES_WANTED = 3,
        ETHTOOL_A_FEATURES_ACTIVE = 4,
        ETHTOOL_A_FEATURES_NOCHANGE = 5,
    }
    PRIVATE_FLAGS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_PRIVFLAGS_HEADER = 1,
        ETHTOOL_A_PRIVFLAGS_FLAGS = 2,
    }
    RINGS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_RINGS_HEADER = 1,
        ETHTOOL_A_RINGS_RX_MAX = 2,
        ETHTOOL_A_RINGS_RX_MINI_MAX = 3,
        ETHTOOL_A_RINGS_RX_JUMBO_MAX = 4,
        ETHTOOL_A_RINGS_TX_MAX = 5,
        ETHTOOL_A_RINGS_RX = 6,
        ETHTOOL_A_RINGS_RX_MINI = 7,
        ETHTOOL_A_RINGS_RX_JUMBO = 8,
        ETHTOOL_A_RINGS_TX = 9,
        ETHTOOL_A_RINGS_RX_BUF_LEN = 10,
        ETHTOOL_A_RINGS_TCP_DATA_SPLIT = 11,
        ETHTOOL_A_RINGS_CQE_SIZE = 12,
        ETHTOOL_A_RINGS_TX_PUSH = 13,
        ETHTOOL_A_RINGS_RX_PUSH = 14 since(6, 3),
        ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN = 15 since(6, 4),
        ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN_MAX = 16 since(6, 4),
        ETHTOOL_A_RINGS_HDS_THRESH = 17 since(6, 14),
        ETHTOOL_A_RINGS_HDS_THRESH_MAX = 18 since(6, 14),
    }
    CHANNELS: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_CHANNELS_HEADER = 1,
        ETHTOOL_A_CHANNELS_RX_MAX = 2,
        ETHTOOL_A_CHANNELS_TX_MAX = 3,
        ETHTOOL_A_CHANNELS_OTHER_MAX = 4,
        ETHTOOL_A_CHANNELS_COMBINED_MAX = 5,
        ETHTOOL_A_CHANNELS_RX_COUNT = 6,
        ETHTOOL_A_CHANNELS_TX_COUNT = 7,
        ETHTOOL_A_CHANNELS_OTHER_COUNT = 8,
        ETHTOOL_A_CHANNELS_COMBINED_COUNT = 9,
    }
    COALESCE: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_COALESCE_HEADER = 1,
        ETHTOOL_A_COALESCE_RX_USECS = 2,
        ETHTOOL_A_COALESCE_RX_MAX_FRAMES = 3,
        ETHTOOL_A_COALESCE_RX_USECS_IRQ = 4,
        ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ = 5,
        ETHTOOL_A_COALESCE_TX_USECS = 6,
        ETHTOOL_A_COALESCE_TX_MAX_FRAMES = 7,
        ETHTOOL_A_COALESCE_TX_USECS_IRQ = 8,
        ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ = 9,
        ETHTOOL_A_COALESCE_STATS_BLOCK_USECS = 10,
        ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX = 11,
        ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX = 12,
        ETHTOOL_A_COALESCE_PKT_RATE_LOW = 13,
        ETHTOOL_A_COALESCE_RX_USECS_LOW = 14,
        ETHTOOL_A_COALESCE_RX_MAX_FRAMES_LOW = 15,
        ETHTOOL_A_COALESCE_TX_USECS_LOW = 16,
        ETHTOOL_A_COALESCE_TX_MAX_FRAMES_LOW = 17,
        ETHTOOL_A_COALESCE_PKT_RATE_HIGH = 18,
        ETHTOOL_A_COALESCE_RX_USECS_HIGH = 19,
        ETHTOOL_A_COALESCE_RX_MAX_FRAMES_HIGH = 20,
        ETHTOOL_A_COALESCE_TX_USECS_HIGH = 21,
        ETHTOOL_A_COALESCE_TX_MAX_FRAMES_HIGH = 22,
        ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL = 23,
        ETHTOOL_A_COALESCE_USE_CQE_MODE_TX = 24,
        ETHTOOL_A_COALESCE_USE_CQE_MODE_RX = 25,
        ETHTOOL_A_COALESCE_TX_AGGR_MAX_BYTES = 26 since(6, 3),
        ETHTOOL_A_COALESCE_TX_AGGR_MAX_FRAMES = 27 since(6, 3),
        ETHTOOL_A_COALESCE_TX_AGGR_TIME_USECS = 28 since(6, 3),
        ETHTOOL_A_COALESCE_RX_PROFILE = 29 since(6, 11),
        ETHTOOL_A_COALESCE_TX_PROFILE = 30 since(6, 11),
    }
    PAUSE: u16, "linux/ethtool_netlink.h" {
        ETHTOOL_A_PAUSE_HEADER = 1,
        ETHTOOL_A_PAUSE_AUTONEG = 2,
        ETHTOOL_A_PAUSE_RX = 3,
        ETHTOOL_A_PAUSE_TX = 4,
    }
    ETHTOOL_IOCTLS: u32, "linux/ethtool.h" {
        ETHTOOL_GDRVINFO = 0x3,
        ETHTOOL_GTUNABLE = 0x48,
        ETHTOOL_STUNABLE = 0x49,
    }
    TUNABLES: u32, "linux/ethtool.h" {
        ETHTOOL_RX_COPYBREAK = 1,
        ETHTOOL_TUNABLE_U32 = 3,
    }
    SOCKET_IOCTLS: u16, "linux/sockios.h" {
        SIOCETHTOOL = 0x8946,
    }
    SOCKET_OPTIONS: i32, "sys/socket.h" {
        SO_NETNS_COOKIE = 71 since(5, 14),
    }
    NETDEV_COMMANDS: u8, "linux/netdev.h" since(6, 3) {
        NETDEV_CMD_NAPI_GET = 11 since(6, 8),
        NETDEV_CMD_NAPI_SET = 14 since(6, 13),
    }
    NAPI: u16, "linux/netdev.h" since(6, 3) {
        NETDEV_A_NAPI_IFINDEX = 1 since(6, 8),
        NETDEV_A_NAPI_ID = 2 since(6, 8),
        NETDEV_A_NAPI_IRQ = 3 since(6, 8),
        NETDEV_A_NAPI_PID = 4 since(6, 8),
        NETDEV_A_NAPI_DEFER_HARD_IRQS = 5 since(6, 13),
        NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT = 6 since(6, 13),
        NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT = 7 since(6, 13),
        NETDEV_A_NAPI_THREADED = 8 since(6, 17),
    }
}

/// A text of a kernel header.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Its C name.
    pub name: &'static str,
    /// The header, as C includes it.
    pub header: &'static str,
    /// First kernel release with it, where older ones are still in use.
    pub since: Option<(u8, u8)>,
    /// The text.
    pub text: &'static str,
}

pub const ETHTOOL_GENL_NAME: &str = "ethtool";
pub const ETHTOOL_MCGRP_MONITOR_NAME: &str = "monitor";
pub const NETDEV_FAMILY_NAME: &str = "netdev";

/// Every text.
pub const TEXTS: &[Text] = &[
    Text {
        name: "ETHTOOL_GENL_NAME",
        header: "linux/ethtool_netlink.h",
        since: None,
        text: ETHTOOL_GENL_NAME,
    },
    Text {
        name: "ETHTOOL_MCGRP_MONITOR_NAME",
        header: "linux/ethtool_netlink.h",
        since: None,
        text: ETHTOOL_MCGRP_MONITOR_NAME,
    },
    Text {
        name: "NETDEV_FAMILY_NAME",
        header: "linux/netdev.h",
        since: Some((6, 3)),
        text: NETDEV_FAMILY_NAME,
    },
];
