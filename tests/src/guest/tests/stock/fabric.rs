// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stock tools and modules see virtual HCAs as they see real ones.

use anyhow::ensure;

use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "stock.ports_active",
        "ports come up by themselves in managed mode",
        ports,
    )
    .fabric(Fabric::Managed, 4),
    Task::new(
        "stock.ports_active_opensm",
        "opensm brings four ports up",
        ports,
    )
    .fabric(Fabric::OpenSm, 4),
    Task::new(
        "stock.tools",
        "ibstat, saquery and ibv_devinfo see a managed fabric",
        tools,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "stock.tools_opensm",
        "ibstat, saquery and ibv_devinfo see opensm's fabric",
        sm_tools,
    )
    .fabric(Fabric::OpenSm, 2),
];

/// The runner has waited for ACTIVE already; here is the rest of a port.
fn ports(guest: &mut Guest) -> Result {
    let mut lids = Vec::new();
    for index in 0..4 {
        let port = format!("/sys/class/infiniband/vhca{index}/ports/1");
        guest.same(
            "port state",
            guest.read(format!("{port}/state"))?.as_str(),
            "4: ACTIVE",
        )?;
        guest.same(
            "link layer",
            guest.read(format!("{port}/link_layer"))?.as_str(),
            "InfiniBand",
        )?;
        let physical = guest.read(format!("{port}/phys_state"))?;
        guest.same("physical state", physical.as_str(), "5: LinkUp")?;
        let number = |name: &str| -> Result<u16> {
            let text = guest.read(format!("{port}/{name}"))?;
            Ok(u16::from_str_radix(text.trim_start_matches("0x"), 16)?)
        };
        let (lid, sm_lid) = (number("lid")?, number("sm_lid")?);
        ensure!(
            (1..0xc000).contains(&lid),
            "vhca{index} has LID {lid:#x}, not a unicast LID"
        );
        ensure!(sm_lid != 0, "vhca{index} knows no subnet manager");
        lids.push(lid);
        let gid = guest.read(format!("{port}/gids/0"))?;
        ensure!(
            gid.starts_with("fe80:0000:0000:0000:"),
            "vhca{index} has GID {gid}"
        );
        guest.same(
            "P_Key 0",
            guest.read(format!("{port}/pkeys/0"))?.as_str(),
            "0xffff",
        )?;
    }
    lids.sort_unstable();
    lids.dedup();
    guest.same("different LIDs", lids.len(), 4)
}

fn tools(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    guest.load("ib_uverbs")?;
    let ibstat = guest.run("ibstat")?;
    for hca in ["vhca0", "vhca1"] {
        guest.contains("ibstat", &ibstat, &format!("CA '{hca}'"))?;
    }
    guest.same(
        "active ports of ibstat",
        ibstat.matches("State: Active").count(),
        2,
    )?;
    guest.same(
        "links up of ibstat",
        ibstat.matches("Physical state: LinkUp").count(),
        2,
    )?;
    guest.same(
        "layers of ibstat",
        ibstat.matches("Link layer: InfiniBand").count(),
        2,
    )?;
    for (index, hca) in ["vhca0", "vhca1"].iter().enumerate() {
        let info = guest.run(&format!("ibv_devinfo -d {hca}"))?;
        for part in [*hca, "PORT_ACTIVE", "InfiniBand"] {
            guest.contains("ibv_devinfo", &info, part)?;
        }
        // From each to the other: what IPoIB asks for each neighbour.
        let lids = [lid(guest, index)?, lid(guest, 1 - index)?];
        let line = format!("saquery -C {hca} -p --src-to-dst {}:{}", lids[0], lids[1]);
        let path = guest.run(&line)?;
        guest.contains("saquery's path", &path, "PathRecord")?;
        guest.contains(
            "saquery's path",
            &path,
            &format!("dlid....................{}", lids[1]),
        )?;
    }
    Ok(())
}

fn lid(guest: &Guest, index: usize) -> Result<u16> {
    let text = guest.read(format!("/sys/class/infiniband/vhca{index}/ports/1/lid"))?;
    Ok(u16::from_str_radix(text.trim_start_matches("0x"), 16)?)
}

fn sm_tools(guest: &mut Guest) -> Result {
    tools(guest)?;
    let nodes = guest.run("saquery -C vhca0 -N")?;
    guest.same(
        "HCAs in the SA",
        nodes.matches("Channel Adapter").count(),
        2,
    )?;
    guest.same("switches in the SA", nodes.matches("Switch").count(), 1)?;
    let groups = guest.run("saquery -C vhca0 -g")?;
    guest.contains("the multicast groups", &groups, "ff12:401b:ffff::ffff:ffff")?;
    let net = guest.run("ibnetdiscover")?;
    guest.contains("ibnetdiscover", &net, "Switch")?;
    let links = guest.run("iblinkinfo")?;
    guest.contains("iblinkinfo", &links, "Active/  LinkUp")
}
