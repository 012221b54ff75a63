// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Malformed frames: each is dropped, counted by its reason, and does nothing else.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::ours;
use crate::guest::ipoib::{End, Pair};
use crate::guest::tap::Frame;
use crate::guest::task::{Fabric, Task};
use crate::guest::vhca::Stats;
use crate::guest::{Guest, Result};

/// How long a frame may take to be counted.
const LIMIT: Duration = Duration::from_secs(10);

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.malformed",
        "frames that are short, long, foreign or wrongly addressed are counted by reason",
        malformed,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.malformed_flood",
        "a flood of random frames under traffic: all are counted, traffic goes on",
        flood,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180)
    .long_limit(1800),
];

/// Who counts a frame.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// The driver, under this name; it is not a received packet.
    Driver(&'static str),
    /// The HCA, under this name; the driver never sees it.
    Hca(&'static str),
    /// The IP stack, after the driver took it as a packet: the line's and the counter's name in
    /// `/proc/net/snmp`.
    Ip(&'static str),
}

struct Case {
    name: &'static str,
    counted: Counted,
    make: fn(&mut Frame),
}

const CASES: &[Case] = &[
    case("nothing", Counted::Driver("rx_drop_short"), |frame| {
        frame.payload.clear();
    }),
    case("one byte", Counted::Driver("rx_drop_short"), |frame| {
        frame.payload.truncate(1);
    }),
    case("half a header", Counted::Driver("rx_drop_short"), |frame| {
        frame.payload.truncate(3);
    }),
    case(
        "a header alone",
        Counted::Driver("rx_drop_short"),
        |frame| {
            frame.payload.truncate(4);
        },
    ),
    case("type 0", Counted::Driver("rx_drop_ethertype"), |frame| {
        frame.payload[..2].fill(0);
    }),
    case(
        "a length for a type",
        Counted::Driver("rx_drop_ethertype"),
        |frame| {
            frame.payload[..2].copy_from_slice(&[0, 100]);
        },
    ),
    case("VLAN", Counted::Driver("rx_drop_ethertype"), |frame| {
        frame.payload[..2].copy_from_slice(&[0x81, 0]);
    }),
    case(
        "unknown type",
        Counted::Driver("rx_drop_ethertype"),
        |frame| {
            frame.payload[..2].copy_from_slice(&[0x12, 0x34]);
        },
    ),
    case(
        "longer than any buffer",
        Counted::Hca("drop_too_long"),
        |frame| {
            frame.payload.resize(2049, 0);
        },
    ),
    case("wrong Q_Key", Counted::Hca("drop_qkey"), |frame| {
        frame.qkey ^= 1
    }),
    case("Q_Key of management", Counted::Hca("drop_qkey"), |frame| {
        frame.qkey = 0x8001_0000;
    }),
    case("wrong P_Key", Counted::Hca("drop_pkey"), |frame| {
        frame.pkey = 0x8001
    }),
    case("no P_Key", Counted::Hca("drop_pkey"), |frame| {
        frame.pkey = 0
    }),
    case("nobody's queue pair", Counted::Hca("drop_no_qp"), |frame| {
        frame.dst_qpn = 0x00ab_cdef;
    }),
    case("IP version 7", Counted::Ip("InHdrErrors"), |frame| {
        frame.payload[4] = 0x75
    }),
    case(
        "IP header of 4 bytes",
        Counted::Ip("InHdrErrors"),
        |frame| frame.payload[4] = 0x41,
    ),
    case("wrong IP checksum", Counted::Ip("InHdrErrors"), |frame| {
        frame.payload[14] ^= 0xff
    }),
    case(
        "IP longer than the frame",
        Counted::Ip("InTruncatedPkts"),
        |frame| {
            frame.payload[6..8].copy_from_slice(&1000_u16.to_be_bytes());
            let sum = checksum(&frame.payload[4..24], 10);
            frame.payload[14..16].copy_from_slice(&sum.to_be_bytes());
        },
    ),
];

const fn case(name: &'static str, counted: Counted, make: fn(&mut Frame)) -> Case {
    Case {
        name,
        counted,
        make,
    }
}

/// Returns the Internet checksum (RFC 1071) of a header whose own checksum lies at `skip`.
fn checksum(header: &[u8], skip: usize) -> u16 {
    let mut sum: u32 = 0;
    for (index, pair) in header.chunks(2).enumerate() {
        if index * 2 != skip {
            sum += u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Captures an echo request from the second end to the first: a good frame to spoil.
fn good(guest: &Guest, pair: &Pair) -> Result<Frame> {
    guest.vhca(1).capture(64)?;
    pair.b.ping(&pair.a, &pair.a.v4, 1, 56)?;
    let frames = guest.vhca(1).captured()?;
    guest.vhca(1).capture(0)?;
    // ICMP, type 8.
    let is_echo = |frame: &&Frame| {
        frame.payload.starts_with(&[8, 0])
            && frame.payload.get(13) == Some(&1)
            && frame.payload.get(24) == Some(&8)
    };
    let echo = frames.iter().find(is_echo).context("no echo request")?;
    Ok(echo.clone())
}

fn malformed(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    // Nothing else shall come: no neighbour is probed, no group is asked for.
    let good = good(guest, &pair)?;
    for case in CASES {
        let mut frame = good.clone();
        (case.make)(&mut frame);
        check(guest, &pair.a, case, &frame).with_context(|| case.name)?;
    }
    let group = Case {
        name: "a group that only shares the LID",
        counted: Counted::Hca("drop_no_member"),
        make: |_| (),
    };
    check(guest, &pair.a, &group, &foreign_group(guest, &pair)?).context(group.name)?;
    reserved_bits(guest, &pair.a, &good)?;
    let counters = pair.a.counters()?;
    guest.same("restarts", counters.get("restarts")?, 0)?;
    guest.same("errors", counters.get("rx_errors")?, 0)?;
    pair.ping(3, 1000)
}

/// Captures a broadcast of the second end and gives it another group's MGID.
fn foreign_group(guest: &Guest, pair: &Pair) -> Result<Frame> {
    guest.vhca(1).capture(64)?;
    pair.b
        .ns
        .run(&format!("ip neigh flush dev {}", pair.b.dev))?;
    pair.b.ping(&pair.a, &pair.a.v4, 1, 56)?;
    let frames = guest.vhca(1).captured()?;
    guest.vhca(1).capture(0)?;
    // ARP goes to the group that both are in; others have members of their own.
    let is_arp = |frame: &&Frame| frame.payload.starts_with(&[8, 6]);
    let mut multicast = frames.iter().filter(|frame| frame.dst_qpn == 0x00ff_ffff);
    let broadcast = multicast.find(is_arp);
    let mut frame = broadcast.context("no broadcast")?.clone();
    if let Some(grh) = &mut frame.grh {
        grh[39] ^= 1;
    }
    Ok(frame)
}

/// Sends one frame three times; only its counter grows, by three.
fn check(guest: &Guest, end: &End, case: &Case, frame: &Frame) -> Result {
    let before = (end.counters()?, guest.vhca(0).stats()?, snmp(end)?);
    for _ in 0..3 {
        guest.vhca(1).inject(frame)?;
    }
    guest.wait_for("three counted frames", LIMIT, || {
        let counters = end.counters()?.since(&before.0);
        let hca = guest.vhca(0).stats()?.since(&before.1);
        let ip = snmp(end)?.since(&before.2);
        let found = match case.counted {
            Counted::Driver(name) => counters.get(name)?,
            Counted::Hca(name) => hca.get(name)?,
            Counted::Ip(name) => ip.get(name)?,
        };
        ensure!(found == 3, "{:?}: {found}", case.counted);
        let only = |grown: &Stats, part: &str, name: &str| -> Result {
            // Copies of our own broadcasts come whenever the kernel or the driver announces something.
            let others = grown.all().iter().filter(|(other, _)| {
                other.starts_with(part) && *other != name && *other != "rx_drop_own"
            });
            for (other, value) in others {
                ensure!(*value == 0, "{other} grew by {value}, too");
            }
            Ok(())
        };
        match case.counted {
            Counted::Driver(name) => {
                only(&counters, "rx_drop_", name)?;
                only(&hca, "drop_", "")?;
            }
            Counted::Hca(name) => {
                only(&counters, "rx_drop_", "")?;
                only(&hca, "drop_", name)?;
            }
            Counted::Ip(_) => {
                only(&counters, "rx_drop_", "")?;
                only(&hca, "drop_", "")?;
            }
        }
        Ok(Some(()))
    })
}

/// Receivers ignore the encapsulation's reserved bits (RFC 4391, 6).
fn reserved_bits(guest: &Guest, end: &End, good: &Frame) -> Result {
    let mut frame = good.clone();
    frame.payload[2..4].copy_from_slice(&[0xff, 0xff]);
    let before = snmp_icmp(end)?;
    guest.vhca(1).inject(&frame)?;
    guest.wait_for("echo request with reserved bits set", LIMIT, || {
        ensure!(snmp_icmp(end)? > before, "it was not received");
        Ok(Some(()))
    })
}

/// Reads the counters of IPv4.
fn snmp(end: &End) -> Result<Stats> {
    let text = end.ns.run("cat /proc/net/snmp /proc/net/netstat")?;
    let mut lines = text.lines();
    let mut pairs = String::new();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        if names.starts_with("Ip: ") || names.starts_with("IpExt: ") {
            let both = names.split(' ').zip(values.split(' ')).skip(1);
            both.for_each(|(name, value)| pairs.push_str(&format!("{name} {value}\n")));
        }
    }
    Stats::parse(&pairs)
}

fn snmp_icmp(end: &End) -> Result<u64> {
    let text = end.ns.run("cat /proc/net/snmp")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Icmp: "));
    let (names, values) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let place = names.split(' ').position(|name| name == "InEchos");
    let place = place.context("no InEchos")?;
    Ok(values.split(' ').nth(place).unwrap_or_default().parse()?)
}

/// Random frames, good transport headers; what the HCA let through is counted to the last one.
fn flood(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let good = good(guest, &pair)?;
    let load = crate::guest::traffic::flood(&pair)?;
    let rounds = if guest.long() { 50_000 } else { 2_000 };
    let mut random = File::open("/dev/urandom")?;
    for round in 0..rounds {
        let mut frame = good.clone();
        let mut dice = [0; 4];
        random.read_exact(&mut dice)?;
        let length = usize::from(u16::from_be_bytes([dice[0], dice[1]])) % 2049;
        frame.payload = vec![0; if round % 4 == 0 { length % 60 } else { length }];
        random.read_exact(&mut frame.payload)?;
        // Three in four have a type that the stack takes apart.
        let types: [&[u8]; 3] = [
            &[8, 0, 0, 0, 0x45],
            &[8, 6, 0, 0, 0, 32],
            &[0x86, 0xdd, 0, 0, 0x60],
        ];
        if let Some(head) = types.get(usize::from(dice[2] % 4)) {
            let count = head.len().min(frame.payload.len());
            frame.payload[..count].copy_from_slice(&head[..count]);
        }
        guest.vhca(1).inject(&frame)?;
    }
    drop(load);
    guest.figure("batch.malformed_flood.frames", f64::from(rounds), "1");
    pair.wait_ready(guest)?;
    guest.wait_for("every frame in a counter", LIMIT, || {
        let counters = pair.a.counters()?;
        let drops: u64 = counters
            .all()
            .iter()
            .filter(|(name, _)| name.starts_with("rx_drop_"))
            .map(|(_, value)| value)
            .sum();
        let known = drops + counters.get("rx_packets")?;
        guest.same("frames", known, guest.vhca(0).stats()?.get("rx_packets")?)?;
        guest.same(
            "packets that ip shows",
            pair.a.statistic("rx/packets")?,
            counters.get("rx_packets")?,
        )?;
        Ok(Some(()))
    })?;
    guest.same("restarts", pair.a.counters()?.get("restarts")?, 0)?;
    pair.ping(3, 1000)
}
