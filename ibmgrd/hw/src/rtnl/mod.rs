// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces through rtnetlink(7): list, get, change.

mod change;
mod child;
mod decode;

use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};

pub use change::{IpoibChange, LinkChange};
pub use child::NewIpoib;
pub use decode::{HwAddr, IpoibInfo, Link};

use crate::nl::{Ack, Ends, NlError, Protocol, Request, Socket};
use crate::uapi::{IFLA_INFO_DATA, IFLA_LINKINFO, IPOIB, LINK, LINK_INFO};

/// `RTM_NEWLINK`.
const NEWLINK: u16 = libc::RTM_NEWLINK;
/// `RTM_GETLINK`.
const GETLINK: u16 = libc::RTM_GETLINK;
/// `RTM_DELLINK`.
const DELLINK: u16 = libc::RTM_DELLINK;
/// Length of `struct ifinfomsg`.
const HEADER_LEN: usize = 16;
/// Longest name of an interface: `IFNAMSIZ` less the terminator. Longer ones are alternative names.
const NAME_MAX: usize = 15;

/// A connection to rtnetlink, in the network namespace of the thread that first uses it.
#[derive(Debug)]
pub struct Rtnl {
    socket: Socket,
}

impl Default for Rtnl {
    fn default() -> Self {
        Self::new()
    }
}

impl Rtnl {
    /// Returns a connection that opens at its first use.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            socket: Socket::new(Protocol::Route),
        }
    }

    /// Returns every interface, in the order of the kernel's list: by index.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn links(&mut self) -> Result<Vec<Link>, NlError> {
        self.socket
            .list(&list_request(), |body| Link::decode(body).map(Some))
    }

    /// Returns the interface of that name or alternative name, `None` when there is none.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn link_named(&mut self, name: &str) -> Result<Option<Link>, NlError> {
        self.get(&get_request(Wanted::Name(name)))
    }

    /// Returns the interface of that index, `None` when there is none.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn link_at(&mut self, index: u32) -> Result<Option<Link>, NlError> {
        self.get(&get_request(Wanted::Index(index)))
    }

    fn get(&mut self, request: &Request) -> Result<Option<Link>, NlError> {
        let mut link = None;
        let result = self.socket.one(request, |body| {
            link = Some(Link::decode(body)?);
            Ok(())
        });
        match result {
            Ok(_) => Ok(link),
            Err(error) if error.errno() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes attributes of one interface. The kernel applies them in an order of its own and stops at
    /// the first that it refuses, without taking back the ones before.
    ///
    /// # Errors
    ///
    /// What the kernel said. `EBUSY` of a mode change can come although the mode was changed.
    pub fn change(&mut self, change: &LinkChange) -> Result<Ack, NlError> {
        self.socket.acknowledge(&change.request())
    }

    /// Makes a P_Key child.
    ///
    /// # Errors
    ///
    /// What the kernel said: `EEXIST` for a name that is taken, `ENODEV` for a parent that is gone.
    pub fn create(&mut self, child: &NewIpoib) -> Result<Ack, NlError> {
        self.socket.acknowledge(&child.request())
    }

    /// Removes an interface.
    ///
    /// # Errors
    ///
    /// What the kernel said: `EOPNOTSUPP` for a kind that cannot be removed.
    pub fn delete(&mut self, index: u32) -> Result<Ack, NlError> {
        self.socket.acknowledge(&child::delete_request(index))
    }
}

#[derive(Clone, Copy)]
enum Wanted<'a> {
    Index(u32),
    Name(&'a str),
}

/// Leaves out the statistics, most of each message, but not the number of VFs.
fn without_statistics() -> LinkAttribute {
    LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])
}

fn list_request() -> Request {
    let mut message = LinkMessage::default();
    message.attributes.push(without_statistics());
    Request::new(GETLINK, Ends::Dump, HEADER_LEN, &message, attr_name)
}

fn get_request(wanted: Wanted<'_>) -> Request {
    let mut message = LinkMessage::default();
    match wanted {
        Wanted::Index(index) => message.header.index = index,
        Wanted::Name(name) if name.len() <= NAME_MAX => {
            message
                .attributes
                .push(LinkAttribute::IfName(name.to_owned()));
        }
        Wanted::Name(name) => {
            let name = crate::nl::attr::out_text(crate::uapi::IFLA_ALT_IFNAME, name);
            message.attributes.push(LinkAttribute::Other(name));
        }
    }
    message.attributes.push(without_statistics());
    Request::new(GETLINK, Ends::Reply, HEADER_LEN, &message, attr_name)
}

/// Names the attribute at the end of a path of types.
fn attr_name(path: &[u16]) -> Option<&'static str> {
    match path {
        [link] => LINK.name_of(*link),
        [IFLA_LINKINFO, info] => LINK_INFO.name_of(*info),
        [IFLA_LINKINFO, IFLA_INFO_DATA, ipoib] => IPOIB.name_of(*ipoib),
        _ => None,
    }
}
