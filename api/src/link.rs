// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces as the kernel reports them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::channel::Channel;
use crate::desired::ChildKind;
use crate::key::Key;
use crate::pkey::Pkey;
use crate::value::Value;

/// A name of a network interface: the one that it has, or an alternative one.
///
/// # Invariants
///
/// What the kernel's `dev_valid_name` takes: no white space, no `/` or `:`, and not `.` or `..`, but up to
/// 127 bytes (`ALTIFNAMSIZ` less the terminator); more than 15 are an alternative name's. Safe as a path
/// component. Control characters are possible, so a terminal must see it escaped.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct LinkName(Box<str>);

/// A text that cannot name an interface.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "'{}' cannot name an interface: 1 to 127 bytes without white space, '/' or ':'",
    .0.escape_debug()
)]
pub struct LinkNameError(String);

impl LinkName {
    /// Longest name, bytes: `ALTIFNAMSIZ` (include/uapi/linux/if.h) less the terminator.
    pub const MAX: usize = 127;

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LinkName {
    type Err = LinkNameError;

    fn from_str(name: &str) -> Result<Self, LinkNameError> {
        // The kernel's `isspace` looks at bytes, as in Latin-1: 0xa0 is one, even as part of a character.
        let odd = |byte| matches!(byte, 0 | b'\t'..=b'\r' | b' ' | 0xa0 | b'/' | b':');
        let is_odd = name.bytes().any(odd);
        if name.is_empty() || name.len() > Self::MAX || name == "." || name == ".." || is_odd {
            Err(LinkNameError(name.to_owned()))
        } else {
            Ok(Self(name.into()))
        }
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The 8-byte GUID of an InfiniBand port.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Guid(pub [u8; 8]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.0.chunks(2).map(|pair| {
            pair.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        });
        f.pad(&groups.collect::<Vec<_>>().join(":"))
    }
}

/// Why a text is no port GUID.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GuidError {
    /// Not 8 bytes.
    #[error("'{}' is no port GUID: write its 8 bytes as 0002:c903:00ab:cdef", .0.escape_debug())]
    Form(String),
    /// The 20 bytes of an IPoIB address.
    #[error("a 20-byte address holds the QPN, which changes; write its last 8 bytes, {0}")]
    Address(Guid),
}

impl FromStr for Guid {
    type Err = GuidError;

    /// Reads 16 hexadecimal digits, with or without `0x`, and with `:` or `-` between bytes.
    fn from_str(text: &str) -> Result<Self, GuidError> {
        let form = || GuidError::Form(text.to_owned());
        let bare = text.strip_prefix("0x").unwrap_or(text);
        let digits: Vec<u8> = bare
            .chars()
            .filter(|c| !matches!(c, ':' | '-'))
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or_else(form)?;
        // Separators stand between whole bytes: `2:c903:ab:cdef` has lost its zeros.
        let groups = || bare.split([':', '-']);
        let is_whole = groups().all(|group| !group.is_empty() && group.len() % 2 == 0);
        let last = |digits: &[u8]| {
            let bytes: Vec<u8> = digits
                .chunks(2)
                .map(|pair| pair[0] << 4 | pair[1])
                .collect();
            <[u8; 8]>::try_from(bytes).map(Self).map_err(|_| form())
        };
        match digits.len() {
            16 if is_whole => last(&digits),
            40 if is_whole => Err(GuidError::Address(last(&digits[24..])?)),
            _ => Err(form()),
        }
    }
}

impl Serialize for Guid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a device can take a knob, and why not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "support", content = "why", rename_all = "kebab-case")]
pub enum Support {
    /// A write changes the device.
    Settable,
    /// The value can be read only.
    Fixed(String),
    /// The kernel stores what is written, and the driver does not use it.
    StoredNoEffect(String),
    /// The device, its driver or the kernel does not have it.
    Unsupported(String),
}

impl Support {
    /// Returns the word for tables and JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Settable => "settable",
            Self::Fixed(_) => "fixed",
            Self::StoredNoEffect(_) => "stored-no-effect",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Returns the reason, where there is one.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Settable => None,
            Self::Fixed(why) | Self::StoredNoEffect(why) | Self::Unsupported(why) => Some(why),
        }
    }
}

/// The device's own bounds of a number, in the kernel's unit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

/// What a device said of one knob.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reading {
    /// The present value, where the device has one.
    pub value: Option<Value>,
    /// Whether it can be changed.
    pub support: Support,
    /// The channel that `value` came from.
    pub via: Option<Channel>,
    /// The device's own bounds.
    pub limits: Option<Limits>,
    /// What `local` means for this device, of a set of CPUs.
    pub local: Option<Value>,
}

impl Reading {
    /// Returns a settable value without bounds of the device's own.
    #[must_use]
    pub const fn settable(value: Value, via: Channel) -> Self {
        Self {
            value: Some(value),
            support: Support::Settable,
            via: Some(via),
            limits: None,
            local: None,
        }
    }

    /// Returns the reading of a knob that the device does not have.
    #[must_use]
    pub fn unsupported(why: impl Into<String>) -> Self {
        let support = Support::Unsupported(why.into());
        Self {
            value: None,
            support,
            via: None,
            limits: None,
            local: None,
        }
    }
}

/// An interface, with the readings that were asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// Kernel index.
    pub index: u32,
    /// Present name.
    pub name: LinkName,
    /// Other names.
    pub alt_names: Vec<String>,
    /// rtnl kind such as `ipoib` or `veth`; physical devices often have none.
    pub kind: Option<String>,
    /// Driver, as ethtool names it.
    pub driver: Option<String>,
    /// Path of the device below `/sys`, such as `/devices/pci0000:00/0000:03:00.0`; virtual interfaces
    /// have none, and it is unknown where the mounted sysfs shows another network namespace.
    pub device_path: Option<String>,
    /// Hardware type (`ARPHRD_*`, include/uapi/linux/if_arp.h); 32 is InfiniBand.
    pub arphrd: u16,
    /// Link-layer address; 20 bytes for IPoIB: flags, QPN and port GID (RFC 4391, 9.1.1).
    pub address: Vec<u8>,
    /// Index of the interface below, such as a P_Key child's parent.
    pub parent: Option<u32>,
    /// Name of that interface, when it is in the same network namespace.
    pub parent_name: Option<LinkName>,
    /// How a P_Key child was made, where that can be told.
    pub child_kind: Option<ChildKind>,
    /// Administrative state.
    pub is_up: bool,
    /// Whether the link layer can carry traffic.
    pub has_carrier: bool,
    /// Partition of an IPoIB interface.
    pub pkey: Option<Pkey>,
    /// Readings by knob.
    pub readings: BTreeMap<Key, Reading>,
}

impl Link {
    /// `ARPHRD_INFINIBAND`.
    pub const INFINIBAND: u16 = 32;

    /// Says whether this is an IPoIB interface.
    #[must_use]
    pub const fn is_ipoib(&self) -> bool {
        self.arphrd == Self::INFINIBAND
    }

    /// Says whether this is a P_Key child: an IPoIB interface on top of another one.
    #[must_use]
    pub const fn is_child(&self) -> bool {
        self.is_ipoib() && self.pkey.is_some() && self.parent.is_some()
    }

    /// Returns the address as hexadecimal bytes with colons; `None` for an interface without one.
    #[must_use]
    pub fn address_text(&self) -> Option<String> {
        let bytes = self.address.iter().map(|byte| format!("{byte:02x}"));
        (!self.address.is_empty()).then(|| bytes.collect::<Vec<_>>().join(":"))
    }

    /// Returns the port GUID of an IPoIB interface: the last 8 bytes of its address, the only part
    /// that survives a reload of the driver.
    #[must_use]
    pub fn guid(&self) -> Option<Guid> {
        let guid = self.address.get(12..20)?;
        (self.is_ipoib() && self.address.len() == 20).then_some(())?;
        Some(Guid(guid.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_kernel_takes() {
        for good in [
            "ib0",
            "ib0.8001",
            "ibp94s0f1",
            "a",
            "fifteen-letters",
            "an-alternative-name-may-be-longer",
            "b\u{fc}ro",
            "\u{1b}[m",
        ] {
            assert!(good.parse::<LinkName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a:b",
            &"x".repeat(128),
            "a\tb",
            "a\0b",
            "\u{e0}",
        ] {
            assert!(bad.parse::<LinkName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn guid_is_the_last_eight_bytes() {
        let guid = Guid([0x00, 0x02, 0xc9, 0x03, 0x00, 0xab, 0xcd, 0xef]);
        assert_eq!(guid.to_string(), "0002:c903:00ab:cdef");
        for text in [
            "0002:c903:00ab:cdef",
            "0x0002c90300abcdef",
            "0002C90300ABCDEF",
            "00:02:c9:03:00:ab:cd:ef",
            "0002-c903-00ab-cdef",
        ] {
            assert_eq!(text.parse(), Ok(guid), "{text}");
        }
        for bad in [
            "",
            "ib0",
            "0002:c903:00ab",
            "2:c903:ab:cdef",
            "0002:c903:00ab:cdeg",
            "::::",
        ] {
            assert!(
                matches!(bad.parse::<Guid>(), Err(GuidError::Form(_))),
                "{bad}"
            );
        }
        let address = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ab:cd:ef";
        let error = address.parse::<Guid>().unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("last 8 bytes, 0002:c903:00ab:cdef"),
            "{error}"
        );
    }
}
