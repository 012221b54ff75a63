// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every fault, once, under IPoIB traffic: it hits, and traffic comes back.

use std::time::Duration;

use anyhow::Context;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Allowed, Fabric, Task};
use crate::guest::tests::stock::FLIP;
use crate::guest::{Guest, Result, traffic};

/// How long traffic may take to meet a fault.
const HIT_LIMIT: Duration = Duration::from_secs(20);

/// What the stock driver says when its CQ fails.
const WEDGED: &[Allowed] = &[Allowed {
    text: "timing out;",
    because: "stock waits 5 s for completions that a CQ in error has lost",
}];

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "vhca.faults_datagram",
        "each fault hits datagram traffic, which comes back",
        datagram,
    )
    .fabric(Fabric::Managed, 2)
    .limit(240)
    .allow(FLIP),
    Task::new(
        "vhca.faults_connected",
        "each fault hits connected traffic, which comes back",
        connected,
    )
    .fabric(Fabric::Managed, 2)
    .limit(240)
    .allow(FLIP),
    Task::new(
        "vhca.cq_overrun",
        "a CQ in error is left behind by loading the driver again",
        cq_overrun,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120)
    .allow(WEDGED),
    Task::new(
        "vhca.sa_faults",
        "opensm's SA times out and rejects for one HCA, and the link recovers",
        sa_under_opensm,
    )
    .fabric(Fabric::OpenSm, 2)
    .limit(120)
    .allow(FLIP),
];

/// One fault: its file, the counter that shows it, and the modes that meet it.
struct Fault {
    name: &'static str,
    counter: &'static str,
    modes: &'static [Mode],
}

const BOTH: &[Mode] = &[Mode::Datagram, Mode::Connected];

const FAULTS: &[Fault] = &[
    fault("loss", "drop_fault", BOTH),
    fault("duplicate", "fault_duplicates", BOTH),
    fault("reorder", "fault_reorders", BOTH),
    fault("delay", "fault_delays", BOTH),
    fault("rnr", "fault_rnr", &[Mode::Connected]),
    fault("post_send", "fault_post_send", BOTH),
    fault("post_recv", "fault_post_recv", BOTH),
    fault("cqe", "fault_cqe", BOTH),
    fault("cqe_recv", "fault_cqe", BOTH),
];

const fn fault(name: &'static str, counter: &'static str, modes: &'static [Mode]) -> Fault {
    Fault {
        name,
        counter,
        modes,
    }
}

fn datagram(guest: &mut Guest) -> Result {
    under_traffic(guest, Mode::Datagram)
}

fn connected(guest: &mut Guest) -> Result {
    under_traffic(guest, Mode::Connected)
}

fn under_traffic(guest: &Guest, mode: Mode) -> Result {
    let pair = Pair::stock(guest, mode)?;
    let _traffic = traffic::flood(&pair)?;
    for fault in FAULTS.iter().filter(|fault| fault.modes.contains(&mode)) {
        for hca in 0..2 {
            hit(guest, hca, fault)?;
            // Stock never takes a UD QP out of ERR but by taking the interface down.
            if fault.name == "cqe_recv" && mode == Mode::Datagram {
                for end in [&pair.a, &pair.b] {
                    end.ns.run(&format!("ip link set {} down", end.dev))?;
                    end.bring_up()?;
                }
            }
            pair.wait_reachable(guest)
                .with_context(|| format!("after {} on vhca{hca}", fault.name))?;
        }
    }
    change_port(guest, &pair)?;
    fail_sa(guest, &pair)
}

/// Lets a fault hit for sure, twice, and waits until it has.
fn hit(guest: &Guest, hca: u32, fault: &Fault) -> Result {
    let vhca = guest.vhca(hca);
    let before = vhca.stats()?;
    let next = format!("{}_next", fault.name);
    vhca.fault(&next, "2")?;
    guest.wait_for(
        &format!("{} on {}", fault.name, vhca.name()),
        HIT_LIMIT,
        || {
            let hits = vhca.stats()?.since(&before).get(fault.counter)?;
            Ok((hits > 0).then_some(()))
        },
    )?;
    vhca.fault(&next, "0")
}

/// What a subnet manager may change about a port.
fn change_port(guest: &Guest, pair: &Pair) -> Result {
    let (first, second) = (guest.vhca(0), guest.vhca(1));
    for (name, value) in [
        ("port", "bounce"),
        ("lid", "77"),
        ("sm_lid", "3"),
        ("gid_prefix", "0xfe80000000000001"),
        ("gid_prefix", "0xfe80000000000000"),
        ("reregister", "1"),
        ("lid", "2"),
    ] {
        first.fault(name, value)?;
        // The subnet manager would tell the neighbour that paths have changed.
        second.fault("reregister", "1")?;
        // Nobody finds a port of another subnet.
        if value != "0xfe80000000000001" {
            pair.wait_reachable(guest)
                .with_context(|| format!("after {name} {value}"))?;
        }
    }
    Ok(())
}

/// The SA first says nothing, then no.
fn fail_sa(guest: &Guest, pair: &Pair) -> Result {
    let vhca = guest.vhca(0);
    for status in ["0", "0x300"] {
        let before = vhca.stats()?;
        vhca.fault("sa_status", status)?;
        vhca.fault("sa_next", "2")?;
        vhca.fault("reregister", "1")?;
        guest.wait_for("two SA requests that fail", HIT_LIMIT, || {
            let hits = vhca.stats()?.since(&before).get("fault_sa")?;
            Ok((hits == 2).then_some(()))
        })?;
        pair.wait_reachable(guest)
            .with_context(|| format!("after SA status {status}"))?;
    }
    Ok(())
}

fn sa_under_opensm(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    fail_sa(guest, &pair)
}

fn cq_overrun(guest: &mut Guest) -> Result {
    for hca in 0..2 {
        let pair = Pair::stock(guest, Mode::Datagram)?;
        let traffic = traffic::flood(&pair)?;
        let overrun = fault("cq_overrun", "cq_overruns", BOTH);
        hit(guest, hca, &overrun)?;
        drop(traffic);
        guest.unload("ib_ipoib")?;
        for end in [&pair.a, &pair.b] {
            guest.run(&format!("ip netns del {}", end.ns.name()))?;
        }
    }
    let pair = Pair::stock(guest, Mode::Datagram)?;
    pair.ping(3, 1000)
}
