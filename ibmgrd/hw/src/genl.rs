// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generic netlink: families by name (include/uapi/linux/genetlink.h).

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use netlink_packet_generic::constants::{
    CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS, CTRL_ATTR_MCAST_GRP_ID,
    CTRL_ATTR_MCAST_GRP_NAME, CTRL_ATTR_OP_ID, CTRL_ATTR_OPS, CTRL_CMD_GETFAMILY, GENL_ID_CTRL,
};

use crate::nl::attr::{Attr, attrs, out_text};
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
        let short = || NlError::malformed("a message without its header");
        let mut family = Self::default();
        // netlink-packet-generic's own decoder panics on some malformed messages.
        for attr in attrs(body.get(HEADER_LEN..).ok_or_else(short)?) {
            let attr = attr?;
            match attr.kind {
                CTRL_ATTR_FAMILY_ID => family.id = attr.u16()?,
                CTRL_ATTR_MCAST_GROUPS => {
                    for group in attr.nested() {
                        family.groups.extend(named_group(&group?)?);
                    }
                }
                CTRL_ATTR_OPS => {
                    for command in attr.nested() {
                        family.commands.extend(command_id(&command?)?);
                    }
                }
                _ => {}
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

fn named_group(group: &Attr<'_>) -> Result<Option<(String, u32)>, NlError> {
    let (mut name, mut id) = (None, None);
    for attr in group.nested() {
        let attr = attr?;
        match attr.kind {
            CTRL_ATTR_MCAST_GRP_NAME => name = Some(attr.text()),
            CTRL_ATTR_MCAST_GRP_ID => id = Some(attr.u32()?),
            _ => {}
        }
    }
    Ok(name.zip(id))
}

fn command_id(command: &Attr<'_>) -> Result<Option<u8>, NlError> {
    for attr in command.nested() {
        let attr = attr?;
        if attr.kind == CTRL_ATTR_OP_ID {
            return Ok(u8::try_from(attr.u32()?).ok());
        }
    }
    Ok(None)
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
    let attrs = [out_text(CTRL_ATTR_FAMILY_NAME, name.as_str())];
    Request::generic(
        GENL_ID_CTRL,
        CTRL_CMD_GETFAMILY,
        2,
        Ends::Reply,
        &attrs,
        |_| None,
    )
}
