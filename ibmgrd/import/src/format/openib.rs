// SPDX-License-Identifier: Apache-2.0 OR MIT
//! MLNX_OFED's `openib.conf`, and the options of `ib_ipoib` in `modprobe.d`.
//!
//! `openib.conf` is sourced by scripts that run as root; here it is read only.

use std::collections::HashMap;

use ibmgr_api::Glob;

use super::{Intake, Source};
use crate::found::{Found, Taken};
use crate::note::{Entry, Kept, Notes};
use crate::rows::{Row, Table, To, row};
use crate::spelling::{self, Form};
use crate::syntax::shell::{self, Kind};

pub(super) const TABLES: [Table; 2] = [
    Table {
        title: "`openib.conf`",
        rows: ROWS,
    },
    Table {
        title: "Options of `ib_ipoib` in `modprobe.d`",
        rows: OPTIONS,
    },
];

const DRIVERS: To = To::Kept(Kept::Profile);
const DAEMONS: To = To::Nothing("it is for another program of MLNX_OFED");

const ROWS: &[Row] = &[
    row("SET_IPOIB_CM", To::Knob("mode", Form::IsConnected))
        .note("`auto` is the driver's choice, and not carried"),
    row("IPOIB_MTU", To::Knob("mtu", Form::Mtu))
        .note("with `SET_IPOIB_CM=yes` only, as in its script"),
    row(
        "SET_IPOIB_CHANNELS",
        To::Nothing("its script counts the CPUs of each host: declare `channels.combined`"),
    ),
    row(
        "IPOIBHA_ENABLE",
        To::Nothing("high availability is a bond's"),
    ),
    row(
        "PRIMARY_IPOIB_DEV",
        To::Nothing("high availability is a bond's"),
    ),
    row(
        "SECONDARY_IPOIB_DEV",
        To::Nothing("high availability is a bond's"),
    ),
    row(
        "NODE_DESC*",
        To::Nothing("the node's description is no setting of an interface"),
    ),
    row(
        "RUN_AFFINITY_TUNER",
        To::Nothing("its script computes CPU masks on each host"),
    ),
    row(
        "RUN_MLNX_TUNE",
        To::Nothing("mlnx_tune computes its values on each host"),
    ),
    row("RUN_SYSCTL", To::Nothing("sysctl settings are the host's")),
    row("CX3_ETH_ONLY", To::Nothing("it is for Ethernet ports")),
    row("ONBOOT", DRIVERS),
    row("ALLOW_STOP", DRIVERS),
    row("FORCE_MODE", DRIVERS),
    row("POST_START_DELAY", DRIVERS),
    row("*_LOAD", DRIVERS),
    row("RENICE_IB_MAD", DAEMONS),
    row("SRP*", DAEMONS),
    row("ENABLE_FW_TRACER", DAEMONS),
    row("SMARTNIC_PF_MAC_CONF", DAEMONS),
];

const OPTIONS: &[Row] = &[
    row("send_queue_size", To::Nothing(AT_LOAD)),
    row("recv_queue_size", To::Nothing(AT_LOAD)),
    row(
        "ipoib_enhanced",
        To::Nothing("it is set when the module is loaded: keep the file"),
    ),
    row(
        "max_nonsrq_conn_qp",
        To::Nothing("it is set when the module is loaded: keep the file"),
    ),
    row(
        "*debug_level",
        To::Nothing("it is for debugging the driver"),
    ),
];

const AT_LOAD: &str = "in-tree ib_ipoib takes its ring sizes when it is loaded: keep the file, or declare `ring.*` for drivers that have it";

/// First words of the lines of `modprobe.d`.
const MODPROBE: [&str; 7] = [
    "options",
    "alias",
    "install",
    "remove",
    "blacklist",
    "softdep",
    "weakdep",
];

pub(super) fn read(sources: &[Source], intake: &mut Intake) {
    for source in sources {
        one(source, intake);
    }
}

fn one(source: &Source, intake: &mut Intake) {
    let place = source.place(1);
    let notes = &mut intake.notes;
    let mut found = Found::at(&place);
    // openibd goes through all IPoIB interfaces.
    found.matches.kind = vec![Glob::literal("ipoib")];
    let is_modprobe = |line: &str| {
        let first = line.split_whitespace().next();
        first.is_some_and(|word| MODPROBE.contains(&word))
    };
    // Both kinds of lines can be told apart wherever they stand; what a shell reads keeps its lines.
    let shell: Vec<&str> = source
        .text
        .lines()
        .map(|line| if is_modprobe(line) { "" } else { line })
        .collect();
    for (at, line) in source.text.lines().enumerate() {
        if is_modprobe(line) {
            module(source, at + 1, line, notes);
        }
    }
    let mut assignments: Vec<(usize, String, String, bool)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in shell::parse(&shell.join("\n")) {
        let place = source.place(item.line);
        match item.kind {
            Kind::Assignment {
                name,
                value,
                expansions,
            } => {
                let new = (item.line, name, value, !expansions.is_empty());
                let Some(at) = places.insert(new.1.clone(), assignments.len()) else {
                    assignments.push(new);
                    continue;
                };
                places.insert(new.1.clone(), at);
                if let Some(known) = assignments.get_mut(at) {
                    let before = source.place(known.0);
                    let entry = Entry {
                        place: &before,
                        key: &known.1,
                        value: "",
                    };
                    notes.lose(entry, format!("line {} sets it again", item.line));
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
    let cm = assignments
        .iter()
        .find(|(_, name, ..)| name == "SET_IPOIB_CM");
    let is_connected = cm.is_some_and(|(_, _, value, _)| spelling::switch(value) == Ok(true));
    for (line, name, value, needs_shell) in &assignments {
        let place = source.place(*line);
        let entry = Entry {
            place: &place,
            key: name,
            value,
        };
        match name.as_str() {
            _ if *needs_shell => {
                notes.lose(
                    entry,
                    "its value takes a shell to know, and nothing is evaluated",
                );
            }
            "SET_IPOIB_CM" if value == "auto" => {
                notes.lose(entry, "'auto' leaves the mode to the driver");
            }
            "IPOIB_MTU" if !is_connected => {
                notes.lose(entry, "openibd sets it together with connected mode only");
            }
            _ => {
                if let Taken::Which(what) = found.take(ROWS, entry, notes) {
                    notes.tell(entry, what, true);
                }
            }
        }
    }
    intake.found.push(found);
}

/// Notes what a line of `modprobe.d` says of IPoIB.
fn module(source: &Source, line: usize, text: &str, notes: &mut Notes) {
    let place = source.place(line);
    let mut words = text.split_whitespace();
    let is_options = words.next() == Some("options");
    let name = words.next().map(|name| name.replace('-', "_"));
    if !is_options || name.as_deref() != Some("ib_ipoib") {
        return notes.keep(&place, text.trim(), Kept::Rest);
    }
    let mut nowhere = Found::at(&place);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let entry = Entry {
            place: &place,
            key,
            value,
        };
        nowhere.take(OPTIONS, entry, notes);
    }
}
