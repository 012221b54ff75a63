// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Directed routes through the virtual switch (IBA 14.2.2), and routes by LID.

use anyhow::{Context, ensure};

use super::{ANSWER, NEIGHBOUR, SILENCE, SWITCH, get, port_hex, smp};
use crate::guest::task::{Fabric, Task};
use crate::guest::umad::{Class, Mad, Umad, method};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "mad.routes_directed",
        "an SMP reaches each node by its path, and nothing by a wrong one",
        directed,
    )
    .fabric(Fabric::Managed, 3),
    Task::new("mad.routes_lid", "SMPs are routed by LID, too", by_lid).fabric(Fabric::Managed, 2),
    Task::new(
        "mad.routes_mixed",
        "a route by LID goes on as a directed one",
        mixed,
    )
    .fabric(Fabric::Managed, 2),
];

fn node_guid(umad: &mut Umad, path: &[u8]) -> Result<u64> {
    Ok(get(umad, path, smp::NODE_INFO, 0)?.u64(12))
}

fn directed(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut umad = Umad::open("vhca0", Class::SubnDirected)?;
    let own = node_guid(&mut umad, &[])?;
    let switch = node_guid(&mut umad, SWITCH)?;
    let other = node_guid(&mut umad, NEIGHBOUR)?;
    guest.same("the way back", node_guid(&mut umad, &[1, 1])?, own)?;
    let third = node_guid(&mut umad, &[1, 3])?;
    ensure!(
        third != other && third != switch,
        "port 3 leads to {third:x}"
    );
    // Not there, the switch itself, further than an HCA reaches, and longer than a path can be.
    let long = [1; 63];
    for path in [&[1, 4][..], &[1, 0], &[1, 255], &[1, 2, 1], &long] {
        let request = Mad::directed(method::GET, smp::NODE_INFO, 0, path);
        let answer = umad.route(&request, SILENCE)?;
        ensure!(answer.is_none(), "path {path:?} leads somewhere");
    }
    guest.vhca(1).fault("port", "down")?;
    let request = Mad::directed(method::GET, smp::NODE_INFO, 0, NEIGHBOUR);
    ensure!(
        umad.route(&request, SILENCE)?.is_none(),
        "an SMP crossed a link that is down"
    );
    let info = get(&mut umad, SWITCH, smp::PORT_INFO, 2)?;
    guest.same("state without a link", info.data()[32] & 0xf, 1)?;
    guest.vhca(1).fault("port", "up")?;
    guest.same("after it came up", node_guid(&mut umad, NEIGHBOUR)?, other)
}

fn by_lid(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut directed = Umad::open("vhca0", Class::SubnDirected)?;
    let mut umad = Umad::open("vhca0", Class::SubnLid)?;
    let switch_lid = get(&mut directed, SWITCH, smp::PORT_INFO, 0)?.u16(16);
    let request = Mad::new(Class::SubnLid, method::GET, smp::NODE_INFO, 0);
    for (lid, path) in [
        (port_hex(guest, 0, "lid")?, &[][..]),
        (port_hex(guest, 1, "lid")?, NEIGHBOUR),
        (switch_lid, SWITCH),
    ] {
        let answer = umad
            .ask(&request, lid, ANSWER)?
            .with_context(|| format!("LID {lid} doesn't answer"))?;
        let guid = node_guid(&mut directed, path)?;
        guest.same("GUID by LID and by path", answer.u64(12), guid)?;
    }
    ensure!(
        umad.ask(&request, 0x1234, SILENCE)?.is_none(),
        "a LID that nobody has answers"
    );
    Ok(())
}

fn mixed(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut umad = Umad::open("vhca0", Class::SubnDirected)?;
    let switch_lid = get(&mut umad, SWITCH, smp::PORT_INFO, 0)?.u16(16);
    let own_lid = port_hex(guest, 0, "lid")?;
    let request = Mad::directed(method::GET, smp::NODE_INFO, 0, &[2]).from_lid(own_lid);
    let answer = umad
        .ask(&request, switch_lid, ANSWER)?
        .context("no answer by LID and port")?;
    let guid = node_guid(&mut umad, NEIGHBOUR)?;
    guest.same("GUID behind port 2 of the LID", answer.u64(12), guid)
}
