// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generic netlink: families by name (include/uapi/linux/genetlink.h).

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use netlink_packet_core::{Nla as _, ParseableParametrized as _};
use netlink_packet_generic::GenlHeader;
use netlink_packet_generic::constants::GENL_ID_CTRL;
use netlink_packet_generic::ctrl::{
    GenlCtrl, GenlCtrlCmd,
    nlas::{GenlCtrlAttrs, McastGrpAttrs, OpAttrs},
};

use crate::ethtool::Ethtool;
use crate::netdev::Netdev;
use crate::nl::attr::out_text;
use crate::nl::{Ends, NlError, Protocol, Request, Socket};
use crate::uapi::{ETHTOOL_GENL_NAME, NETDEV_FAMILY_NAME};

/// Length of `struct genlmsghdr`.
pub(crate) const HEADER_LEN: usize = 4;

/// A family that this crate speaks to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Name {
    /// `ethtool`.
    Ethtool,
    /// `netdev`, Linux 6.3 and later.
    Netdev,
}

impl Name {
    /// Returns the name that the kernel knows it by.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ethtool => ETHTOOL_GENL_NAME,
            Self::Netdev => NETDEV_FAMILY_NAME,
        }
    }

    /// Both are part of the kernel image, so that their numbers hold as long as the process.
    fn cache(self) -> &'static OnceLock<Family> {
        static ETHTOOL: OnceLock<Family> = OnceLock::new();
        static NETDEV: OnceLock<Family> = OnceLock::new();
        match self {
            Self::Ethtool => &ETHTOOL,
            Self::Netdev => &NETDEV,
        }
    }
}

/// What the running kernel says of a family.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Family {
    /// Message type.
    pub id: u16,
    /// Multicast groups: name and number.
    pub groups: Vec<(String, u32)>,
    /// Commands that the running kernel takes.
    pub commands: Vec<u8>,
}

impl Family {
    /// Decodes what follows `struct nlmsghdr` in the controller's answer.
    ///
    /// # Errors
    ///
    /// The message is malformed.
    pub fn decode(body: &[u8]) -> Result<Self, NlError> {
        let malformed =
            |error: netlink_packet_core::DecodeError| NlError::malformed(error.to_string());
        let header = GenlHeader::parse(body).map_err(malformed)?;
        let attrs = body.get(HEADER_LEN..).unwrap_or_default();
        let mut family = Self::default();
        for attr in GenlCtrl::parse_with_param(attrs, header)
            .map_err(malformed)?
            .nlas
        {
            match attr {
                GenlCtrlAttrs::FamilyId(id) => family.id = id,
                GenlCtrlAttrs::McastGroups(groups) => {
                    family
                        .groups
                        .extend(groups.iter().filter_map(|group| named_group(group)));
                }
                GenlCtrlAttrs::Ops(commands) => {
                    let ids = commands.iter().flatten().filter_map(|attr| match attr {
                        OpAttrs::Id(id) => u8::try_from(*id).ok(),
                        OpAttrs::Flags(_) => None,
                    });
                    family.commands.extend(ids);
                }
                GenlCtrlAttrs::FamilyName(_)
                | GenlCtrlAttrs::Version(_)
                | GenlCtrlAttrs::HdrSize(_)
                | GenlCtrlAttrs::MaxAttr(_)
                | GenlCtrlAttrs::Policy(_)
                | GenlCtrlAttrs::OpPolicy(_)
                | GenlCtrlAttrs::Op(_) => {}
            }
        }
        Ok(family)
    }

    /// Returns the number of a multicast group.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<u32> {
        let group = self.groups.iter().find(|(other, _)| other == name)?;
        Some(group.1)
    }
}

fn named_group(attrs: &[McastGrpAttrs]) -> Option<(String, u32)> {
    let name = attrs.iter().find_map(|attr| match attr {
        McastGrpAttrs::Name(name) => Some(name.clone()),
        McastGrpAttrs::Id(_) => None,
    });
    let id = attrs.iter().find_map(|attr| match attr {
        McastGrpAttrs::Id(id) => Some(*id),
        McastGrpAttrs::Name(_) => None,
    });
    Some((name?, id?))
}

/// A connection to generic netlink, in the network namespace of the thread that first uses it.
#[derive(Debug)]
pub struct Genl {
    pub(crate) socket: Socket,
}

impl Default for Genl {
    fn default() -> Self {
        Self::new()
    }
}

impl Genl {
    /// Returns a connection that opens at its first use.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            socket: Socket::new(Protocol::Generic),
        }
    }

    /// Returns the `ethtool` family's requests.
    pub const fn ethtool(&mut self) -> Ethtool<'_> {
        Ethtool::new(self)
    }

    /// Returns the `netdev` family's requests.
    pub const fn netdev(&mut self) -> Netdev<'_> {
        Netdev::new(self)
    }

    /// Returns what the kernel says of a family. It is asked once in a process.
    ///
    /// # Errors
    ///
    /// [`NlError::NoFamily`] when the running kernel does not have it, or what kept it from answering.
    pub fn family(&mut self, name: Name) -> Result<&'static Family, NlError> {
        let cache = name.cache();
        if let Some(family) = cache.get() {
            return Ok(family);
        }
        let mut family = Family::default();
        let result = self.socket.one(&family_request(name), |body| {
            family = Family::decode(body)?;
            Ok(())
        });
        match result {
            Ok(_) => Ok(cache.get_or_init(|| family)),
            Err(error) if error.errno() == Some(libc::ENOENT) => Err(NlError::NoFamily {
                family: name.as_str(),
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns the socket's descriptor: any socket serves for the calls of [`crate::ioctl`].
    ///
    /// # Errors
    ///
    /// The socket cannot be opened.
    pub fn descriptor(&mut self) -> Result<BorrowedFd<'_>, NlError> {
        self.socket.descriptor()
    }
}

fn family_request(name: Name) -> Request {
    let kind = GenlCtrlAttrs::FamilyName(String::new()).kind();
    let attrs = [out_text(kind, name.as_str())];
    Request::generic(
        GENL_ID_CTRL,
        GenlCtrlCmd::GetFamily.into(),
        2,
        Ends::Reply,
        &attrs,
        |_| None,
    )
}
