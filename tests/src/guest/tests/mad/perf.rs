// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The performance management agents: port counters of the HCAs and of the switch.

use anyhow::{Context, ensure};

use super::{ANSWER, port_hex, status};
use crate::guest::task::{Fabric, Task};
use crate::guest::umad::{Class, Mad, Umad, method};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "mad.perf_counters",
    "port counters count at both ends of a link, and are cleared by selection",
    counters,
)
.fabric(Fabric::Managed, 2)];

/// The switch's LID in managed mode.
const SWITCH_LID: u16 = 1;

/// Attributes (IBA 16.1.3).
const PORT_COUNTERS: u16 = 0x12;
const PORT_COUNTERS_EXTENDED: u16 = 0x1d;

/// Offsets in PortCountersExtended.
const XMIT_PACKETS: usize = 24;
const RCV_PACKETS: usize = 32;

fn ask(umad: &mut Umad, lid: u16, method: u8, attribute: u16, head: [u8; 4]) -> Result<Mad> {
    let mut request = Mad::new(Class::Perf, method, attribute, 0);
    request.set(0, &head);
    umad.ask(&request, lid, ANSWER)?
        .with_context(|| format!("no port counters from LID {lid}"))
}

fn counters(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut umad = Umad::open("vhca0", Class::Perf)?;
    let lid = port_hex(guest, 1, "lid")?;
    let select = |port: u8| [0, port, 0, 0];
    let mut read = |lid: u16, port: u8| {
        let head = select(port);
        ask(&mut umad, lid, method::GET, PORT_COUNTERS_EXTENDED, head)
    };
    // ib_sa of the other HCA has queries of its own at first; then only ours are counted.
    let mut sent = 0;
    guest.wait_for("counts of our MADs alone", ANSWER, || {
        let (first, second) = (read(lid, 1)?, read(lid, 1)?);
        let behind = read(SWITCH_LID, 2)?;
        sent = second.u64(XMIT_PACKETS);
        let found = (
            sent - first.u64(XMIT_PACKETS),
            second.u64(RCV_PACKETS) - first.u64(RCV_PACKETS),
            // What the HCA sent, the switch received; the second answer has crossed since.
            behind.u64(RCV_PACKETS) - sent,
        );
        ensure!(found == (1, 1, 1), "counted {found:?} instead of ones");
        Ok(Some(()))
    })?;
    let behind = read(SWITCH_LID, 2)?;
    let all = read(SWITCH_LID, 255)?;
    ensure!(
        all.u64(RCV_PACKETS) > behind.u64(RCV_PACKETS),
        "all ports received no more than port 2"
    );
    let refused = read(SWITCH_LID, 3)?;
    guest.same("port 3 of 2", refused.status(), status::BAD_VALUE)?;

    guest.vhca(1).fault("port", "down")?;
    guest.vhca(1).fault("port", "up")?;
    let downs = |umad: &mut Umad, lid, port| -> Result<u8> {
        Ok(ask(umad, lid, method::GET, PORT_COUNTERS, select(port))?.data()[7])
    };
    guest.same("links down, HCA", downs(&mut umad, lid, 1)?, 1)?;
    guest.same("links down, switch", downs(&mut umad, SWITCH_LID, 2)?, 1)?;
    // LinkDowned alone is selected: the packets stay.
    let cleared = ask(&mut umad, lid, method::SET, PORT_COUNTERS, [0, 1, 0, 4])?;
    guest.same("links down, cleared", cleared.data()[7], 0)?;
    ensure!(
        u64::from(cleared.u32(32)) > sent,
        "the packets were cleared, too"
    );
    guest.same("links down, switch", downs(&mut umad, SWITCH_LID, 2)?, 1)?;
    let cleared = ask(
        &mut umad,
        lid,
        method::SET,
        PORT_COUNTERS_EXTENDED,
        [0, 1, 0, 0xff],
    )?;
    guest.same("packets, cleared", cleared.u64(XMIT_PACKETS), 0)
}
