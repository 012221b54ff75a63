// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that are lists of numbers: coalescing, rings, channels, pause frames.
//!
//! The `ethtool` crate decodes most of them, but it encodes channels only and lacks the attributes
//! since Linux 6.0; the tests compare the two where both can.

use super::{HEADER, read_header};
use crate::nl::NlError;
use crate::nl::attr::{Out, attrs, out_u8, out_u32};
use crate::uapi::{self, Table};

/// One of the messages.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Group {
    /// `ETHTOOL_MSG_COALESCE_*`.
    Coalesce,
    /// `ETHTOOL_MSG_RINGS_*`.
    Rings,
    /// `ETHTOOL_MSG_CHANNELS_*`.
    Channels,
    /// `ETHTOOL_MSG_PAUSE_*`.
    Pause,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 4] = [Self::Coalesce, Self::Rings, Self::Channels, Self::Pause];

    pub(super) const fn get_command(self) -> u8 {
        match self {
            Self::Coalesce => uapi::ETHTOOL_MSG_COALESCE_GET,
            Self::Rings => uapi::ETHTOOL_MSG_RINGS_GET,
            Self::Channels => uapi::ETHTOOL_MSG_CHANNELS_GET,
            Self::Pause => uapi::ETHTOOL_MSG_PAUSE_GET,
        }
    }

    pub(super) const fn set_command(self) -> u8 {
        match self {
            Self::Coalesce => uapi::ETHTOOL_MSG_COALESCE_SET,
            Self::Rings => uapi::ETHTOOL_MSG_RINGS_SET,
            Self::Channels => uapi::ETHTOOL_MSG_CHANNELS_SET,
            Self::Pause => uapi::ETHTOOL_MSG_PAUSE_SET,
        }
    }

    const fn table(self) -> &'static Table {
        match self {
            Self::Coalesce => &uapi::COALESCE,
            Self::Rings => &uapi::RINGS,
            Self::Channels => &uapi::CHANNELS,
            Self::Pause => &uapi::PAUSE,
        }
    }

    pub(super) fn attr_name(self, path: &[u16]) -> Option<&'static str> {
        match path {
            [attr] => self.table().name_of(*attr),
            _ => None,
        }
    }

    /// Says whether the kernel's policy wants one byte.
    const fn is_byte(self, attr: u16) -> bool {
        match self {
            Self::Coalesce => matches!(
                attr,
                uapi::ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX
                    | uapi::ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX
                    | uapi::ETHTOOL_A_COALESCE_USE_CQE_MODE_TX
                    | uapi::ETHTOOL_A_COALESCE_USE_CQE_MODE_RX
            ),
            Self::Rings => matches!(
                attr,
                uapi::ETHTOOL_A_RINGS_TCP_DATA_SPLIT
                    | uapi::ETHTOOL_A_RINGS_TX_PUSH
                    | uapi::ETHTOOL_A_RINGS_RX_PUSH
            ),
            Self::Channels => false,
            Self::Pause => true,
        }
    }

    /// Builds the attributes of a change.
    pub(crate) fn encode(self, values: &[(u16, u32)]) -> Vec<Out> {
        values
            .iter()
            .map(|&(attr, value)| match u8::try_from(value) {
                Ok(byte) if self.is_byte(attr) => out_u8(attr, byte),
                // The kernel's policy refuses what is over a byte, with a better message than ours.
                _ => out_u32(attr, value),
            })
            .collect()
    }
}

/// The numbers of one device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Params {
    /// Index of the device.
    pub index: u32,
    /// Attribute and value, in the kernel's order. The kernel leaves out coalescing attributes that the
    /// driver does not take, and rings and channels that the device does not have.
    pub values: Vec<(u16, u32)>,
    /// Attributes that are no numbers, such as moderation profiles.
    pub other: Vec<(u16, Vec<u8>)>,
}

impl Params {
    /// Returns the value of an attribute, if the device has it.
    #[must_use]
    pub fn get(&self, attr: u16) -> Option<u32> {
        let (_, value) = self.values.iter().find(|(other, _)| *other == attr)?;
        Some(*value)
    }

    /// Decodes the attributes of a `*_GET_REPLY` or `*_NTF` message.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NlError> {
        let mut params = Self::default();
        for attr in attrs(bytes) {
            let attr = attr?;
            match (attr.kind, attr.value.len()) {
                (HEADER, _) => params.index = read_header(&attr)?,
                (kind, 1) => params.values.push((kind, u32::from(attr.u8()?))),
                (kind, 4) => params.values.push((kind, attr.u32()?)),
                (kind, _) => params.other.push((kind, attr.value.to_vec())),
            }
        }
        Ok(params)
    }
}
