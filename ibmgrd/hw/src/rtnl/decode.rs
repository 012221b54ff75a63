// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `RTM_NEWLINK` messages into [`Link`]s (include/uapi/linux/if_link.h).
//!
//! netlink-packet-route decodes every attribute, and refuses the whole message for one that it does not
//! like: 4 ms for 256 interfaces, which is most of what `ip` takes altogether. This decoder reads the
//! twenty attributes that are used, in a tenth of that; the tests compare it with theirs.

use std::fmt;

use crate::nl::NlError;
use crate::nl::attr::{Attr, attrs};
use crate::uapi;

/// A link-layer address of up to 32 bytes (`MAX_ADDR_LEN`).
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct HwAddr {
    len: u8,
    bytes: [u8; 32],
}

impl HwAddr {
    fn new(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self {
            len: u8::try_from(value.len()).ok()?,
            bytes,
        })
    }

    /// Returns the bytes: 6 for Ethernet, 20 for InfiniBand, none for some tunnels.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Display for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.as_bytes().iter().enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What `IFLA_INFO_DATA` says of an IPoIB interface.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IpoibInfo {
    /// `IFLA_IPOIB_PKEY`; the driver always sets the full-member bit.
    pub pkey: Option<u16>,
    /// `IFLA_IPOIB_MODE`: 0 datagram, 1 connected.
    pub mode: Option<u16>,
    /// `IFLA_IPOIB_UMCAST`: 1 leaves user space's multicast groups alone.
    pub umcast: Option<u16>,
    /// Attributes that the in-tree driver does not have: type and payload.
    pub other: Vec<(u16, Vec<u8>)>,
}

impl IpoibInfo {
    fn decode(attr: &Attr<'_>) -> Result<Self, NlError> {
        let mut info = Self::default();
        for attr in attr.nested() {
            let attr = attr?;
            match attr.kind {
                uapi::IFLA_IPOIB_PKEY => info.pkey = Some(attr.u16()?),
                uapi::IFLA_IPOIB_MODE => info.mode = Some(attr.u16()?),
                uapi::IFLA_IPOIB_UMCAST => info.umcast = Some(attr.u16()?),
                kind => info.other.push((kind, attr.value.to_vec())),
            }
        }
        Ok(info)
    }

    /// Returns a 32-bit attribute of the driver's own.
    #[must_use]
    pub fn own(&self, kind: u16) -> Option<u32> {
        let (_, value) = self.other.iter().find(|(other, _)| *other == kind)?;
        Some(u32::from_ne_bytes(value.as_slice().try_into().ok()?))
    }
}

/// An interface as rtnetlink reports it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Link {
    /// Kernel index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Alternative names.
    pub alt_names: Vec<String>,
    /// rtnl kind such as `ipoib`; none for most physical devices.
    pub kind: Option<String>,
    /// Hardware type (`ARPHRD_*`).
    pub hw_type: u16,
    /// `IFF_*` flags.
    pub flags: u32,
    /// Operational state (RFC 2863, `IF_OPER_*`).
    pub operstate: u8,
    /// Whether the link layer can carry traffic; the kernel leaves it out while it is unknown.
    pub carrier: Option<bool>,
    /// Maximum transmission unit, bytes.
    pub mtu: u32,
    /// Smallest MTU that the kernel takes.
    pub min_mtu: Option<u32>,
    /// Largest MTU that the kernel takes; 0 is no limit.
    pub max_mtu: Option<u32>,
    /// Frames that the default qdisc holds.
    pub tx_queue_len: u32,
    /// Free text.
    pub alias: Option<String>,
    /// Link-layer address.
    pub address: HwAddr,
    /// Address that the hardware has by itself.
    pub permanent_address: Option<HwAddr>,
    /// Index of the interface below, in the namespace `link_netns` if there is one.
    pub link: Option<u32>,
    /// Network namespace id of the interface below, when it is in another one.
    pub link_netns: Option<i32>,
    /// Index of the bond, bridge or team that this one belongs to.
    pub master: Option<u32>,
    /// Name of the device on its bus, such as a PCI address.
    pub parent_device: Option<String>,
    /// Largest packet that segmentation may build, bytes.
    pub gso_max_size: Option<u32>,
    /// Largest packet that receive offload may build, bytes.
    pub gro_max_size: Option<u32>,
    /// The device's own bound of `gso_max_size`, bytes.
    pub tso_max_size: Option<u32>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// What an IPoIB driver tells besides.
    pub ipoib: Option<IpoibInfo>,
}

impl Link {
    /// Says whether the administrator has set the interface up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Decodes what follows `struct nlmsghdr` in a `RTM_NEWLINK` message.
    ///
    /// # Errors
    ///
    /// The message is cut off, or an attribute has a size that its type cannot have.
    pub fn decode(body: &[u8]) -> Result<Self, NlError> {
        let short = || NlError::malformed("a link message is too short");
        // struct ifinfomsg: family, pad, type (2), index (4), flags (4), change (4).
        let (header, rest) = body.split_at_checked(super::HEADER_LEN).ok_or_else(short)?;
        let [_, _, t0, t1, i0, i1, i2, i3, f0, f1, f2, f3, ..] = *header else {
            return Err(short());
        };
        let mut link = Self {
            hw_type: u16::from_ne_bytes([t0, t1]),
            index: u32::from_ne_bytes([i0, i1, i2, i3]),
            flags: u32::from_ne_bytes([f0, f1, f2, f3]),
            ..Self::default()
        };
        for attr in attrs(rest) {
            let attr = attr?;
            link.take(&attr).map_err(|error| link.told(&attr, error))?;
        }
        Ok(link)
    }

    /// Says whose attribute it was.
    fn told(&self, attr: &Attr<'_>, error: NlError) -> NlError {
        let name = uapi::LINK.name_of(attr.kind).unwrap_or("a link attribute");
        NlError::malformed(format!("{name} of interface {}: {error}", self.index))
    }

    fn take(&mut self, attr: &Attr<'_>) -> Result<(), NlError> {
        match attr.kind {
            uapi::IFLA_IFNAME => self.name = attr.text(),
            uapi::IFLA_MTU => self.mtu = attr.u32()?,
            uapi::IFLA_MIN_MTU => self.min_mtu = Some(attr.u32()?),
            uapi::IFLA_MAX_MTU => self.max_mtu = Some(attr.u32()?),
            uapi::IFLA_TXQLEN => self.tx_queue_len = attr.u32()?,
            uapi::IFLA_IFALIAS => self.alias = Some(attr.text()),
            uapi::IFLA_ADDRESS => self.address = HwAddr::new(attr.value).unwrap_or_default(),
            uapi::IFLA_PERM_ADDRESS => self.permanent_address = HwAddr::new(attr.value),
            uapi::IFLA_OPERSTATE => self.operstate = attr.u8()?,
            uapi::IFLA_CARRIER => self.carrier = Some(attr.u8()? != 0),
            uapi::IFLA_LINK => self.link = Some(attr.u32()?),
            uapi::IFLA_LINK_NETNSID => self.link_netns = Some(attr.i32()?),
            uapi::IFLA_MASTER => self.master = Some(attr.u32()?),
            uapi::IFLA_PARENT_DEV_NAME => self.parent_device = Some(attr.text()),
            uapi::IFLA_GSO_MAX_SIZE => self.gso_max_size = Some(attr.u32()?),
            uapi::IFLA_GRO_MAX_SIZE => self.gro_max_size = Some(attr.u32()?),
            uapi::IFLA_TSO_MAX_SIZE => self.tso_max_size = Some(attr.u32()?),
            uapi::IFLA_NUM_TX_QUEUES => self.tx_queues = Some(attr.u32()?),
            uapi::IFLA_NUM_RX_QUEUES => self.rx_queues = Some(attr.u32()?),
            uapi::IFLA_PROP_LIST => {
                for name in attr.nested() {
                    let name = name?;
                    if name.kind == uapi::IFLA_ALT_IFNAME {
                        self.alt_names.push(name.text());
                    }
                }
            }
            uapi::IFLA_LINKINFO => self.take_info(attr)?,
            _ => {}
        }
        Ok(())
    }

    fn take_info(&mut self, info: &Attr<'_>) -> Result<(), NlError> {
        for attr in info.nested() {
            let attr = attr?;
            match attr.kind {
                uapi::IFLA_INFO_KIND => self.kind = Some(attr.text()),
                // A bond over IPoIB has the hardware type, too, and data of its own.
                uapi::IFLA_INFO_DATA
                    if self.hw_type == uapi::ARPHRD_INFINIBAND
                        && self
                            .kind
                            .as_deref()
                            .is_some_and(|kind| kind.starts_with("ipoib")) =>
                {
                    self.ipoib = Some(IpoibInfo::decode(&attr)?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
