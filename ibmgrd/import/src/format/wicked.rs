// SPDX-License-Identifier: Apache-2.0 OR MIT
//! wicked's XML, as `/etc/wicked/ifconfig/*.xml` has it and `wicked show-config` prints it.

use ibmgr_api::{LinkName, Pkey};

use super::{Intake, Kin, Source};
use crate::found::{Found, Taken};
use crate::note::{Entry, Kept, Notes};
use crate::rows::{Group, Row, Table, To, row};
use crate::spelling::{self, Address, Form};
use crate::syntax::xml::{self, Element};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Elements below `interface`",
    rows: ROWS,
}];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);
const BOND: To = To::Nothing("bonds, bridges and teams are not ours");

const ROWS: &[Row] = &[
    row("infiniband.mode", To::Knob("mode", Form::Mode)),
    row(
        "infiniband.multicast",
        To::Knob("umcast", Form::UserMulticast),
    ),
    row("infiniband:child.mode", To::Knob("mode", Form::Mode)),
    row(
        "infiniband:child.multicast",
        To::Knob("umcast", Form::UserMulticast),
    ),
    row("infiniband:child.device", To::Which("the child's parent")),
    row("infiniband:child.pkey", To::Which("`child.pkey`")),
    row("link.mtu", To::Knob("mtu", Form::Mtu)),
    row("link.txqlen", To::Knob("txqueuelen", Form::Number)),
    row("link.alias", To::Knob("alias", Form::Text)),
    row("name", To::Which("`match.name`")),
    row("name.permanent-address", To::Which("`match.guid`"))
        .note("the last 8 bytes of the 20 alone"),
    row("ethtool.features.*", To::Ethtool(Group::Feature)),
    row("ethtool.private-flags.*", To::Which("`private-flag.NAME`")),
    row("ethtool.coalesce.*", To::Ethtool(Group::Coalesce)),
    row("ethtool.ring.*", To::Ethtool(Group::Ring)),
    row("ethtool.channels.*", To::Ethtool(Group::Channels)),
    row("ethtool.pause.*", To::Ethtool(Group::Pause)),
    row("ethtool.link-settings.*", To::Nothing("it is Ethernet's")),
    row(
        "ethtool.wake-on-lan*",
        To::Nothing("InfiniBand has no wake-on-LAN"),
    ),
    row("ethtool.eee.*", To::Nothing("InfiniBand has no EEE")),
    row("link.master", BOND),
    row("link.port*", BOND),
    row("bond*", BOND),
    row("link.metric", ADDRESSES),
    row("ipv4*", ADDRESSES),
    row("ipv6*", ADDRESSES),
    row("alias", PROFILE),
    row("control.*", PROFILE),
    row("firewall*", PROFILE),
    row("scripts.*", PROFILE),
    row("lldp*", To::Nothing("InfiniBand has no LLDP")),
];

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        match xml::parse(&source.text) {
            Ok(elements) if elements.is_empty() => {
                intake.fail(source, 1, "no XML: it holds no element");
            }
            Ok(elements) => {
                for element in &elements {
                    top(source, element, intake);
                }
            }
            Err(flaw) => intake.fail(source, flaw.line, format!("no XML: {}", flaw.what)),
        }
    }
}

/// Reads an element at the top: an interface, or what has interfaces in it.
fn top(source: &Source, element: &Element, intake: &mut Intake) {
    if element.name == "interface" {
        return one(source, element, intake);
    }
    let place = source.place(element.line);
    let mut is_container = false;
    for child in &element.children {
        if child.name == "interface" {
            is_container = true;
            one(source, child, intake);
        }
    }
    if !is_container {
        let entry = Entry {
            place: &place,
            key: &element.name,
            value: "",
        };
        intake.notes.lose(entry, "it is no interface");
    }
}

fn one(source: &Source, interface: &Element, intake: &mut Intake) {
    let place = source.place(interface.line);
    let name = interface.get("name");
    let address = name.and_then(|name| name.get("permanent-address"));
    let text = name
        .map(|name| name.text.as_str())
        .filter(|text| !text.is_empty());
    let is_long = address
        .is_some_and(|address| matches!(spelling::address(&address.text), Ok(Address::Port(_))));
    let others = [
        "ethernet", "wireless", "bond", "bridge", "vlan", "team", "dummy", "tun", "tap",
    ];
    let other = interface
        .children
        .iter()
        .find(|child| others.contains(&child.name.as_str()));
    let kin = match other {
        _ if is_long
            || interface
                .children
                .iter()
                .any(|child| child.name.starts_with("infiniband")) =>
        {
            Kin::InfiniBand
        }
        Some(other) => Kin::Other(other.name.clone()),
        None => Kin::Untold,
    };
    if !intake.is_wanted(&kin, text, &place) {
        return;
    }
    let notes = &mut intake.notes;
    let mark = notes.mark();
    let mut found = Found::at(&place);
    if let Some(child) = interface.get("infiniband:child") {
        below(&mut found, source, child, text, notes);
    }
    if let Some(name) = name {
        let place = source.place(name.line);
        let entry = Entry {
            place: &place,
            key: "name",
            value: &name.text,
        };
        match (address, found.child.is_some()) {
            (_, true) => notes.tell(entry, "`child.name`", true),
            (Some(address), false) => {
                let place = source.place(address.line);
                let entry = Entry {
                    place: &place,
                    key: "name.permanent-address",
                    value: &address.text,
                };
                found.address(entry, notes);
            }
            (None, false) => {
                found.name(entry, notes);
            }
        }
    }
    for child in interface
        .children
        .iter()
        .filter(|child| child.name != "name")
    {
        walk(&mut found, source, &child.name, child, notes);
    }
    if found.matches.is_empty() && found.child.is_none() {
        let entry = Entry {
            place: &place,
            key: "interface",
            value: "",
        };
        let why = "nothing tells which interface this is";
        return notes.lose_since(mark, entry, why);
    }
    intake.found.push(found);
}

fn below(
    found: &mut Found,
    source: &Source,
    child: &Element,
    name: Option<&str>,
    notes: &mut Notes,
) {
    let text = |name: &str| child.get(name).map(|element| element.text.as_str());
    let place = source.place(child.get("pkey").unwrap_or(child).line);
    let entry = Entry {
        place: &place,
        key: "infiniband:child.pkey",
        value: text("pkey").unwrap_or_default(),
    };
    let read = || -> Result<(LinkName, Pkey, LinkName), String> {
        let pkey = spelling::pkey(text("pkey").ok_or("a child has a pkey")?, 10)?;
        let link = |name: Option<&str>, what: &str| -> Result<LinkName, String> {
            let name = name.ok_or_else(|| format!("a child has a {what}"))?;
            name.parse().map_err(|error| format!("{error}"))
        };
        Ok((link(text("device"), "device")?, pkey, link(name, "name")?))
    };
    match read() {
        Ok((parent, pkey, name)) => found.below(parent, pkey, name, entry, notes),
        Err(why) => notes.lose(entry, why),
    }
}

/// Takes an element, or those in it, with the path to it.
fn walk(found: &mut Found, source: &Source, path: &str, element: &Element, notes: &mut Notes) {
    let place = source.place(element.line);
    if let Some(kept) = ["ipv4", "ipv6"].iter().find(|kept| path.starts_with(*kept)) {
        // What is in there is addresses, each with elements of its own.
        let _ = kept;
        return notes.keep(&place, path, Kept::Addresses);
    }
    let named = element.get("name").zip(element.get("enabled"));
    if let Some((name, enabled)) = named {
        let parent = path.rsplit_once('.').map_or(path, |(parent, _)| parent);
        let key = format!("{parent}.{}", name.text);
        let place = source.place(name.line);
        let entry = Entry {
            place: &place,
            key: &key,
            value: &enabled.text,
        };
        if parent == "ethtool.private-flags" {
            let knob = format!("private-flag.{}", name.text);
            return found.set(&knob, Form::Switch, entry, None, notes);
        }
        found.take(ROWS, entry, notes);
        return;
    }
    for child in &element.children {
        walk(
            found,
            source,
            &format!("{path}.{}", child.name),
            child,
            notes,
        );
    }
    if !element.children.is_empty() {
        return;
    }
    let entry = Entry {
        place: &place,
        key: path,
        value: &element.text,
    };
    if let Taken::Which(what) = found.take(ROWS, entry, notes) {
        let is_for_child = path.starts_with("infiniband:child.");
        notes.tell(entry, what, !is_for_child || found.child.is_some());
    }
}
