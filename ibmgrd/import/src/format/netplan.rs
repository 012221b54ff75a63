// SPDX-License-Identifier: Apache-2.0 OR MIT
//! netplan's YAML: `network:` with interfaces by an identifier of the file's own.

use ibmgr_api::Glob;

use super::{Intake, Kin, Source};
use crate::found::{Found, Taken, note_match};
use crate::note::{Entry, Kept, Notes, Outcome};
use crate::rows::{Group, Row, Table, To, row};
use crate::spelling::{self, Address, Form};
use crate::syntax::yaml::{self, Node, Pair};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Keys below `network.ethernets.ID`",
    rows: ROWS,
}];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);

const ROWS: &[Row] = &[
    row("infiniband-mode", To::Knob("mode", Form::Mode)),
    row("mtu", To::Knob("mtu", Form::Mtu)),
    row("match.name", To::Which("`match.name`")).note("without `match` the identifier is the name"),
    row("match.macaddress", To::Which("`match.guid`")).note("the last 8 bytes of the 20 alone"),
    row("match.driver", To::Which("`match.driver`")),
    row("set-name", To::Which("`match.name`"))
        .note("the name after netplan's renaming, where a GUID does not tell the interface"),
    row(
        "receive-checksum-offload",
        To::Knob("feature.rx-checksum", Form::Switch),
    ),
    row(
        "transmit-checksum-offload",
        To::Knob("feature.tx-checksum-ipv4", Form::Switch),
    )
    .changes(crate::ethtool::ALL_CHECKSUMS),
    row(
        "tcp-segmentation-offload",
        To::Knob("feature.tx-tcp-segmentation", Form::Switch),
    ),
    row(
        "tcp6-segmentation-offload",
        To::Knob("feature.tx-tcp6-segmentation", Form::Switch),
    ),
    row(
        "generic-segmentation-offload",
        To::Knob("feature.tx-generic-segmentation", Form::Switch),
    ),
    row(
        "generic-receive-offload",
        To::Knob("feature.rx-gro", Form::Switch),
    ),
    row(
        "large-receive-offload",
        To::Knob("feature.rx-lro", Form::Switch),
    ),
    row("ethtool.*", To::Ethtool(Group::Feature)),
    row("wakeonlan", To::Nothing("InfiniBand has no wake-on-LAN")),
    row("emit-lldp", To::Nothing("InfiniBand has no LLDP")),
    row("macaddress", To::Nothing("an IPoIB address can't be set")),
    row("ipv6-mtu", ADDRESSES),
    row("ipv6-privacy", ADDRESSES),
    row("ipv6-address-generation", ADDRESSES),
    row("ipv6-address-token", ADDRESSES),
    row("link-local", ADDRESSES),
    row("addresses", ADDRESSES),
    row("gateway4", ADDRESSES),
    row("gateway6", ADDRESSES),
    row("nameservers", ADDRESSES),
    row("routes", ADDRESSES),
    row("routing-policy", ADDRESSES),
    row("dhcp*", ADDRESSES),
    row("accept-ra", ADDRESSES),
    row("neigh-suppress", ADDRESSES),
    row("ra-overrides", ADDRESSES),
    row("optional*", PROFILE),
    row("critical", PROFILE),
    row("ignore-carrier", PROFILE),
    row("activation-mode", PROFILE),
    row("renderer", PROFILE),
    row("networkmanager", PROFILE),
    row("openvswitch", PROFILE),
    row(
        "regulatory-domain",
        To::Nothing("it is for wireless interfaces"),
    ),
    row(
        "virtual-function-count",
        To::Nothing("virtual functions are not ours"),
    ),
    row(
        "embedded-switch-mode",
        To::Nothing("virtual functions are not ours"),
    ),
    row(
        "delay-virtual-functions-rebind",
        To::Nothing("virtual functions are not ours"),
    ),
    row("link", To::Nothing("virtual functions are not ours")),
];

/// Kinds of interfaces that have nothing to do with InfiniBand.
const OTHER_KINDS: [&str; 11] = [
    "wifis",
    "modems",
    "bonds",
    "bridges",
    "vlans",
    "vrfs",
    "tunnels",
    "dummy-devices",
    "virtual-ethernets",
    "nm-devices",
    "xfrm-interfaces",
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
    let Some(network) = document.get("network") else {
        return intake.fail(
            source,
            document.line,
            "netplan's files hold a mapping 'network'",
        );
    };
    for pair in network.value.pairs() {
        let place = source.place(pair.line);
        let entry = Entry {
            place: &place,
            key: &pair.key,
            value: "",
        };
        match pair.key.as_str() {
            "version" | "renderer" => intake.notes.keep(&place, &pair.key, Kept::Profile),
            "ethernets" => {
                for interface in pair.value.pairs() {
                    one(source, interface, intake);
                }
            }
            key if OTHER_KINDS.contains(&key) => {
                for other in pair.value.pairs() {
                    let kin = Kin::Other(format!("one of {key}"));
                    let place = source.place(other.line);
                    if intake.is_wanted(&kin, Some(&other.key), &place) {
                        one(source, other, intake);
                    }
                }
            }
            _ => intake
                .notes
                .lose(entry, "this importer does not know the key"),
        }
    }
    for pair in document.pairs().iter().filter(|pair| pair.key != "network") {
        let place = source.place(pair.line);
        let entry = Entry {
            place: &place,
            key: &pair.key,
            value: "",
        };
        intake
            .notes
            .lose(entry, "this importer does not know the key");
    }
}

fn one(source: &Source, interface: &Pair, intake: &mut Intake) {
    let place = source.place(interface.line);
    let scalar = |key: &str| {
        let pair = interface.value.get(key);
        pair.and_then(|pair| pair.value.scalar())
    };
    let matches = interface.value.get("match");
    let condition = |key: &str| {
        let pair = matches.and_then(|matches| matches.value.get(key));
        pair.and_then(|pair| pair.value.scalar())
    };
    let name = scalar("set-name")
        .or_else(|| condition("name"))
        .unwrap_or(&interface.key);
    let address = condition("macaddress").map(spelling::address);
    let kin = match address {
        _ if interface.value.get("infiniband-mode").is_some() => Kin::InfiniBand,
        Some(Ok(Address::Port(_))) => Kin::InfiniBand,
        Some(Ok(Address::Other(6))) => Kin::Other("an address of 6 bytes".to_owned()),
        _ => Kin::Untold,
    };
    if !intake.is_wanted(&kin, Some(name), &place) {
        return;
    }
    let notes = &mut intake.notes;
    let mark = notes.mark();
    let mut found = Found::at(&place);
    let renames = interface.value.get("set-name").is_some() && condition("macaddress").is_none();
    let is_matched = match matches {
        Some(matches) => conditions(&mut found, source, matches, renames, notes),
        None => {
            let entry = Entry {
                place: &place,
                key: "identifier",
                value: &interface.key,
            };
            found.name(entry, notes).is_some()
        }
    };
    if let Some(pair) = interface.value.get("set-name") {
        let place = source.place(pair.line);
        let entry = Entry {
            place: &place,
            key: "set-name",
            value: pair.value.shown(),
        };
        if found.matches.guid.is_empty() {
            found.name(entry, notes);
        } else {
            notes.keep(&place, "set-name", Kept::Profile);
        }
    }
    for pair in interface.value.pairs() {
        if matches!(pair.key.as_str(), "match" | "set-name") {
            continue;
        }
        if pair.key == "ethtool" {
            for below in pair.value.pairs() {
                let key = format!("ethtool.{}", below.key);
                take(&mut found, source, &key, below, notes);
            }
            continue;
        }
        take(&mut found, source, &pair.key, pair, notes);
    }
    if is_matched && !found.matches.is_empty() {
        intake.found.push(found);
        return;
    }
    let entry = Entry {
        place: &place,
        key: "match",
        value: "",
    };
    let why = "the interface is not carried without all its conditions: it would be for too much";
    notes.lose_since(mark, entry, why);
}

fn take(found: &mut Found, source: &Source, key: &str, pair: &Pair, notes: &mut Notes) {
    let place = source.place(pair.line);
    let entry = Entry {
        place: &place,
        key,
        value: pair.value.shown(),
    };
    if let Taken::Which(what) = found.take(ROWS, entry, notes) {
        notes.tell(entry, what, true);
    }
}

/// Reads `match`; says whether all of it could be carried.
fn conditions(
    found: &mut Found,
    source: &Source,
    matches: &Pair,
    renames: bool,
    notes: &mut Notes,
) -> bool {
    let mut is_whole = true;
    for pair in matches.value.pairs() {
        let place = source.place(pair.line);
        let key = format!("match.{}", pair.key);
        let entry = Entry {
            place: &place,
            key: &key,
            value: pair.value.shown(),
        };
        match pair.key.as_str() {
            "macaddress" => {
                is_whole &= matches!(found.address(entry, notes), Some(8 | 20));
            }
            "name" if renames => {
                let why = "netplan renames it: the rule goes by the name that it gets".to_owned();
                notes.add(entry, Outcome::Changed, None, Some(why));
            }
            "name" | "driver" => match globs(&pair.value) {
                Some(globs) => {
                    let shown = globs
                        .iter()
                        .map(Glob::as_str)
                        .collect::<Vec<_>>()
                        .join(", ");
                    note_match(entry, format!("{} = {shown}", pair.key), None, notes);
                    if pair.key == "name" {
                        found.matches.name = globs;
                    } else {
                        found.matches.driver = globs;
                    }
                }
                None => {
                    notes.lose(entry, "it is no pattern");
                    is_whole = false;
                }
            },
            _ => {
                notes.lose(entry, "rules have no such condition");
                is_whole = false;
            }
        }
    }
    is_whole
}

/// Reads one pattern, or a list of them.
fn globs(value: &Node) -> Option<Vec<Glob>> {
    let texts: Vec<&str> = match value.scalar() {
        Some(text) => vec![text],
        None => value.items().iter().filter_map(Node::scalar).collect(),
    };
    let globs = texts.iter().map(|text| text.parse().ok());
    globs
        .collect::<Option<Vec<Glob>>>()
        .filter(|globs| !globs.is_empty())
}
