// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every fault of the virtual HCA under traffic, in each mode of batching: traffic comes back by
//! itself, no packet goes missing without a reason, and nothing is left behind.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::handed::Handed;
use super::ours;
use crate::guest::ipoib::{End, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::vhca::Stats;
use crate::guest::{Guest, Result, memory, traffic};
use crate::lab::machine::Shape;

/// How long traffic may take to meet a fault, and to get over it.
const LIMIT: Duration = Duration::from_secs(20);

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.faults_packets",
        "packets that are lost, doubled, late or refused: traffic comes back",
        |guest| run(guest, PACKETS),
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(300)
    .long_limit(1800),
    Task::new(
        "batch.faults_queues",
        "work requests and buffers that fail: traffic comes back",
        |guest| run(guest, QUEUES),
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(300)
    .long_limit(1800),
    Task::new(
        "batch.faults_port",
        "changes of link, LID, SM, P_Key and GID, an SA that fails: traffic comes back",
        |guest| run(guest, PORT),
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(400)
    .long_limit(2400),
    Task::new(
        "batch.faults_sa_opensm",
        "opensm's SA times out and rejects: traffic comes back",
        |guest| run(guest, SA),
    )
    .fabric(Fabric::OpenSm, 2)
    .shape(Shape::CHECKED)
    .limit(300)
    .long_limit(900),
];

/// Free buffers that the stack keeps: 64 on each of two CPUs (net/core/skbuff.c, NAPI_SKB_CACHE_SIZE), and
/// some in sockets. A receive ring that leaks is 512.
const CACHED: u64 = 160;

/// Modes of batching.
const MODES: [&str; 3] = ["off", "on", "adaptive"];

/// One fault: what is written to which files of `fault/`, in order; the counter that shows the hit;
/// and what is written afterwards.
struct Fault {
    name: &'static str,
    set: &'static [(&'static str, &'static str)],
    hit: Option<(&'static str, u64)>,
    restore: &'static [(&'static str, &'static str)],
}

const fn fault(
    name: &'static str,
    set: &'static [(&'static str, &'static str)],
    hit: (&'static str, u64),
    restore: &'static [(&'static str, &'static str)],
) -> Fault {
    Fault {
        name,
        set,
        hit: Some(hit),
        restore,
    }
}

/// An event, that no counter shows.
const fn event(
    name: &'static str,
    set: &'static [(&'static str, &'static str)],
    restore: &'static [(&'static str, &'static str)],
) -> Fault {
    Fault {
        name,
        set,
        hit: None,
        restore,
    }
}

const PACKETS: &[Fault] = &[
    fault(
        "loss",
        &[("loss", "50")],
        ("drop_fault", 20),
        &[("loss", "0")],
    ),
    fault(
        "duplication",
        &[("duplicate", "50")],
        ("fault_duplicates", 20),
        &[("duplicate", "0")],
    ),
    fault(
        "reordering",
        &[("reorder", "50")],
        ("fault_reorders", 20),
        &[("reorder", "0")],
    ),
    fault(
        "delay",
        &[("delay_us", "3000"), ("delay", "50")],
        ("fault_delays", 20),
        &[("delay", "0")],
    ),
];

const REFUSE: &[(&str, &str)] = &[("post_send_next", "0")];

const QUEUES: &[Fault] = &[
    fault(
        "post_send, first WR",
        &[("post_send_wr", "0"), ("post_send_next", "3")],
        ("send_refused", 3),
        REFUSE,
    ),
    fault(
        "post_send, second WR",
        &[("post_send_wr", "1"), ("post_send_next", "4000")],
        ("send_refused", 1),
        REFUSE,
    ),
    fault(
        "post_send, fourth WR",
        &[("post_send_wr", "3"), ("post_send_next", "4000")],
        ("send_refused", 1),
        REFUSE,
    ),
    fault(
        "post_recv",
        &[("post_recv_wr", "0"), ("post_recv_next", "40")],
        ("fault_post_recv", 40),
        &[],
    ),
    fault(
        "post_recv, third WR",
        &[("post_recv_wr", "2"), ("post_recv_next", "20")],
        ("fault_post_recv", 20),
        &[],
    ),
    fault("cqe", &[("cqe_next", "3")], ("fault_cqe", 3), &[]),
    fault("cqe_recv", &[("cqe_recv_next", "2")], ("fault_cqe", 2), &[]),
    fault(
        "CQ overrun",
        &[("cq_overrun_next", "1")],
        ("cq_overruns", 1),
        &[],
    ),
];

/// Of the peer's neighbour table, the subnet manager would take care.
const PORT: &[Fault] = &[
    event("bounce", &[("port", "bounce")], &[]),
    event("port down and up", &[("port", "down")], &[("port", "up")]),
    event("LID", &[("lid", "77")], &[("lid", "2")]),
    event("SM LID", &[("sm_lid", "3")], &[]),
    event("P_Key", &[("pkey", "0 0x8001")], &[("pkey", "0 0xffff")]),
    event(
        "GID",
        &[("gid_prefix", "0xfe80000000000001")],
        &[("gid_prefix", "0xfe80000000000000")],
    ),
    event("reregister", &[("reregister", "1")], &[]),
    fault(
        "SA timeout",
        &[("sa_status", "0"), ("sa_next", "2"), ("reregister", "1")],
        ("fault_sa", 2),
        &[],
    ),
    fault(
        "SA reject",
        &[
            ("sa_status", "0x300"),
            ("sa_next", "2"),
            ("reregister", "1"),
        ],
        ("fault_sa", 2),
        &[],
    ),
];

/// The last two, for opensm.
const SA: &[Fault] = PORT.split_at(7).1;

/// Runs faults: each once, modes and HCAs in turn; the long form each in each mode on each HCA.
fn run(guest: &Guest, faults: &[Fault]) -> Result {
    let skbs = memory::objects(guest, "skbuff_head_cache")?;
    let handed = Handed::new()?;
    let pair = ours(guest)?;
    let mut round = 0;
    for (number, fault) in faults.iter().enumerate() {
        let all: Vec<(&str, u32)> = if guest.long() {
            MODES
                .iter()
                .flat_map(|mode| [(*mode, 0), (*mode, 1)])
                .collect()
        } else {
            // A chain of several requests is there only with batching.
            let mode = if fault.name.ends_with("WR") && !fault.name.contains("first") {
                MODES[1 + number % 2]
            } else {
                MODES[number % 3]
            };
            vec![(mode, u32::try_from(number % 2)?)]
        };
        for (mode, hca) in all {
            if mode == "off"
                && fault
                    .set
                    .iter()
                    .any(|(name, value)| *name == "post_send_wr" && *value != "0")
            {
                continue;
            }
            round += 1;
            one(guest, &pair, &handed, fault, mode, hca)
                .with_context(|| format!("{} on vhca{hca}, batching={mode}", fault.name))?;
        }
    }
    guest.figure("batch.faults.rounds", f64::from(round), "1");
    nothing_left(guest, skbs)
}

fn one(guest: &Guest, pair: &Pair, handed: &Handed, fault: &Fault, mode: &str, hca: u32) -> Result {
    for end in [&pair.a, &pair.b] {
        end.ns
            .run(&format!("ibctl set {} batching={mode}", end.dev))?;
    }
    let vhca = guest.vhca(hca);
    let (from, to) = if hca == 0 {
        (&pair.a, &pair.b)
    } else {
        (&pair.b, &pair.a)
    };
    // Chains leave the HCA that has the fault, and arrive at it.
    let mut load = Vec::from(traffic::flood(pair)?);
    load.extend(traffic::iperf(guest, from, to, 5310, "")?);
    load.extend(traffic::iperf(
        guest,
        to,
        from,
        5311,
        "--udp --bitrate 4M --length 1400",
    )?);
    let before = vhca.stats()?;
    for (name, value) in fault.set {
        vhca.fault(name, value)?;
    }
    match fault.hit {
        Some((counter, wanted)) => guest.wait_for(counter, LIMIT, || {
            let hits = vhca.stats()?.since(&before).get(counter)?;
            Ok((hits >= wanted).then_some(()))
        })?,
        None => std::thread::sleep(Duration::from_millis(1500)),
    }
    for (name, value) in fault.restore {
        vhca.fault(name, value)?;
    }
    if fault.hit.is_none() {
        // The subnet manager would tell the others that paths have changed.
        guest.vhca(1 - hca).fault("reregister", "1")?;
    }
    pair.wait_ready(guest).context("afterwards")?;
    let before = vhca.stats()?;
    guest.wait_for("traffic afterwards", LIMIT, || {
        let grown = vhca.stats()?.since(&before);
        Ok((grown.get("tx_packets")? > 200 && grown.get("rx_packets")? > 200).then_some(()))
    })?;
    drop(load);
    for (end, hca) in [(&pair.a, 0), (&pair.b, 1)] {
        adds_up(guest, handed, end, hca).with_context(|| format!("counters of {}", end.dev))?;
    }
    pair.ping(2, 1000)
}

/// Once traffic is over: what the stack handed in was sent or dropped for a reason, and driver and HCA
/// agree on what was posted.
fn adds_up(guest: &Guest, handed: &Handed, end: &End, hca: u32) -> Result {
    guest.wait_for("end of what is under way", LIMIT, || {
        let handed = handed.to(&end.dev)?;
        let counters = end.counters()?;
        let get = |name: &str| counters.get(name);
        let dropped = drops(&counters);
        let done = get("tx_packets")? + dropped + get("tx_waited")?;
        ensure!(
            handed == done,
            "{handed} packets handed in; {} sent, {dropped} dropped, {} came twice: {done}\n{counters:#?}",
            get("tx_packets")?,
            get("tx_waited")?
        );
        let posted = guest.vhca(hca).stats()?;
        guest.same("WRs", posted.get("send_wrs")?, get("tx_wrs")?)?;
        for part in ["chain_", "flush_"] {
            let sum: u64 = counters
                .all()
                .iter()
                .filter(|(name, _)| name.starts_with(part))
                .map(|(_, value)| value)
                .sum();
            guest.same(part, sum, get("tx_doorbells")?)?;
        }
        // The stack counts what it drops itself with the driver's.
        let shown = end.statistic("tx/dropped")?;
        ensure!(
            shown >= dropped,
            "ip shows {shown} of {dropped} drops of the driver"
        );
        Ok(Some(()))
    })
}

/// Adds the reasons up.
fn drops(counters: &Stats) -> u64 {
    let all = counters.all().iter();
    all.filter(|(name, _)| name.starts_with("tx_drop_"))
        .map(|(_, value)| value)
        .sum()
}

/// Unloads the driver: no buffer, queue pair or other object of the HCAs is left.
fn nothing_left(guest: &Guest, skbs: u64) -> Result {
    guest.unload("ipoib_batch")?;
    for name in ["a", "b"] {
        guest.run(&format!("ip netns del {name}"))?;
    }
    for hca in 0..2 {
        let qps = guest.read(format!("/sys/kernel/debug/vhca/vhca{hca}/qps"))?;
        let left: Vec<&str> = qps.lines().filter(|line| line.contains(" UD ")).collect();
        ensure!(left.is_empty(), "queue pairs left on vhca{hca}: {left:?}");
    }
    let objects = guest.run("rdma -j resource show")?;
    let objects: Value = serde_json::from_str(&objects)?;
    for hca in objects.as_array().into_iter().flatten() {
        // The management queue pairs of ib_mad: one CQ and one PD for both.
        for (name, wanted) in [("qp", 2), ("cq", 1), ("pd", 1), ("mr", 0)] {
            let found = hca.get(name).and_then(Value::as_u64);
            ensure!(found == Some(wanted), "{name}: {found:?} left of {hca}");
        }
    }
    // Sockets and namespaces end in the background.
    guest.wait_for("return of all buffers", LIMIT, || {
        let now = memory::objects(guest, "skbuff_head_cache")?;
        ensure!(
            now <= skbs + CACHED,
            "{skbs} socket buffers before, {now} now"
        );
        Ok(Some(()))
    })
}
