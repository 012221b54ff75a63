// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes while packets flow: cable, subnet manager, namespace, administrative state.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::Setup;
use crate::guest::ipoib::{End, Pair};
use crate::guest::netns::Netns;
use crate::guest::{Guest, Result, fabric, traffic};

/// How long a command may take that waits for what is under way.
const LIMIT: Duration = Duration::from_secs(20);

pub(super) fn port_flap(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    pair.ping(2, 56)?;
    for (hca, end, other) in [(0, &pair.a, &pair.b), (1, &pair.b, &pair.a)] {
        guest.vhca(hca).fault("port", "down")?;
        end.wait_link(guest, false)?;
        let lost = format!("ping -n -c 1 -W 1 {}", other.v4);
        end.ns.attempt(&lost, LIMIT)?.refused()?;
        guest.vhca(hca).fault("port", "up")?;
        pair.wait_ready(guest)?;
        pair.ping(2, 56)?;
        // Faster than anything can react.
        guest.vhca(hca).fault("port", "bounce")?;
        pair.wait_ready(guest)?;
        pair.ping(2, 56)?;
    }
    Ok(())
}

/// The last half of an address is a GUID of the port, and the administrator may choose which (RFC 4391, 9.1.1).
pub(super) fn address(guest: &Guest, setup: Setup) -> Result {
    const GUID: [u8; 8] = [0x02, 0xc0, 0xdd, 0x01, 0, 0, 0x0a, 0xbc];
    let pair = setup.pair(guest)?;
    let end = &pair.a;
    end.add_child("kid", 0x8001)?;
    let kid = End {
        dev: "kid".to_owned(),
        ..end.clone()
    };
    let born = end.address()?;
    let set = |address: &[u8; 20]| {
        let bytes: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("ip link set {} address {}", end.dev, bytes.join(":"));
        end.ns.attempt(&line, LIMIT)
    };
    // The in-tree driver takes one for an interface that is down only.
    end.ns.run(&format!("ip link set {} down", end.dev))?;
    // Another subnet prefix, or no GUID at all.
    let mut elsewhere = born;
    elsewhere[4] ^= 1;
    set(&elsewhere)?.refused()?;
    let mut nothing = born;
    nothing[12..].fill(0);
    set(&nothing)?.refused()?;
    guest.same("address after refusals", end.address()?, born)?;

    guest
        .vhca(0)
        .fault("guid", &format!("1 {:#x}", u64::from_be_bytes(GUID)))?;
    let mut wanted = born;
    wanted[12..].copy_from_slice(&GUID);
    set(&wanted)?.success()?;
    for one in [end, &kid] {
        guest.wait_for("the chosen GUID in the address", LIMIT, || {
            Ok((one.address()?[12..] == GUID).then_some(()))
        })?;
    }
    guest.same("the rest of the address", end.address()?, wanted)?;
    end.bring_up()?;
    pair.b
        .ns
        .run(&format!("ip neigh flush dev {}", pair.b.dev))?;
    pair.wait_ready(guest)?;
    pair.ping(3, 1000)?;
    // The peer knows it by its new name.
    let known = pair.b.ns.run(&format!("ip neigh show {}", end.v4))?;
    guest.contains("the peer's neighbour", &known, "02:c0:dd:01:00:00:0a:bc")
}

pub(super) fn sm_restart(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    let flood = traffic::flood(&pair)?;
    for _ in 0..2 {
        fabric::kill_opensm()?;
        // What is known goes on without it.
        pair.ping(3, 56)?;
        guest.start_opensm(fabric::BASE_PARTITIONS)?;
        guest.vhca(0).fault("reregister", "1")?;
        guest.vhca(1).fault("reregister", "1")?;
        pair.wait_ready(guest)?;
        pair.ping(3, 56)?;
    }
    drop(flood);
    Ok(())
}

pub(super) fn netns(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    pair.ping(2, 56)?;
    // From namespace to namespace, under traffic.
    let load = traffic::flood(&pair)?;
    let c = guest.netns("c")?;
    for (from, to) in [(&pair.a.ns, &c), (&c, &pair.a.ns)] {
        from.run(&format!("ip link set {} netns {}", pair.a.dev, to.name()))?;
        let moved = with_ns(&pair, to);
        moved.a.bring_up()?;
        moved.wait_ready(guest)?;
        moved.ping(2, 56)?;
    }
    // Its namespace goes: it comes back to the first one.
    guest.run("ip netns del c")?;
    pair.a.ns.run(&format!("ip link set {} down", pair.a.dev))?;
    drop(load);
    guest.run("ip netns del a")?;
    guest.wait_for("interface of a deleted namespace", LIMIT, || {
        let shown = guest.attempt(&format!("ip link show {}", pair.a.dev))?;
        Ok(shown.status.success().then_some(()))
    })?;
    let again = guest.netns("a")?;
    guest.run(&format!("ip link set {} netns a", pair.a.dev))?;
    let back = with_ns(&pair, &again);
    back.a.bring_up()?;
    back.wait_ready(guest)?;
    back.ping(3, 1000)
}

/// The pair with its first end in another namespace.
fn with_ns(pair: &Pair, ns: &Netns) -> Pair {
    Pair {
        a: End {
            ns: ns.clone(),
            ..pair.a.clone()
        },
        b: pair.b.clone(),
    }
}

pub(super) fn down_up(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    let rounds = if guest.long() { 40 } else { 2 };
    for round in 0..rounds {
        let mut load = traffic::start(guest, &pair)?;
        for end in [&pair.a, &pair.b] {
            end.ns.run(&format!("ip link set {} down", end.dev))?;
            if round % 2 == 1 {
                thread::sleep(Duration::from_millis(300));
            }
            end.bring_up()?;
            pair.wait_ready(guest)?;
        }
        // The connection from before is still the same, and moves.
        let before = guest.vhca(0).stats()?;
        guest.wait_for("TCP after down and up", LIMIT, || {
            let bytes = guest.vhca(0).stats()?.since(&before).get("tx_bytes")?;
            Ok((bytes > 1_000_000).then_some(()))
        })?;
        for program in &mut load {
            ensure!(
                program.is_running()?,
                "round {round}: a connection broke:\n{}",
                program.printed()
            );
        }
        drop(load);
        pair.ping(2, 1000)?;
    }
    Ok(())
}
