// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames on the cable, byte by byte: RFC 4391 (encapsulation, addresses, ARP, ND) and RFC 4392.

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::{Drivers, Setup};
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::tap::Frame;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

macro_rules! test {
    ($name:literal, $setup:expr) => {{
        const SETUP: Setup = $setup;
        SETUP.task(
            Task::new(
                $name,
                "frames on the cable are RFC 4391's, byte by byte",
                |guest| format(guest, SETUP),
            )
            .fabric(Fabric::Managed, 2),
        )
    }};
}

/// The tests: of datagram mode only, connections have no such headers.
pub(super) const TESTS: &[Task] = &[
    test!(
        "stock.wire_format",
        Setup::usual(Drivers::Stock, Mode::Datagram)
    ),
    test!(
        "batch.wire_format",
        Setup::usual(Drivers::Ours, Mode::Datagram)
    ),
    test!(
        "batch_to_stock.wire_format",
        Setup::usual(Drivers::OursToStock, Mode::Datagram)
    )
    .long_only(true),
    test!(
        "stock_to_batch.wire_format",
        Setup::usual(Drivers::StockToOurs, Mode::Datagram)
    )
    .long_only(true),
    test!(
        "sid.batch_wire_format",
        Setup::sid(Drivers::Ours, Mode::Datagram)
    )
    .long_only(true),
];

/// Queue pair of multicast packets (IBA 9.6.1.5).
const MULTICAST_QPN: u32 = 0x00ff_ffff;

/// Q_Key of the managed fabric's broadcast groups, and so of the partition (RFC 4391, 5).
const QKEY: u32 = 0x0b1b;

/// P_Key of the default partition, full member.
const PKEY: u16 = 0xffff;

/// What the frames of one end must carry.
struct Side {
    lid: u16,
    gid: [u8; 16],
    address: [u8; 20],
    v4: [u8; 4],
    v6: [u8; 16],
}

impl Side {
    fn of(guest: &Guest, index: usize, end: &End) -> Result<Self> {
        let port = format!("/sys/class/infiniband/vhca{index}/ports/1");
        let lid = guest.read(format!("{port}/lid"))?;
        let gid: std::net::Ipv6Addr = guest.read(format!("{port}/gids/0"))?.parse()?;
        Ok(Self {
            lid: u16::from_str_radix(lid.trim_start_matches("0x"), 16)?,
            gid: gid.octets(),
            address: end.address()?,
            v4: end.v4.parse::<std::net::Ipv4Addr>()?.octets(),
            v6: end.v6.parse::<std::net::Ipv6Addr>()?.octets(),
        })
    }

    fn qpn(&self) -> u32 {
        let [_, high, mid, low, ..] = self.address;
        u32::from_be_bytes([0, high, mid, low])
    }
}

fn format(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    let a = Side::of(guest, 0, &pair.a)?;
    let b = Side::of(guest, 1, &pair.b)?;
    addresses(guest, &pair, &[&a, &b])?;
    let frames = traffic(guest, &pair)?;
    let mut told = String::new();
    for (from, list) in ["a", "b"].iter().zip(&frames) {
        for frame in list {
            told.push_str(&format!("{from} {frame:x?}\n"));
        }
    }
    guest.keep("frames.txt", told.as_bytes());
    arp(guest, &frames, &a, &b)?;
    neighbour_discovery(guest, &frames, &a, &b)?;
    let [from_a, from_b] = &frames;
    for (list, from, to) in [(from_a, &a, &b), (from_b, &b, &a)] {
        let echo = |frame: &&Frame| unicast_of(frame, 0x0800) && frame.payload.get(13) == Some(&1);
        let frame = list.iter().find(echo).context("no ICMP packet")?;
        unicast(guest, "ICMP", frame, from, to)?;
        let length = frame.payload.get(6..8).context("no IP header")?;
        let told = usize::from(u16::from_be_bytes([length[0], length[1]]));
        guest.same(
            "IP length behind the 4-byte header",
            told,
            frame.payload.len() - 4,
        )?;
    }
    multicast_packet(guest, from_a, &a)
}

/// Both link-layer addresses: flags, QPN, GID; and the broadcast one (RFC 4391, 4 and 9.1.1).
fn addresses(guest: &Guest, pair: &Pair, sides: &[&Side; 2]) -> Result {
    for (end, side) in [&pair.a, &pair.b].iter().zip(sides) {
        let [flags, _, _, _, gid @ ..] = side.address;
        // Only the bit of RFC 4755 (takes connections) may be set.
        guest.same("flags of the address", flags & 0x7f, 0)?;
        guest.same("GID of the address", gid, side.gid)?;
        let known = guest.read("/sys/kernel/debug/vhca/vhca0/qps")?
            + &guest.read("/sys/kernel/debug/vhca/vhca1/qps")?;
        guest.contains(
            "the HCAs' queue pairs",
            &known,
            &format!("{} UD", side.qpn()),
        )?;
        guest.same(
            "broadcast address",
            end.detail("broadcast")?.as_str(),
            "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff",
        )?;
    }
    Ok(())
}

/// Lets each kind of packet leave, and returns what left the two HCAs.
fn traffic(guest: &Guest, pair: &Pair) -> Result<[Vec<Frame>; 2]> {
    for end in [&pair.a, &pair.b] {
        end.ns.run(&format!("ip neigh flush dev {}", end.dev))?;
        end.ns
            .run(&format!("ip route add 224.0.0.0/4 dev {}", end.dev))?;
    }
    for hca in 0..2 {
        guest.vhca(hca).capture(512)?;
    }
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        from.ping(to, &to.v4, 2, 56)?;
        from.ping(to, &to.v6, 2, 56)?;
    }
    let socket = pair
        .a
        .ns
        .enter(|| UdpSocket::bind((pair.a.v4.as_str(), 0)))??;
    guest.wait_for(
        "multicast packet on the cable",
        Duration::from_secs(20),
        || {
            socket.send_to(b"wire", "239.9.8.7:5000")?;
            let frames = guest.vhca(0).captured()?;
            Ok(frames.iter().any(to_group).then_some(()))
        },
    )?;
    Ok([guest.vhca(0).captured()?, guest.vhca(1).captured()?])
}

/// MGID of an IPv4 group in the default partition, scope link-local (RFC 4391, 4).
const GROUP: [u8; 16] = [
    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x0f, 9, 8, 7,
];

const BROADCAST: [u8; 16] = [
    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
];

fn to_group(frame: &Frame) -> bool {
    frame.gids().is_some_and(|(_, to)| to == GROUP)
}

fn unicast_of(frame: &Frame, ether_type: u16) -> bool {
    frame.dst_qpn != MULTICAST_QPN && frame.payload.starts_with(&ether_type.to_be_bytes())
}

/// Checks the transport headers of a packet to one queue pair, and the encapsulation's reserved bits.
fn unicast(guest: &Guest, what: &str, frame: &Frame, from: &Side, to: &Side) -> Result {
    let say = |field: &str| format!("{field} of a unicast {what} packet");
    guest.same(&say("SLID"), frame.slid, from.lid)?;
    guest.same(&say("DLID"), frame.dlid, to.lid)?;
    guest.same(&say("destination QPN"), frame.dst_qpn, to.qpn())?;
    keys(guest, what, frame, from)
}

fn keys(guest: &Guest, what: &str, frame: &Frame, from: &Side) -> Result {
    let say = |field: &str| format!("{field} of a {what} packet");
    guest.same(&say("source QPN"), frame.src_qpn, from.qpn())?;
    guest.same(&say("Q_Key"), frame.qkey, QKEY)?;
    guest.same(&say("P_Key"), frame.pkey, PKEY)?;
    guest.same(
        &say("reserved bits"),
        frame.payload.get(2..4),
        Some(&[0, 0][..]),
    )
}

/// Checks the headers of a packet to a group: GRH (IBA 8.3), multicast LID and queue pair.
fn multicast(guest: &Guest, what: &str, frame: &Frame, from: &Side, mgid: [u8; 16]) -> Result {
    let say = |field: &str| format!("{field} of a multicast {what} packet");
    ensure!(
        (0xc000..0xffff).contains(&frame.dlid),
        "{what} goes to LID {:#x}",
        frame.dlid
    );
    guest.same(&say("SLID"), frame.slid, from.lid)?;
    guest.same(&say("destination QPN"), frame.dst_qpn, MULTICAST_QPN)?;
    guest.same(&say("GIDs"), frame.gids(), Some((from.gid, mgid)))?;
    let grh = frame.grh.context("no GRH")?;
    guest.same(&say("IP version"), grh[0] >> 4, 6)?;
    guest.same(&say("next header"), grh[6], 0x1b)?;
    keys(guest, what, frame, from)
}

/// ARP as RFC 4391, 9.1.1 lays it out: hardware type 32, 20-byte addresses.
fn arp(guest: &Guest, frames: &[Vec<Frame>; 2], a: &Side, b: &Side) -> Result {
    let [from_a, from_b] = frames;
    let packet = |operation: u8, from: &Side, to: &Side, hardware: [u8; 20]| {
        let mut bytes = vec![8, 6, 0, 0, 0, 32, 8, 0, 20, 4, 0, operation];
        bytes.extend(from.address);
        bytes.extend(from.v4);
        bytes.extend(hardware);
        bytes.extend(to.v4);
        bytes
    };
    let request = packet(1, a, b, [0; 20]);
    let found = from_a
        .iter()
        .find(|frame| frame.dst_qpn == MULTICAST_QPN && frame.payload.starts_with(&[8, 6]));
    let found = found.context("no ARP request")?;
    guest.same("ARP request", &found.payload, &request)?;
    multicast(guest, "ARP", found, a, BROADCAST)?;
    let reply = packet(2, b, a, a.address);
    let found = from_b.iter().find(|frame| unicast_of(frame, 0x0806));
    let found = found.context("no ARP reply")?;
    guest.same("ARP reply", &found.payload, &reply)?;
    unicast(guest, "ARP", found, b, a)
}

/// Neighbour discovery: link-layer address options of 24 bytes (RFC 4391, 9.3), and the MGID of a
/// solicited-node group.
fn neighbour_discovery(guest: &Guest, frames: &[Vec<Frame>; 2], a: &Side, b: &Side) -> Result {
    let [from_a, from_b] = frames;
    let option = |kind: u8, side: &Side| {
        let mut bytes = vec![kind, 3, 0, 0];
        bytes.extend(side.address);
        bytes
    };
    let is = |frame: &&Frame, kind: u8| {
        frame.payload.starts_with(&[0x86, 0xdd]) && frame.payload.get(44) == Some(&kind)
    };
    let asks_for_b = |frame: &&Frame| is(frame, 135) && frame.payload.get(52..68) == Some(&b.v6);
    let asked = from_a
        .iter()
        .find(|frame| frame.dst_qpn == MULTICAST_QPN && asks_for_b(frame));
    let asked = asked.context("no neighbour solicitation")?;
    let mgid = [
        0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, b.v6[13], b.v6[14], b.v6[15],
    ];
    multicast(guest, "neighbour solicitation", asked, a, mgid)?;
    guest.same(
        "option of a neighbour solicitation",
        asked.payload.get(68..),
        Some(option(1, a).as_slice()),
    )?;
    // One that nobody asked for goes to all, for instance after an interface came up.
    let told = from_b.iter().find(|frame| {
        frame.dst_qpn != MULTICAST_QPN && is(frame, 136) && frame.payload.get(52..68) == Some(&b.v6)
    });
    let told = told.context("no neighbour advertisement")?;
    unicast(guest, "neighbour advertisement", told, b, a)?;
    guest.same(
        "option of a neighbour advertisement",
        told.payload.get(68..),
        Some(option(2, b).as_slice()),
    )
}

/// A packet to an IPv4 group: encapsulation, IP header, and the group's MGID.
fn multicast_packet(guest: &Guest, frames: &[Frame], a: &Side) -> Result {
    let frame = frames.iter().find(|frame| to_group(frame));
    let frame = frame.context("no packet to 239.9.8.7")?;
    multicast(guest, "IPv4", frame, a, GROUP)?;
    guest.same(
        "encapsulation and version",
        frame.payload.get(..5),
        Some(&[8, 0, 0, 0, 0x45][..]),
    )?;
    guest.same(
        "addresses",
        frame.payload.get(16..24),
        Some(&[a.v4[0], a.v4[1], a.v4[2], a.v4[3], 239, 9, 8, 7][..]),
    )?;
    guest.same("data", frame.payload.get(32..), Some(&b"wire"[..]))
}
