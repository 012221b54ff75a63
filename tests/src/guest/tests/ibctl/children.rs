// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P_Key children of both kinds: made over rtnetlink, and by `create_child`.

use super::{LIMIT, ibctl, value};
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new("ibctl.child_rtnl", "knobs of a child that ip made", rtnl).fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.child_legacy",
        "knobs of a child that create_child made",
        legacy,
    )
    .fabric(Fabric::Managed, 2),
];

fn rtnl(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    end.ns.run(&format!(
        "ip link add link {} name kid type ipoib pkey 0x8001",
        end.dev
    ))?;
    let child = End {
        dev: "kid".to_owned(),
        ..end.clone()
    };
    check(guest, &child, "0x8001")?;
    // rtnetlink children have no such file; the reason is told, and nothing changes.
    let output = ibctl(&child, "set kid mode=connected --via sysfs", 6)?;
    guest.contains("the reason", &output.to_string(), "sysfs")?;
    guest.same("mode", value(&child, "mode")?.as_str(), "datagram")
}

fn legacy(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let script = format!("echo 0x8002 > /sys/class/net/{}/create_child", end.dev);
    guest.write("/tmp/create.sh", &script)?;
    end.ns.attempt("sh /tmp/create.sh", LIMIT)?.success()?;
    // In-tree ib_ipoib makes it in the first namespace, wherever the parent is.
    let name = format!("{}.8002", end.dev);
    guest.run(&format!("ip link set {name} netns {}", end.ns.name()))?;
    let child = End {
        dev: name,
        ..end.clone()
    };
    check(guest, &child, "0x8002")?;
    for mode in ["connected", "datagram"] {
        ibctl(
            &child,
            &format!("set {} mode={mode} --via sysfs", child.dev),
            0,
        )?;
        guest.same(
            "mode",
            child.detail("linkinfo/info_data/mode")?.as_str(),
            mode,
        )?;
    }
    Ok(())
}

fn check(guest: &Guest, child: &End, pkey: &str) -> Result {
    let dev = &child.dev;
    let shown = ibctl(child, "show", 0)?.stdout;
    let line = shown
        .lines()
        .find(|line| line.starts_with(dev.as_str()))
        .unwrap_or_default();
    guest.contains("the child's line", line, pkey)?;
    guest.contains("the child's line", line, "ib0")?;
    ibctl(
        child,
        &format!("set {dev} mtu=1200 umcast=ignore txqueuelen=33 alias=kid"),
        0,
    )?;
    guest.same("mtu", child.detail("mtu")?.as_str(), "1200")?;
    guest.same("txqlen", child.detail("txqlen")?.as_str(), "33")?;
    guest.same("umcast", value(child, "umcast")?.as_str(), "ignore")?;
    ibctl(child, &format!("set {dev} mode=connected mtu=30000"), 0)?;
    guest.same(
        "mode",
        child.detail("linkinfo/info_data/mode")?.as_str(),
        "connected",
    )?;
    guest.same("mtu", child.detail("mtu")?.as_str(), "30000")?;
    ibctl(child, &format!("set {dev} mode=datagram"), 0)?;
    guest.same(
        "mode",
        child.detail("linkinfo/info_data/mode")?.as_str(),
        "datagram",
    )
}
