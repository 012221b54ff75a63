// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibmgrd-hw` on whole hosts: P_Key children of both kinds made and removed, and events of IPoIB
//! interfaces.

use std::time::Duration;

use anyhow::{Context, ensure};
use ibmgr_api::{ChildKind, ErrorCode, LinkName, Pkey};
use ibmgrd_engine::{Host, NewChild, OldChild, Port, PortError, Query, Target};
use ibmgrd_hw::port::KernelPort;
use ibmgrd_hw::watch::{Event, Watch};

use crate::guest::task::Fabric;
use crate::guest::{Guest, Result, Task};

/// The tests.
pub const TESTS: &[Task] = &[
    Task::new(
        "host.children",
        "both kinds of P_Key children are made, told apart and removed",
        children,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "host.watch",
        "changes of an IPoIB interface give their events",
        watch,
    )
    .fabric(Fabric::Managed, 2),
];

fn target(port: &mut KernelPort, link: &str) -> Result<Target> {
    let link = port.observe(&link.parse()?, &Query::named(Vec::new()))?;
    Ok(Target {
        name: link.name,
        index: link.index,
    })
}

fn pkey(raw: u16) -> Result<Pkey> {
    Pkey::new(raw).context("it names a partition")
}

fn children(guest: &mut Guest) -> Result {
    guest.load("ib_ipoib")?;
    let mut port = KernelPort::new();
    let parent = target(&mut port, "ib0")?;
    let new = |name: &str, raw, kind| -> Result<NewChild> {
        Ok(NewChild {
            parent: parent.clone(),
            name: name.parse()?,
            pkey: pkey(raw)?,
            kind,
        })
    };
    // Asked for as a full and as a limited member: the driver stores both with the full-member bit.
    for (name, raw, stored, kind) in [
        ("storage", 0x8001, 0x8001, ChildKind::Netlink),
        ("limited", 0x0003, 0x8003, ChildKind::Netlink),
        ("ib0.8002", 0x8002, 0x8002, ChildKind::Legacy),
    ] {
        port.create_child(&new(name, raw, kind)?)?;
        let child: LinkName = name.parse()?;
        let link = port.observe(&child, &Query::named(Vec::new()))?;
        guest.same("kind", link.child_kind, Some(kind))?;
        guest.same("pkey", link.pkey.map(Pkey::raw), Some(stored))?;
        guest.same("parent", link.parent, Some(parent.index))?;
        let shown = guest.run(&format!("ip -d link show {name}"))?;
        guest.contains("ip", &shown, &format!("pkey {stored:#06x}"))?;
    }
    let ib0 = port.observe(&parent.name, &Query::named(Vec::new()))?;
    guest.same("a port is no child", ib0.child_kind, None)?;

    // Refusals carry what the kernel said, and leave nothing behind.
    for (child, errno) in [
        (new("storage", 0x8005, ChildKind::Netlink)?, "EEXIST"),
        (new("ib0.8002", 0x8002, ChildKind::Legacy)?, "ENOTUNIQ"),
        (
            new("elsewhere", 0x8006, ChildKind::Legacy)?,
            "create_child would call it 'ib0.8006'",
        ),
    ] {
        let refused = port.create_child(&child);
        let Err(error @ PortError::ChildRefused { .. }) = refused else {
            anyhow::bail!("{child:?}: {refused:?}");
        };
        guest.contains("the refusal", &error.to_string(), errno)?;
        guest.same("its code", error.code(), ErrorCode::Refused)?;
    }
    let storage = target(&mut port, "storage")?;
    let grandchild = NewChild {
        parent: storage.clone(),
        ..new("deep", 0x8007, ChildKind::Netlink)?
    };
    let refused = port.create_child(&grandchild);
    ensure!(refused.is_err(), "a child of a child");

    // rtnetlink removes both kinds, delete_child the legacy one only.
    let old = |child: Target, raw, via| -> Result<OldChild> {
        Ok(OldChild {
            child,
            parent: parent.clone(),
            pkey: pkey(raw)?,
            via,
        })
    };
    let refused = port.delete_child(&old(storage.clone(), 0x8001, ChildKind::Legacy)?);
    ensure!(
        refused.is_err(),
        "delete_child knows no such child: {refused:?}"
    );
    port.delete_child(&old(storage, 0x8001, ChildKind::Netlink)?)?;
    let legacy = target(&mut port, "ib0.8002")?;
    port.delete_child(&old(legacy, 0x8002, ChildKind::Legacy)?)?;
    port.create_child(&new("ib0.8002", 0x8002, ChildKind::Legacy)?)?;
    let legacy = target(&mut port, "ib0.8002")?;
    port.delete_child(&old(legacy.clone(), 0x8002, ChildKind::Netlink)?)?;
    let gone = port.delete_child(&old(legacy, 0x8002, ChildKind::Netlink)?);
    ensure!(matches!(gone, Err(PortError::Gone { .. })), "{gone:?}");
    let left = guest.run("ip -o link show type ipoib")?;
    guest.same("no child is left but one", left.matches("@ib0").count(), 1)?;
    guest.contains("that one", &left, "limited@ib0")
}

fn watch(guest: &mut Guest) -> Result {
    let mut watch = Watch::open()?;
    let mut expect = |what: &str, is_it: &dyn Fn(&Event) -> bool| -> Result {
        let mut others = Vec::new();
        while let Some(event) = watch.next(Some(Duration::from_secs(20)))? {
            if is_it(&event) {
                return Ok(());
            }
            others.push(event);
        }
        anyhow::bail!("{what}: no such event, but {others:?}")
    };
    fn told(event: &Event, link: &str, knob: &str) -> bool {
        matches!(event, Event::Changed { name, knobs, .. }
            if name.as_str() == link && knobs.iter().any(|row| row.name == knob))
    }
    guest.load("ib_ipoib")?;
    expect(
        "ib0 appears",
        &|event| matches!(event, Event::Created { name, .. } if name.as_str() == "ib0"),
    )?;
    guest.run("ip link set ib0 up")?;
    expect(
        "it joins",
        &|event| matches!(event, Event::Changed { name, carrier: true, .. } if name.as_str() == "ib0"),
    )?;
    guest.write("/sys/class/net/ib0/mode", "connected\n")?;
    expect("the mode, by its file", &|event| told(event, "ib0", "mode"))?;
    guest.run("ip link set ib0 type ipoib mode datagram")?;
    expect("the mode, by ip", &|event| told(event, "ib0", "mode"))?;
    guest.run("ip link set ib0 type ipoib umcast 1")?;
    expect("umcast, by ip", &|event| told(event, "ib0", "umcast"))?;
    guest.run("ethtool -C ib0 rx-usecs 7")?;
    expect("coalescing", &|event| told(event, "ib0", "rx-usecs"))?;
    guest.run("ip link add link ib0 name kid type ipoib pkey 0x8001")?;
    expect(
        "a child appears",
        &|event| matches!(event, Event::Created { name, .. } if name.as_str() == "kid"),
    )?;
    guest.run("rmmod ib_ipoib")?;
    expect(
        "the driver goes",
        &|event| matches!(event, Event::Removed { name, .. } if name.as_str() == "ib0"),
    )
}
