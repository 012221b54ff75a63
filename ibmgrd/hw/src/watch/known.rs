// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interfaces as last heard of: what a notification says that is new. No sockets here.

use std::collections::{HashMap, VecDeque};

use ibmgr_api::{Carrier, Knob, LinkName, Notice, RtnlField, abi, registry};
use netlink_packet_core::NetlinkBuffer;

use super::event::Event;
use crate::ethtool::notified;
use crate::nl::NlError;
use crate::rtnl::Link;

/// `RTM_NEWLINK`.
const NEWLINK: u16 = libc::RTM_NEWLINK;
/// `RTM_DELLINK`.
const DELLINK: u16 = libc::RTM_DELLINK;

/// Interfaces by index.
#[derive(Debug, Default)]
pub struct Known {
    links: HashMap<u32, (LinkName, Link)>,
}

impl Known {
    /// Takes a list of interfaces as known.
    #[must_use]
    pub fn of(links: Vec<Link>) -> Self {
        let mut known = Self::default();
        for link in links {
            if let Ok(name) = link.name.parse() {
                known.links.insert(link.index, (name, link));
            }
        }
        known
    }

    /// Takes another list as known, and tells who came, went, was renamed or changed.
    pub fn replace(&mut self, links: Vec<Link>, events: &mut VecDeque<Event>) {
        let mut gone: Vec<u32> = self.links.keys().copied().collect();
        gone.retain(|index| !links.iter().any(|link| link.index == *index));
        gone.sort_unstable();
        for index in gone {
            self.remove(index, events);
        }
        for link in links {
            self.take(link, events);
        }
    }

    /// Reads a datagram of rtnetlink's link group.
    ///
    /// # Errors
    ///
    /// It is malformed; what comes before the fault in it is taken.
    pub fn route(&mut self, datagram: &[u8], events: &mut VecDeque<Event>) -> Result<(), NlError> {
        each_message(datagram, |kind, body| {
            // The bridge tells of its ports with messages of its own family, which lack most attributes.
            let is_plain = body.first() == Some(&0);
            match kind {
                NEWLINK if is_plain => {
                    let link = Link::decode(body)?;
                    // Wireless extensions send a name and nothing else (net/core/rtnetlink.c sends
                    // the queues with every full message).
                    if link.tx_queues.is_some() {
                        self.take(link, events);
                    }
                }
                DELLINK if is_plain => self.remove(Link::decode(body)?.index, events),
                _ => {}
            }
            Ok(())
        })
    }

    /// Reads a datagram of the ethtool family's group `monitor`; `family` is the family's number.
    ///
    /// # Errors
    ///
    /// It is malformed.
    pub fn ethtool(
        &self,
        datagram: &[u8],
        family: u16,
        events: &mut VecDeque<Event>,
    ) -> Result<(), NlError> {
        each_message(datagram, |kind, body| {
            let Some((notice, index)) = (kind == family)
                .then(|| notified(body))
                .transpose()?
                .flatten()
            else {
                return Ok(());
            };
            // One that is not known is new or gone: the other socket tells so.
            if let Some((name, _)) = self.links.get(&index) {
                let remakes_napis = matches!(notice, Notice::Channels | Notice::Rings);
                push_change(events, index, name, |knob| {
                    knob.is_told_by(notice) || remakes_napis && has_napi_carrier(knob)
                });
            }
            Ok(())
        })
    }

    fn remove(&mut self, index: u32, events: &mut VecDeque<Event>) {
        if let Some((name, _)) = self.links.remove(&index) {
            events.push_back(Event::Removed { index, name });
        }
    }

    fn take(&mut self, link: Link, events: &mut VecDeque<Event>) {
        let index = link.index;
        let Ok(name) = link.name.parse::<LinkName>() else {
            // A name that cannot be asked for: as good as gone.
            return self.remove(index, events);
        };
        let Some((old_name, old)) = self.links.insert(index, (name.clone(), link)) else {
            events.push_back(Event::Created { index, name });
            return;
        };
        if old_name != name {
            events.push_back(Event::Renamed {
                index,
                from: old_name,
                to: name.clone(),
            });
        }
        let Some((_, new)) = self.links.get(&index) else {
            return;
        };
        let identity = is_other(&old, new);
        let carrier = old.carrier != new.carrier || old.operstate != new.operstate;
        // Going up makes NAPI instances, going down removes them.
        let remakes_napis = old.is_up() != new.is_up();
        let knobs = rows(|knob| {
            let differs = knob.carriers.iter().any(|carrier| match carrier {
                Carrier::Rtnl(field) => differs(*field, &old, new),
                Carrier::Coalesce(_)
                | Carrier::Ring(_)
                | Carrier::Channels(_)
                | Carrier::Feature
                | Carrier::PrivateFlag
                | Carrier::BatchingFlags
                | Carrier::Tunable(_)
                | Carrier::Napi(_)
                | Carrier::OneNapi(_)
                | Carrier::Queue(_)
                | Carrier::Sysfs(_) => false,
            });
            differs || remakes_napis && has_napi_carrier(knob)
        });
        if identity || carrier || !knobs.is_empty() {
            events.push_back(Event::Changed {
                index,
                name,
                knobs,
                identity,
                carrier,
            });
        }
    }
}

fn rows(is_meant: impl Fn(&Knob) -> bool) -> Vec<&'static Knob> {
    registry::knobs().filter(|knob| is_meant(knob)).collect()
}

fn push_change(
    events: &mut VecDeque<Event>,
    index: u32,
    name: &LinkName,
    is_meant: impl Fn(&Knob) -> bool,
) {
    events.push_back(Event::Changed {
        index,
        name: name.clone(),
        knobs: rows(is_meant),
        identity: false,
        carrier: false,
    });
}

fn has_napi_carrier(knob: &Knob) -> bool {
    let mut carriers = knob.carriers.iter();
    carriers.any(|carrier| matches!(carrier, Carrier::Napi(_)))
}

/// Says whether something that interfaces are matched by differs.
fn is_other(a: &Link, b: &Link) -> bool {
    let pkey = |link: &Link| link.ipoib.as_ref().and_then(|info| info.pkey);
    a.address != b.address
        || a.kind != b.kind
        || a.alt_names != b.alt_names
        || (a.link, a.link_netns) != (b.link, b.link_netns)
        || a.parent_device != b.parent_device
        || pkey(a) != pkey(b)
}

/// Says whether the field, or the device's bounds of it, differs.
fn differs(field: RtnlField, a: &Link, b: &Link) -> bool {
    let ipoib = |link: &Link| {
        let info = link.ipoib.as_ref();
        (
            info.and_then(|info| info.mode),
            info.and_then(|info| info.umcast),
        )
    };
    let own = |attr| {
        let of = |link: &Link| link.ipoib.as_ref().and_then(|info| info.own(attr));
        of(a) != of(b)
    };
    match field {
        RtnlField::State => a.is_up() != b.is_up(),
        RtnlField::Mtu => (a.mtu, a.min_mtu, a.max_mtu) != (b.mtu, b.min_mtu, b.max_mtu),
        RtnlField::TxQueueLen => a.tx_queue_len != b.tx_queue_len,
        RtnlField::Alias => a.alias != b.alias,
        RtnlField::GsoMaxSize => {
            (a.gso_max_size, a.tso_max_size) != (b.gso_max_size, b.tso_max_size)
        }
        RtnlField::GroMaxSize => a.gro_max_size != b.gro_max_size,
        RtnlField::IpoibMode => ipoib(a).0 != ipoib(b).0,
        RtnlField::IpoibUmcast => ipoib(a).1 != ipoib(b).1,
        RtnlField::Batching => own(abi::ATTR_BATCHING),
        RtnlField::BatchLimit => own(abi::ATTR_BATCH_LIMIT),
        RtnlField::CmCopybreak => own(abi::ATTR_CM_COPYBREAK),
        RtnlField::GroFlushTimeout => own(abi::ATTR_GRO_FLUSH_TIMEOUT),
        RtnlField::DeferHardIrqs => own(abi::ATTR_NAPI_DEFER_HARD_IRQS),
    }
}

fn each_message(
    datagram: &[u8],
    mut on_message: impl FnMut(u16, &[u8]) -> Result<(), NlError>,
) -> Result<(), NlError> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest)
            .map_err(|error| NlError::malformed(error.to_string()))?;
        on_message(message.message_type(), message.payload())?;
        let length = (message.length() as usize).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            ..Link::default()
        }
    }

    /// Returns one word for each event.
    fn told(known: &mut Known, link: Link) -> Vec<String> {
        let mut events = VecDeque::new();
        known.take(link, &mut events);
        words(events)
    }

    fn words(events: VecDeque<Event>) -> Vec<String> {
        let word = |event| match event {
            Event::Created { name, .. } => format!("+{name}"),
            Event::Removed { name, .. } => format!("-{name}"),
            Event::Renamed { from, to, .. } => format!("{from}>{to}"),
            Event::Changed {
                knobs,
                identity,
                carrier,
                ..
            } => {
                let names: Vec<_> = knobs.iter().map(|knob| knob.name).collect();
                format!("{} {identity} {carrier}", names.join(","))
            }
            Event::Resync { why } => why.to_string(),
        };
        events.into_iter().map(word).collect()
    }

    #[test]
    fn only_differences_are_told() {
        let mut known = Known::of(vec![link(7, "ib0")]);
        assert!(told(&mut known, link(7, "ib0")).is_empty());
        let mut changed = link(7, "ib0");
        changed.mtu = 2044;
        changed.alias = Some("rail".into());
        assert_eq!(told(&mut known, changed.clone()), ["mtu,alias false false"]);
        assert!(told(&mut known, changed.clone()).is_empty());
        changed.carrier = Some(true);
        assert_eq!(told(&mut known, changed.clone()), [" false true"]);
        changed.flags = libc::IFF_UP as u32;
        let words = told(&mut known, changed);
        assert!(
            words[0].starts_with("state,gro-flush-timeout,"),
            "going up makes NAPI instances: {words:?}"
        );
    }

    #[test]
    fn names_come_and_go() {
        let mut known = Known::default();
        assert_eq!(told(&mut known, link(7, "ib0")), ["+ib0"]);
        assert_eq!(told(&mut known, link(7, "rail0")), ["ib0>rail0"]);
        assert_eq!(told(&mut known, link(7, "a\u{a0}b")), ["-rail0"]);
        assert_eq!(told(&mut known, link(7, "ib0")), ["+ib0"]);
    }

    #[test]
    fn a_new_list_tells_who_came_and_went() {
        let mut known = Known::of(vec![link(7, "ib0"), link(8, "ib1"), link(9, "ib2")]);
        let mut events = VecDeque::new();
        known.replace(
            vec![link(8, "rail1"), link(9, "ib2"), link(10, "ib0")],
            &mut events,
        );
        assert_eq!(words(events), ["-ib0", "ib1>rail1", "+ib0"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut known = Known::default();
            let mut events = VecDeque::new();
            let _ = known.route(&bytes, &mut events);
            let _ = known.ethtool(&bytes, 20, &mut events);
        }
    }
}
