// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nmstate's YAML: a list of interfaces, in an order that does not matter.

use ibmgr_api::{LinkName, Pkey};

use super::{Intake, Kin, Source};
use crate::found::{Found, Taken};
use crate::note::{Entry, Kept, Notes, Outcome};
use crate::rows::{Group, Row, Table, To, row};
use crate::spelling::{self, Form};
use crate::syntax::yaml::{self, Kind, Node, Pair};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Keys of an interface",
    rows: ROWS,
}];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);

const ROWS: &[Row] = &[
    row("infiniband.mode", To::Knob("mode", Form::Mode)),
    row("infiniband.base-iface", To::Which("the child's parent")),
    row("infiniband.pkey", To::Which("`child.pkey`")).note("0xffff is the base interface itself"),
    row("mtu", To::Knob("mtu", Form::Mtu)),
    row("name", To::Which("`match.name`"))
        .note("with `identifier: mac-address` it is the profile's name alone"),
    row("mac-address", To::Which("`match.guid`"))
        .note("with `identifier: mac-address`; the last 8 bytes of the 20 alone"),
    row("type", To::Which("tells that the interface is InfiniBand")),
    row(
        "identifier",
        To::Which("tells what `name` and `mac-address` are for"),
    ),
    row("ethtool.feature.*", To::Ethtool(Group::Feature)),
    row("ethtool.coalesce.*", To::Ethtool(Group::Coalesce)),
    row("ethtool.ring.*", To::Ethtool(Group::Ring)),
    row("ethtool.ring.rx-max", To::Nothing(MAXIMUM)),
    row("ethtool.ring.tx-max", To::Nothing(MAXIMUM)),
    row("ethtool.ring.rx-mini-max", To::Nothing(MAXIMUM)),
    row("ethtool.ring.rx-jumbo-max", To::Nothing(MAXIMUM)),
    row("ethtool.pause.*", To::Ethtool(Group::Pause)),
    row("ethtool.fec.*", To::Nothing("no knob is for FEC")),
    row("state", PROFILE).note("an interface that shall be `absent` is not carried at all"),
    row(
        "controller",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row("ipv4", ADDRESSES),
    row("ipv6", ADDRESSES),
    row("mptcp", ADDRESSES),
    row("description", PROFILE),
    row("profile-name", PROFILE),
    row("alt-names", To::Nothing("alternative names are not ours")),
    row("accept-all-mac-addresses", To::Nothing("no knob is for it")),
    row("lldp", To::Nothing("InfiniBand has no LLDP")),
    row("wait-ip", ADDRESSES),
];

const MAXIMUM: &str = "it is what the device can, no setting";

/// Keys at the top that say nothing of interfaces.
const OF_HOST: [&str; 6] = [
    "routes",
    "route-rules",
    "dns-resolver",
    "hostname",
    "ovs-db",
    "ovn",
];

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        match yaml::parse(&source.text) {
            Ok(documents) => {
                for document in &documents {
                    top(source, document, intake);
                }
            }
            Err(flaw) => intake.fail(source, flaw.line, format!("no YAML: {}", flaw.what)),
        }
    }
}

fn top(source: &Source, document: &Node, intake: &mut Intake) {
    let has_interfaces = matches!(
        document.get("interfaces").map(|pair| &pair.value.kind),
        Some(Kind::Sequence(_))
    );
    if !has_interfaces && document.get("desiredState").is_none() {
        return intake.fail(
            source,
            document.line,
            "nmstate's files hold a list 'interfaces'",
        );
    }
    for pair in document.pairs() {
        let place = source.place(pair.line);
        let entry = Entry {
            place: &place,
            key: &pair.key,
            value: "",
        };
        match pair.key.as_str() {
            "interfaces" => {
                for interface in pair.value.items() {
                    one(source, interface, intake);
                }
            }
            "desiredState" => top(source, &pair.value, intake),
            key if OF_HOST.contains(&key) => intake.notes.keep(&place, key, Kept::Addresses),
            _ => intake
                .notes
                .lose(entry, "this importer does not know the key"),
        }
    }
}

fn one(source: &Source, interface: &Node, intake: &mut Intake) {
    let place = source.place(interface.line);
    let scalar = |key: &str| interface.get(key).and_then(|pair| pair.value.scalar());
    let name = scalar("name");
    let kin = match scalar("type") {
        Some("infiniband") => Kin::InfiniBand,
        Some(kind) => Kin::Other(format!("type {kind}")),
        None if interface.get("infiniband").is_some() => Kin::InfiniBand,
        None => Kin::Untold,
    };
    if !intake.is_wanted(&kin, name, &place) {
        return;
    }
    let notes = &mut intake.notes;
    let state = scalar("state");
    if let Some(state @ ("absent" | "ignore")) = state {
        let entry = Entry {
            place: &place,
            key: "state",
            value: state,
        };
        return notes.lose(
            entry,
            "an interface that nmstate removes or ignores is not carried",
        );
    }
    let mark = notes.mark();
    let mut found = Found::at(&place);
    let by_address = scalar("identifier") == Some("mac-address");
    child(&mut found, source, interface, notes);
    for pair in interface.pairs() {
        let place = source.place(pair.line);
        let entry = Entry {
            place: &place,
            key: &pair.key,
            value: pair.value.shown(),
        };
        match (pair.key.as_str(), &found.child) {
            ("name", None) if !by_address => {
                found.name(entry, notes);
            }
            ("name", None) => notes.keep(&place, "name", Kept::Profile),
            ("name", Some(_)) => notes.tell(entry, "`child.name`", true),
            ("mac-address", None) if by_address => {
                found.address(entry, notes);
            }
            ("mac-address", _) => notes.lose(entry, "an IPoIB address can't be set"),
            ("infiniband" | "ethtool", _) => {
                walk(&mut found, source, &pair.key, pair, notes);
            }
            _ => {
                if let Taken::Which(what) = found.take(ROWS, entry, notes) {
                    notes.tell(entry, what, true);
                }
            }
        }
    }
    if found.matches.is_empty() && found.child.is_none() {
        let entry = Entry {
            place: &place,
            key: "interface",
            value: "",
        };
        return notes.lose_since(mark, entry, "nothing tells which interface this is");
    }
    intake.found.push(found);
}

/// Takes what stands below a key, with the path to it.
fn walk(found: &mut Found, source: &Source, path: &str, pair: &Pair, notes: &mut Notes) {
    for below in pair.value.pairs() {
        let path = format!("{path}.{}", below.key);
        if !below.value.pairs().is_empty() {
            walk(found, source, &path, below, notes);
            continue;
        }
        let place = source.place(below.line);
        let entry = Entry {
            place: &place,
            key: &path,
            value: below.value.shown(),
        };
        if let Taken::Which(what) = found.take(ROWS, entry, notes) {
            let is_base = path == "infiniband.base-iface" && entry.value.is_empty();
            let what = if is_base { "it is no child" } else { what };
            notes.tell(entry, what, is_base || found.child.is_some());
        }
    }
}

fn child(found: &mut Found, source: &Source, interface: &Node, notes: &mut Notes) {
    let Some(infiniband) = interface.get("infiniband") else {
        return;
    };
    let Some(pair) = infiniband.value.get("pkey") else {
        return;
    };
    let place = source.place(pair.line);
    let text = pair.value.shown();
    let entry = Entry {
        place: &place,
        key: "infiniband.pkey",
        value: text,
    };
    let is_base = spelling::number(text).is_ok_and(|raw| raw == 0xffff);
    let base = infiniband.value.get("base-iface");
    let base = base
        .and_then(|base| base.value.scalar())
        .filter(|base| !base.is_empty());
    if is_base {
        let why = "0xffff is the base interface itself".to_owned();
        notes.add(entry, Outcome::Carried, None, Some(why));
        return;
    }
    let name = interface.get("name").and_then(|pair| pair.value.scalar());
    let read = || -> Result<(LinkName, Pkey, LinkName), String> {
        let pkey = spelling::pkey(text, 10)?;
        let parent: LinkName = base
            .ok_or("a child takes infiniband.base-iface, too")?
            .parse()
            .map_err(|error| format!("{error}"))?;
        let name = name.ok_or("the child has no name")?;
        Ok((
            parent,
            pkey,
            name.parse().map_err(|error| format!("{error}"))?,
        ))
    };
    match read() {
        Ok((parent, pkey, name)) => found.below(parent, pkey, name, entry, notes),
        Err(why) => notes.lose(entry, why),
    }
}
