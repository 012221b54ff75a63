// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ifcfg-*` files: Red Hat's network scripts and NetworkManager, MLNX_OFED's openibd, SUSE's wicked.

use std::collections::HashMap;

use ibmgr_api::{LinkName, Pkey};

use super::{Intake, Kin, Source};
use crate::found::{Found, Taken, child_name, split_child};
use crate::note::{Entry, Kept, Notes, Outcome, Place};
use crate::rows::{Row, Table, To, find, row};
use crate::spelling::{self, Form};
use crate::syntax::shell::{self, Kind};

pub(super) const TABLES: [Table; 1] = [Table {
    title: "Variables",
    rows: ROWS,
}];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);
const BOND: To = To::Nothing("bonds, bridges and teams are not ours");
const KIND: &str = "tells that the file is for InfiniBand";

const ROWS: &[Row] = &[
    row("CONNECTED_MODE", To::Knob("mode", Form::IsConnected))
        .note("without it the mode is `datagram`, as its tools set it"),
    row("IPOIB_MODE", To::Knob("mode", Form::Mode)),
    row("MTU", To::Knob("mtu", Form::Mtu)),
    row("IPOIB_UMCAST", To::Knob("umcast", Form::UserMulticast)),
    row("TXQUEUELEN", To::Knob("txqueuelen", Form::Number)),
    row("ETHTOOL_OPTS", To::EthtoolWords),
    row("ETHTOOL_OPTIONS*", To::EthtoolWords),
    row("DEVICE", To::Which("`match.name`")),
    row("HWADDR", To::Which("`match.guid`")).note("the last 8 bytes of the 20 alone"),
    row("PKEY", To::Which("a child")),
    row("PKEY_ID", To::Which("`child.pkey`"))
        .note("with the full-member bit 0x8000, which is in the name, too"),
    row("PKEY_ID_NM", To::Which("`child.pkey`"))
        .note("the name has the number as it stands; the kernel sets 0x8000 all the same"),
    row("PHYSDEV", To::Which("the child's parent")),
    row("IPOIB", To::Which(KIND)),
    row("IPOIB_DEVICE", To::Which("the child's parent")),
    row("IPOIB_PKEY", To::Which("`child.pkey`")).note("hexadecimal, with or without 0x"),
    row("TYPE", To::Which(KIND)),
    row("DEVICETYPE", To::Which(KIND)),
    row("INTERFACETYPE", To::Which(KIND)),
    row("MACADDR", To::Nothing("an IPoIB address can't be set")),
    row("LLADDR", To::Nothing("an IPoIB address can't be set")),
    row(
        "ETHTOOL_WAKE_ON_LAN",
        To::Nothing("InfiniBand has no wake-on-LAN"),
    ),
    row("ARP", To::Nothing("no knob is for it")),
    row("QDISC*", To::Nothing("queueing disciplines are not ours")),
    row("SRIOV_*", To::Nothing("virtual functions are not ours")),
    row("MASTER", BOND),
    row("MASTER_UUID", BOND),
    row("SLAVE", BOND),
    row("BOND*", BOND),
    row("BRIDGE*", BOND),
    row("TEAM*", BOND),
    row("VLAN*", To::Nothing("VLANs are Ethernet's")),
    row("IPADDR*", ADDRESSES),
    row("NETMASK*", ADDRESSES),
    row("PREFIX*", ADDRESSES),
    row("BROADCAST*", ADDRESSES),
    row("NETWORK", ADDRESSES),
    row("GATEWAY*", ADDRESSES),
    row("REMOTE_IPADDR*", ADDRESSES),
    row("SRCADDR", ADDRESSES),
    row("DNS*", ADDRESSES),
    row("DOMAIN", ADDRESSES),
    row("SEARCH", ADDRESSES),
    row("RES_OPTIONS", ADDRESSES),
    row("PEERDNS", ADDRESSES),
    row("PEERROUTES", ADDRESSES),
    row("PEERNTP", ADDRESSES),
    row("DEFROUTE", ADDRESSES),
    row("METRIC*", ADDRESSES),
    row("ROUTING_RULE*", ADDRESSES),
    row("ADDRESS*", ADDRESSES),
    row("LABEL*", ADDRESSES),
    row("SCOPE*", ADDRESSES),
    row("BOOTPROTO*", ADDRESSES),
    row("DHCP*", ADDRESSES),
    row("PERSISTENT_DHCLIENT", ADDRESSES),
    row("ARPING_WAIT", ADDRESSES),
    row("ARPCHECK", ADDRESSES),
    row("ACD_TIMEOUT", ADDRESSES),
    row("IPV4*", ADDRESSES),
    row("IPV6*", ADDRESSES),
    row("NOZEROCONF", ADDRESSES),
    row("PROXY_METHOD", ADDRESSES),
    row("BROWSER_ONLY", ADDRESSES),
    row("PAC_*", ADDRESSES),
    row("LINK_REQUIRED", PROFILE),
    row("NAME", PROFILE),
    row("UUID", PROFILE),
    row("ONBOOT", PROFILE),
    row("STARTMODE", PROFILE),
    row("NM_CONTROLLED", PROFILE),
    row("AUTOCONNECT*", PROFILE),
    row("USERCTL", PROFILE),
    row("USERS", PROFILE),
    row("USERCONTROL", PROFILE),
    row("ZONE", PROFILE),
    row("FIREWALL", PROFILE),
    row("HOTPLUG", PROFILE),
    row("IFPLUGD_PRIORITY", PROFILE),
    row("LINKDELAY", PROFILE),
    row("DEVTIMEOUT", PROFILE),
    row("PRE_UP_SCRIPT", PROFILE),
    row("POST_UP_SCRIPT", PROFILE),
    row("PRE_DOWN_SCRIPT", PROFILE),
    row("POST_DOWN_SCRIPT", PROFILE),
];

/// One variable, the last of its name.
struct Variable {
    place: Place,
    name: String,
    value: String,
    expansions: Vec<String>,
}

impl Variable {
    fn entry(&self) -> Entry<'_> {
        Entry {
            place: &self.place,
            key: &self.name,
            value: &self.value,
        }
    }
}

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        one(source, intake);
    }
}

fn one(source: &Source, intake: &mut Intake) {
    let variables = variables(source, &mut intake.notes);
    let get = |name: &str| variables.iter().find(|variable| variable.name == name);
    let place = source.place(1);
    let file_name = source.file_name();
    let of_file = file_name.strip_prefix("ifcfg-");
    let device = get("DEVICE").map(|device| device.value.as_str());
    let kin = kin(&variables);
    if !intake.is_wanted(&kin, device.or(of_file), &place) {
        return;
    }
    let mut found = Found::at(&place);
    let notes = &mut intake.notes;
    // Names come first: ethtool's words must be for this interface.
    let named_by_file = Entry {
        place: &place,
        key: "file name",
        value: of_file.unwrap_or(file_name),
    };
    let name_entry = match get("DEVICE") {
        Some(device) => Some(device.entry()),
        None if get("HWADDR").is_none() || get("IPOIB").is_some() => Some(named_by_file),
        None => None,
    };
    let name: Option<LinkName> = name_entry.and_then(|entry| entry.value.parse().ok());
    child(&mut found, name.as_ref(), &variables, notes);
    if let Some(entry) = name_entry {
        name_of(&mut found, name.as_ref(), entry, notes);
    }
    match get("HWADDR") {
        Some(address) if found.child.is_some() => {
            let why = "a child is told by its parent and its P_Key";
            notes.lose(address.entry(), why);
        }
        Some(address) => {
            found.address(address.entry(), notes);
        }
        None => {}
    }
    if found.matches.is_empty() && found.child.is_none() {
        let entry = Entry {
            place: &place,
            key: "interface",
            value: "",
        };
        return notes.lose(entry, "nothing tells which interface the file is for");
    }
    for variable in &variables {
        settle(&mut found, variable, notes);
    }
    let is_red_hats = get("TYPE").is_some() || get("DEVICETYPE").is_some();
    if is_red_hats
        && matches!(kin, Kin::InfiniBand)
        && get("CONNECTED_MODE").is_none()
        && get("IPOIB_MODE").is_none()
    {
        let implied = Entry {
            place: &place,
            key: "CONNECTED_MODE (absent)",
            value: "no",
        };
        let why = "the tools of this file set datagram when it is absent";
        found.set("mode", Form::IsConnected, implied, Some(why), notes);
    }
    cap_mtu(&found, notes);
    intake.found.push(found);
}

/// Takes the name, or says what became of it.
fn name_of(found: &mut Found, name: Option<&LinkName>, entry: Entry<'_>, notes: &mut Notes) {
    match &found.child {
        None => {
            found.name(entry, notes);
        }
        Some(below) if Some(&below.name) == name => notes.tell(entry, "`child.name`", true),
        // What a file is called means nothing to those who read PKEY.
        Some(_) if entry.key == "file name" => {}
        Some(below) => {
            let computed = &below.name;
            let why = format!("its tools take no other name than {computed} for this P_Key");
            let into = Some(format!("name = {computed}"));
            notes.add(entry, Outcome::Changed, into, Some(why));
        }
    }
}

/// Reads the variables; of several with one name, the last counts.
fn variables(source: &Source, notes: &mut Notes) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in shell::parse(&source.text) {
        let place = source.place(item.line);
        match item.kind {
            Kind::Assignment {
                name,
                value,
                expansions,
            } => {
                let new = Variable {
                    place,
                    name,
                    value,
                    expansions,
                };
                let Some(at) = places.insert(new.name.clone(), variables.len()) else {
                    variables.push(new);
                    continue;
                };
                places.insert(new.name.clone(), at);
                if let Some(known) = variables.get_mut(at) {
                    let why = format!("line {} sets it again", new.place.line);
                    let is_known = find(ROWS, &known.name).is_some();
                    let value = if is_known { &known.value } else { "" };
                    let entry = Entry {
                        value,
                        ..known.entry()
                    };
                    notes.lose(entry, why);
                    *known = new;
                }
            }
            Kind::Other { text, why } => {
                let entry = Entry {
                    place: &place,
                    key: &text,
                    value: "",
                };
                notes.lose(entry, why);
            }
        }
    }
    variables
}

fn kin(variables: &[Variable]) -> Kin {
    let get = |name: &str| variables.iter().find(|variable| variable.name == name);
    let types = ["TYPE", "DEVICETYPE", "INTERFACETYPE"];
    let stated = types.iter().find_map(|name| get(name));
    let is_infiniband = |variable: &Variable| variable.value.eq_ignore_ascii_case("infiniband");
    let tells = |variable: &Variable| {
        matches!(
            variable.name.as_str(),
            "CONNECTED_MODE" | "PKEY" | "PKEY_ID"
        ) || variable.name.starts_with("IPOIB")
    };
    let has_long_address = get("HWADDR").is_some_and(|address| {
        matches!(
            spelling::address(&address.value),
            Ok(spelling::Address::Port(_))
        )
    });
    match stated {
        Some(stated) if is_infiniband(stated) => Kin::InfiniBand,
        Some(stated) => Kin::Other(format!("{} {}", stated.name, stated.value)),
        None if has_long_address || variables.iter().any(tells) => Kin::InfiniBand,
        None => Kin::Untold,
    }
}

fn settle(found: &mut Found, variable: &Variable, notes: &mut Notes) {
    let entry = variable.entry();
    let is_own_name = |text: &String| {
        let bare = text.trim_matches(|c| matches!(c, '$' | '{' | '}'));
        matches!(bare, "DEVICE" | "INTERFACE")
    };
    let needs_shell = !variable.expansions.is_empty();
    let row = find(ROWS, entry.key).map(|(row, _)| row.to);
    let is_known = match row {
        // Tools write the interface as a variable in ethtool's words.
        Some(To::EthtoolWords) => variable.expansions.iter().all(is_own_name),
        Some(To::Kept(_) | To::Nothing(_)) | None => true,
        Some(_) => false,
    };
    if needs_shell && !is_known {
        return notes.lose(
            entry,
            "its value takes a shell to know, and nothing is evaluated",
        );
    }
    if let Taken::Which(what) = found.take(ROWS, entry, notes) {
        let is_for_child = matches!(
            entry.key,
            "PKEY" | "PKEY_ID" | "PKEY_ID_NM" | "PHYSDEV" | "IPOIB_DEVICE" | "IPOIB_PKEY"
        );
        notes.tell(entry, what, found.child.is_some() || !is_for_child);
    }
}

/// Finds out whether the file is for a P_Key child, and of what.
fn child(found: &mut Found, name: Option<&LinkName>, variables: &[Variable], notes: &mut Notes) {
    let get = |name: &str| variables.iter().find(|variable| variable.name == name);
    let is_on =
        |name: &str| get(name).is_some_and(|switch| spelling::switch(&switch.value) == Ok(true));
    if is_on("PKEY") {
        return of_pkey_id(found, variables, notes);
    }
    for name in ["PKEY", "PKEY_ID", "PKEY_ID_NM", "PHYSDEV"] {
        if let Some(variable) = get(name) {
            notes.lose(variable.entry(), "it counts with PKEY=yes only");
        }
    }
    let split = name.and_then(|name| split_child(name.as_str()));
    if get("IPOIB_DEVICE").is_some() || get("IPOIB_PKEY").is_some() {
        return of_suse(found, name, split, variables, notes);
    }
    if let (Some(name), Some((parent, pkey))) = (name, split) {
        let shown = name.to_string();
        let entry = Entry {
            place: &found.place.clone(),
            key: "parent and P_Key of the name",
            value: &shown,
        };
        found.below(parent, pkey, name.clone(), entry, notes);
    }
}

fn of_pkey_id(found: &mut Found, variables: &[Variable], notes: &mut Notes) {
    let get = |name: &str| variables.iter().find(|variable| variable.name == name);
    let raw = get("PKEY_ID_NM");
    let id = raw.or_else(|| get("PKEY_ID"));
    if let (Some(_), Some(other)) = (raw, get("PKEY_ID")) {
        notes.lose(other.entry(), "NetworkManager takes PKEY_ID_NM instead");
    }
    let pkey = get("PKEY").map(Variable::entry);
    let (Some(id), Some(parent)) = (id, get("PHYSDEV")) else {
        if let Some(entry) = pkey {
            notes.lose(entry, "a child takes PKEY_ID and PHYSDEV, too");
        }
        return;
    };
    let read = || -> Result<(LinkName, Pkey, LinkName), String> {
        let mut pkey = spelling::pkey(&id.value, 10)?;
        if raw.is_none() {
            pkey = Pkey::new(pkey.raw() | Pkey::FULL_MEMBER).ok_or("it names no partition")?;
        }
        let parent: LinkName = parent.value.parse().map_err(|error| format!("{error}"))?;
        let name = child_name(&parent, pkey)?;
        Ok((parent, pkey, name))
    };
    match read() {
        Ok((parent, pkey, computed)) => {
            found.below(parent, pkey, computed, id.entry(), notes);
        }
        Err(why) => notes.lose(id.entry(), why),
    }
}

fn of_suse(
    found: &mut Found,
    name: Option<&LinkName>,
    split: Option<(LinkName, Pkey)>,
    variables: &[Variable],
    notes: &mut Notes,
) {
    let get = |name: &str| variables.iter().find(|variable| variable.name == name);
    let (of_name, pkey_of_name) = split.unzip();
    let read = || -> Result<(LinkName, Pkey), String> {
        let parent = match get("IPOIB_DEVICE") {
            Some(device) => device.value.parse().map_err(|error| format!("{error}"))?,
            None => of_name.ok_or("IPOIB_DEVICE is missing, and the name tells no parent")?,
        };
        let pkey = match get("IPOIB_PKEY") {
            Some(pkey) => spelling::pkey(&pkey.value, 16)?,
            None => pkey_of_name.ok_or("IPOIB_PKEY is missing, and the name tells none")?,
        };
        Ok((parent, pkey))
    };
    let Some(variable) = get("IPOIB_PKEY").or_else(|| get("IPOIB_DEVICE")) else {
        return;
    };
    match (read(), name) {
        (Ok((parent, pkey)), Some(name)) => {
            found.below(parent, pkey, name.clone(), variable.entry(), notes);
        }
        (Ok(_), None) => notes.lose(variable.entry(), "nothing tells the child's name"),
        (Err(why), _) => notes.lose(variable.entry(), why),
    }
}

/// Tells what becomes of an MTU that one of the file's tools cuts.
fn cap_mtu(found: &Found, notes: &mut Notes) {
    let of = |name: &str| {
        let mut settings = found.settings.iter();
        settings.find(|setting| setting.key.knob().name == name)
    };
    if let (Some(mode), Some(mtu)) = (of("mode"), of("mtu"))
        && mode.value.number() == Some(0)
        && mtu.value.number().is_some_and(|bytes| bytes > 2044)
    {
        let why = "the network scripts cut it to 2044 in datagram mode, NetworkManager does not";
        notes.remark(mtu.note, Outcome::Changed, why);
    }
}
