// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Child interfaces: of another partition, and of the parent's own.

use std::time::Duration;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "stock.pkey_child",
        "children of partition 0x8001 talk",
        pkey_child,
    )
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
    Task::new(
        "stock.pkey_child_opensm",
        "the same, partition made by opensm",
        pkey_child,
    )
    .fabric(Fabric::OpenSm, 2)
    .allow(KNOWN),
    Task::new(
        "stock.same_pkey_child",
        "children of the parent's partition talk",
        same_pkey_child,
    )
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
    Task::new(
        "stock.pkey_child_connected",
        "children in connected mode",
        connected_child,
    )
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
];

fn pkey_child(guest: &mut Guest) -> Result {
    let parents = Pair::stock(guest, Mode::Datagram)?;
    let children = parents.children(guest, "c8001", 0x8001, 10)?;
    for end in [&children.a, &children.b] {
        guest.same(
            "P_Key",
            end.detail("linkinfo/info_data/key")?.as_str(),
            "0x8001",
        )?;
    }
    children.ping(5, 56)?;
    children.ping(3, 8000)?;
    // Partitions are kept apart: same subnet, other partition, no answer.
    for (end, name, pkey, host) in [
        (&parents.a, "c8002", "0x8002", 1),
        (&parents.b, "c8003", "0x8003", 2),
    ] {
        end.ns.run(&format!(
            "ip link add link {} name {name} type ipoib pkey {pkey}",
            end.dev
        ))?;
        end.ns
            .run(&format!("ip addr add 10.13.0.{host}/24 dev {name}"))?;
        end.ns.run(&format!("ip link set {name} up"))?;
    }
    let astray = "ping -n -c 2 -W 2 -I c8002 10.13.0.2";
    parents
        .a
        .ns
        .attempt(astray, Duration::from_secs(10))?
        .refused()?;
    parents.ping(3, 56)?;
    for end in [&children.a, &children.b] {
        end.ns.run(&format!("ip link del {}", end.dev))?;
    }
    parents.ping(3, 56)
}

fn same_pkey_child(guest: &mut Guest) -> Result {
    let parents = Pair::stock(guest, Mode::Datagram)?;
    let children = parents.children(guest, "csame", 0xffff, 11)?;
    for end in [&children.a, &children.b] {
        guest.same(
            "P_Key",
            end.detail("linkinfo/info_data/key")?.as_str(),
            "0xffff",
        )?;
    }
    children.ping(5, 56)?;
    children.ping(3, 8000)?;
    parents.ping(3, 56)
}

fn connected_child(guest: &mut Guest) -> Result {
    let parents = Pair::stock(guest, Mode::Datagram)?;
    let children = parents.children(guest, "c8002", 0x8002, 12)?;
    for end in [&children.a, &children.b] {
        end.set_mode(Mode::Connected)?;
        end.bring_up()?;
    }
    children.wait_ready(guest)?;
    children.ping(5, 56)?;
    children.ping(3, 60000)?;
    parents.ping(3, 56)
}
