// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces that are made and deleted by hand: children of both kinds, and a port's own one.

use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;

use super::ours;
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.child_kinds",
        "ibctl tells how a child was made, and removes both kinds",
        kinds,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED),
    Task::new(
        "batch.delete",
        "ip link del removes a child, or an interface with its children, and nothing else",
        delete,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(120),
    Task::new(
        "batch.child_refused_late",
        "a child that the kernel refuses when all of it is made leaves nothing behind",
        refused_late,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED),
    Task::new(
        "batch.looked_up",
        "the RDMA connection manager finds the interface that a request is for",
        looked_up,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "batch.virtual_functions",
        "ip link sets GUIDs and link states of virtual functions, for the HCA to keep",
        virtual_functions,
    )
    .fabric(Fabric::Managed, 2),
];

fn kinds(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    end.add_child("made", 0x8001)?;
    end.write("create_child", "0x8002")?;
    let old = format!("{}.8002", end.dev);
    for (dev, kind, via) in [("made", "netlink", 0x8001), (&old, "legacy", 0x8002)] {
        guest.same(dev, child_kind(end, dev)?.as_deref(), Some(kind))?;
        let child = child(end, dev);
        guest.same("P_Key", child.pkey()?, format!("{via:#06x}"))?;
    }
    guest.same("its file", child(end, &old).file("parent")?.as_str(), "ib0")?;
    guest.same("a port is no child", child_kind(end, &end.dev)?, None)?;
    // Either way of removing takes either kind.
    end.write("delete_child", "0x8001")?;
    end.ns.run(&format!("ip link del {old}"))?;
    for dev in ["made", &old] {
        ensure!(!is_there(end, dev)?, "{dev} is still there");
    }
    pair.ping(2, 56)
}

fn delete(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let children = pair.children(guest, "kid", 0x8001, 12)?;
    children.ping(2, 56)?;
    end.add_child("idle", 0x8002)?;
    end.ns.run("ip link del kid")?;
    ensure!(!is_there(end, "kid")?, "kid is still there");
    pair.ping(2, 56)?;
    // The same once more: nothing of it was left.
    end.add_child("kid", 0x8001)?;
    let again = Pair {
        a: End {
            dev: "kid".to_owned(),
            ..children.a.clone()
        },
        b: children.b.clone(),
    };
    again.a.bring_up()?;
    again.wait_ready(guest)?;
    again.ping(2, 56)?;

    end.ns.run(&format!("ip link del {}", end.dev))?;
    for dev in [end.dev.as_str(), "kid", "idle"] {
        ensure!(!is_there(end, dev)?, "{dev} outlived {}", end.dev);
    }
    for dev in [pair.b.dev.as_str(), "kid"] {
        ensure!(
            is_there(&pair.b, dev)?,
            "{dev} of the other HCA is gone, too"
        );
    }
    // Loaded again, the driver makes it again.
    guest.unload("ipoib_batch")?;
    for name in ["a", "b"] {
        guest.run(&format!("ip netns del {name}"))?;
    }
    guest.load("ipoib_batch")?;
    Pair::of_loaded(guest, Mode::Datagram)?.ping(2, 56)
}

/// A name that another interface has is found out early; a name that sysfs has for something else only when queues, pollers
/// and counters of the interface are made.
fn refused_late(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    pair.ping(2, 56)?;
    // Its file lies among the interfaces of the first namespace, and of each.
    guest.load("bonding")?;
    let objects = guest.run("rdma resource show")?;
    for _ in 0..3 {
        let line = format!(
            "ip link add link {} name bonding_masters type ipoib pkey 0x8001",
            end.dev
        );
        let refused = end.ns.attempt(&line, Duration::from_secs(20))?;
        ensure!(!refused.status.success(), "{line} did not fail");
        guest.contains(&line, &refused.stderr, "File exists")?;
        end.ns
            .run(&format!("ip link add {}.8002 type dummy", end.dev))?;
        let written = end.try_write("create_child", "0x8002")?;
        ensure!(!written.status.success(), "the name is taken");
        end.ns.run(&format!("ip link del {}.8002", end.dev))?;
    }
    guest.same(
        "objects of the HCAs",
        guest.run("rdma resource show")?.as_str(),
        objects.as_str(),
    )?;
    let children = pair.children(guest, "kid", 0x8001, 12)?;
    children.ping(2, 56)?;
    end.write("create_child", "0x8002")?;
    pair.ping(2, 56)
}

/// By port and partition, and by address where these are not enough.
fn looked_up(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let ask = |question: &str, answer: &str| -> Result {
        // A space ends a parameter of modprobe, but within quotes.
        guest.write(
            "/tmp/ask.sh",
            &format!("exec modprobe vhca_selftest lookup='\"{question}\"'"),
        )?;
        guest.run("sh /tmp/ask.sh")?;
        guest.unload("vhca_selftest")?;
        let log = guest.run("dmesg")?;
        let line = format!("vhca_selftest: lookup {question}: ");
        let found = log.lines().rev().find_map(|said| said.split_once(&line));
        let found = found.map(|(_, name)| name.trim().to_owned());
        guest.same(question, found.as_deref(), Some(answer))
    };
    ask(&format!("0 0xffff {}", end.v4), "ib0")?;
    ask(&format!("1 0x7fff {}", pair.b.v4), "ib1")?;
    // The only one of its partition, whatever the address.
    ask("0 0xffff 192.0.2.1", "ib0")?;
    ask("0 0x8001 192.0.2.1", "none")?;
    end.add_child("kid", 0x8001)?;
    end.add_child("twin", 0xffff)?;
    for (dev, address) in [("kid", "10.81.0.1/24"), ("twin", "10.82.0.1/24")] {
        end.ns.run(&format!("ip addr add {address} dev {dev}"))?;
        end.ns.run(&format!("ip link set {dev} up"))?;
    }
    ask("0 0x8001 10.81.0.1", "kid")?;
    // Two of one partition, in another namespace than that of the asker.
    ask("0 0xffff 10.82.0.1", "twin")?;
    ask(&format!("0 0xffff {}", end.v4), "ib0")?;
    ask(&format!("0 0xffff {}", end.v6), "ib0")?;
    ask("0 0xffff 192.0.2.1", "none")?;
    end.ns.run("ip addr del 10.82.0.1/24 dev twin")?;
    ask("0 0xffff 10.82.0.1", "none")?;
    pair.ping(2, 56)
}

fn virtual_functions(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    for line in [
        "vf 0 node_guid 00:11:22:33:44:55:66:77",
        "vf 0 port_guid 00:11:22:33:44:55:66:78",
        "vf 1 state enable",
    ] {
        end.ns.run(&format!("ip link set {} {line}", end.dev))?;
    }
    guest.same(
        "what the HCA has",
        guest.read("/sys/kernel/debug/vhca/vhca0/vfs")?.trim(),
        "0 node 0011223344556677 port 0011223344556678 state 0\n\
         1 node 0000000000000000 port 0000000000000000 state 1",
    )?;
    end.add_child("kid", 0x8001)?;
    for (dev, vf, why) in [
        (end.dev.as_str(), 2, "Invalid argument"),
        ("kid", 0, "Operation not supported"),
    ] {
        let line = format!("ip link set {dev} vf {vf} state enable");
        let refused = end.ns.attempt(&line, Duration::from_secs(20))?;
        guest.contains(&line, &refused.stderr, why)?;
    }
    pair.ping(2, 56)
}

fn child(parent: &End, dev: &str) -> End {
    End {
        dev: dev.to_owned(),
        ..parent.clone()
    }
}

fn is_there(end: &End, dev: &str) -> Result<bool> {
    Ok(end
        .ns
        .run("ip -br link")?
        .lines()
        .any(|line| line.split(['@', ' ']).next() == Some(dev)))
}

/// Returns what ibctl tells of how a child was made.
fn child_kind(end: &End, dev: &str) -> Result<Option<String>> {
    let text = end.ns.run(&format!("ibctl -o json show {dev}"))?;
    let json: Value = serde_json::from_str(&text)?;
    let link = json.pointer("/links/0").unwrap_or(&json);
    ensure!(
        link.get("name").and_then(Value::as_str) == Some(dev),
        "ibctl does not show {dev}:\n{text}"
    );
    let kind = link.get("child-kind").and_then(Value::as_str);
    Ok(kind.map(str::to_owned))
}
