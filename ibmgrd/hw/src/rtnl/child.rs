// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P_Key children: `RTM_NEWLINK` with `NLM_F_CREATE`, and `RTM_DELLINK`.

use netlink_packet_route::link::{InfoData, InfoIpoib, InfoKind, LinkMessage};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::{DELLINK, HEADER_LEN, NEWLINK, attr_name};
use crate::nl::{Ends, Request};

/// A P_Key child to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewIpoib {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Index of its parent: the kernel requires it.
    pub parent: u32,
    /// rtnl kind of the driver, such as `ipoib`: that of the parent.
    pub kind: String,
    /// P_Key; the kernel refuses 0 and 0x8000.
    pub pkey: u16,
}

impl NewIpoib {
    /// Returns the request that makes it.
    #[must_use]
    pub fn request(&self) -> Request {
        let kind = match self.kind.as_str() {
            "ipoib" => InfoKind::Ipoib,
            other => InfoKind::Other(other.to_owned()),
        };
        let message = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind)
            .set_info_data(InfoData::Ipoib(vec![InfoIpoib::Pkey(self.pkey)]))
            .name(self.name.clone())
            .link(self.parent)
            .build();
        Request::new(NEWLINK, Ends::Ack, HEADER_LEN, &message, attr_name).creating()
    }
}

/// Returns the request that removes an interface.
pub(super) fn delete_request(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request::new(DELLINK, Ends::Ack, HEADER_LEN, &message, attr_name)
}
