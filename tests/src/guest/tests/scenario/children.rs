// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Child interfaces: of another partition, and of the parent's own.

use std::time::Duration;

use super::Setup;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::{Guest, Result};

pub(super) fn other_pkey(guest: &Guest, setup: Setup) -> Result {
    let parents = setup.pair(guest)?;
    let children = children(guest, setup, &parents, ("c8001", 0x8001, 10))?;
    for end in [&children.a, &children.b] {
        guest.same("P_Key", end.pkey()?.as_str(), "0x8001")?;
    }
    exchange(setup, &children)?;
    // Partitions are kept apart: same subnet, other partition, no answer.
    for (end, name, pkey, host) in [
        (&parents.a, "c8002", 0x8002, 1),
        (&parents.b, "c8003", 0x8003, 2),
    ] {
        end.add_child(name, pkey)?;
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

pub(super) fn same_pkey(guest: &Guest, setup: Setup) -> Result {
    let parents = setup.pair(guest)?;
    let children = children(guest, setup, &parents, ("csame", 0xffff, 11))?;
    for end in [&children.a, &children.b] {
        guest.same("P_Key", end.pkey()?.as_str(), "0xffff")?;
    }
    exchange(setup, &children)?;
    parents.ping(3, 56)
}

pub(super) fn follow(guest: &Guest, setup: Setup) -> Result {
    let parents = setup.pair(guest)?;
    let children = children(guest, setup, &parents, ("cfollow", 0x8001, 12))?;
    for (parent, child) in [(&parents.a, &children.a), (&parents.b, &children.b)] {
        parent.ns.run(&format!("ip link set {} down", parent.dev))?;
        guest.same("up, with its parent down", child.is_up()?, false)?;
        parent.bring_up()?;
        guest.same("up, with its parent up", child.is_up()?, true)?;
        // IPv6 addresses went with the link.
        child.bring_up()?;
        parents.wait_ready(guest)?;
        children.wait_ready(guest)?;
        children.ping(2, 56)?;
    }
    // One that is taken down by itself leaves its parent alone.
    let (parent, child) = (&parents.a, &children.a);
    child.ns.run(&format!("ip link set {} down", child.dev))?;
    guest.same("parent up, with its child down", parent.is_up()?, true)?;
    parents.ping(2, 56)
}

/// Makes children by name, P_Key and subnet; they get the set-up's mode.
fn children(
    guest: &Guest,
    setup: Setup,
    parents: &Pair,
    (name, pkey, subnet): (&str, u16, u8),
) -> Result<Pair> {
    let children = parents.children(guest, name, pkey, subnet)?;
    if setup.mode == Mode::Connected {
        for end in [&children.a, &children.b] {
            end.set_mode(Mode::Connected)?;
            end.bring_up()?;
        }
        children.wait_ready(guest)?;
    }
    Ok(children)
}

fn exchange(setup: Setup, pair: &Pair) -> Result {
    pair.ping(5, 56)?;
    pair.ping(
        3,
        match setup.mode {
            Mode::Datagram => 8000,
            Mode::Connected => 60000,
        },
    )
}
