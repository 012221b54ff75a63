// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of an interface, as `RTM_NEWLINK` without `NLM_F_CREATE`.
//!
//! `RTM_SETLINK` would do for most attributes, but only `RTM_NEWLINK` reaches a driver's `changelink`
//! with `IFLA_INFO_DATA`.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::{
    InfoData, InfoIpoib, InfoKind, IpoibMode, LinkAttribute, LinkMessage,
};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::{HEADER_LEN, NEWLINK, attr_name};
use crate::nl::attr::out_u32;
use crate::nl::{Ends, Request};
use crate::uapi::IFLA_IFALIAS;

/// What shall change of one interface; `None` leaves an attribute alone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LinkChange {
    /// Index of the interface.
    pub index: u32,
    /// Administrative state.
    pub up: Option<bool>,
    /// Maximum transmission unit, bytes.
    pub mtu: Option<u32>,
    /// Frames that the default qdisc holds.
    pub tx_queue_len: Option<u32>,
    /// Free text of up to 255 bytes; the empty text removes it.
    pub alias: Option<String>,
    /// Largest packet that segmentation may build, bytes.
    pub gso_max_size: Option<u32>,
    /// Largest packet that receive offload may build, bytes.
    pub gro_max_size: Option<u32>,
    /// What goes to an IPoIB driver.
    pub ipoib: Option<IpoibChange>,
}

/// What an IPoIB driver shall change.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IpoibChange {
    /// The interface's rtnl kind: the kernel refuses another one.
    pub kind: String,
    /// 0 datagram, 1 connected.
    pub mode: Option<u16>,
    /// 1 leaves user space's multicast groups alone.
    pub umcast: Option<u16>,
    /// Attributes of the driver's own: type and value.
    pub own: Vec<(u16, u32)>,
}

impl LinkChange {
    /// Returns a change of nothing.
    #[must_use]
    pub fn of(index: u32) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Returns the request that makes the change.
    #[must_use]
    pub fn request(&self) -> Request {
        Request::new(NEWLINK, Ends::Ack, HEADER_LEN, &self.message(), attr_name)
    }

    fn message(&self) -> LinkMessage {
        let mut builder = match &self.ipoib {
            None => LinkMessageBuilder::<LinkUnspec>::default(),
            Some(change) => {
                let kind = match change.kind.as_str() {
                    "ipoib" => InfoKind::Ipoib,
                    other => InfoKind::Other(other.to_owned()),
                };
                LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind)
                    .set_info_data(InfoData::Ipoib(change.attributes()))
            }
        }
        .index(self.index);
        builder = match self.up {
            Some(true) => builder.up(),
            Some(false) => builder.down(),
            None => builder,
        };
        if let Some(mtu) = self.mtu {
            builder = builder.mtu(mtu);
        }
        if let Some(len) = self.tx_queue_len {
            builder = builder.txqueuelen(len);
        }
        if let Some(alias) = &self.alias {
            // Without the terminator that the builder's own `alias` sends: the kernel counts it, and
            // would refuse 255 bytes and keep an empty text.
            let alias = DefaultNla::new(IFLA_IFALIAS, alias.as_bytes().to_vec());
            builder = builder.append_extra_attribute(LinkAttribute::Other(alias));
        }
        if let Some(size) = self.gso_max_size {
            builder = builder.append_extra_attribute(LinkAttribute::GsoMaxSize(size));
        }
        if let Some(size) = self.gro_max_size {
            builder = builder.append_extra_attribute(LinkAttribute::GroMaxSize(size));
        }
        builder.build()
    }
}

impl IpoibChange {
    fn attributes(&self) -> Vec<InfoIpoib> {
        let mode = self.mode.map(|mode| InfoIpoib::Mode(IpoibMode::from(mode)));
        let umcast = self.umcast.map(InfoIpoib::UmCast);
        let own = self
            .own
            .iter()
            .map(|(kind, value)| InfoIpoib::Other(out_u32(*kind, *value)));
        mode.into_iter().chain(umcast).chain(own).collect()
    }
}
