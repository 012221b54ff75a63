// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bad input, refusals and a device that goes away.

use std::thread;
use std::time::Duration;

use super::{LIMIT, value};
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "ibctl.bad_input",
        "each kind of bad input on ib0 changes nothing",
        bad_input,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.put_back",
        "a refusal puts mode, MTU and the rest back",
        put_back,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.unprivileged",
        "without a capability nothing changes, and it is named",
        unprivileged,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.vanishing",
        "the driver is unloaded while ibctl sets",
        vanishing,
    )
    .fabric(Fabric::Managed, 2)
    .limit(240),
];

fn bad_input(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let before = end.ns.run(&format!("ip -d link show {}", end.dev))?;
    for (line, status, says) in [
        ("set ib0 mut=1500", 3, "mtu"),
        ("set ib9 mtu=1500", 4, "ib0"),
        ("set ib0 mtu=70000", 5, "70000"),
        ("set ib0 mtu=20us", 5, "unit"),
        ("set ib0 mtu=", 5, "no value"),
        ("set ib0 mtu", 2, "="),
        ("set ib0 mtu=1500 mtu=1500", 2, "twice"),
        ("set ib0 mode=fast", 5, "datagram, connected"),
        ("set ib0 rx-usecs=1500ns", 5, "whole number"),
        ("set ib0 txqueuelen=9 mode=fast", 5, "mode"),
        ("set ib0 mtu=1500 --via netdev", 2, "rtnetlink"),
        ("set ib0 feature=on", 3, "feature.NAME"),
        ("get ib0 nothing", 3, "nothing"),
        ("get ib0/x mtu", 4, "ib0/x"),
    ] {
        let output = end.ns.attempt(&format!("ibctl {line}"), LIMIT)?;
        anyhow::ensure!(
            output.status.code() == Some(status),
            "wanted status {status}:\n{output}"
        );
        guest.contains(line, &output.stderr, says)?;
        guest.contains(line, &output.stderr, "ibctl: ")?;
    }
    guest.same(
        "ib0",
        end.ns.run(&format!("ip -d link show {}", end.dev))?,
        before,
    )
}

fn put_back(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let before = (
        value(end, "mode")?,
        value(end, "mtu")?,
        value(end, "txqueuelen")?,
    );
    // In-tree ib_ipoib refuses more than 65535 of either; all the others come first in the plan.
    let line = "set ib0 mode=connected mtu=50000 txqueuelen=300 alias=y rx-usecs=70000";
    let output = end.ns.attempt(&format!("ibctl {line}"), LIMIT)?;
    anyhow::ensure!(
        matches!(output.status.code(), Some(5 | 7)),
        "refused:\n{output}"
    );
    let after = (
        value(end, "mode")?,
        value(end, "mtu")?,
        value(end, "txqueuelen")?,
    );
    guest.same("mode, MTU and queue length", after, before)?;
    guest.same("alias", value(end, "alias")?.as_str(), "")?;
    pair.wait_ready(guest)?;
    pair.ping(2, 56)
}

fn unprivileged(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let before = end.ns.run(&format!("ip -d link show {}", end.dev))?;
    let drop =
        "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all";
    for knob in [
        "mtu=1500",
        "mode=connected",
        "rx-usecs=5us",
        "gro-flush-timeout=5us",
        "alias=z",
    ] {
        let output = end
            .ns
            .attempt(&format!("{drop} ibctl set ib0 {knob}"), LIMIT)?;
        anyhow::ensure!(
            output.status.code() == Some(9),
            "wanted status 9:\n{output}"
        );
        guest.contains(knob, &output.to_string(), "CAP_NET_ADMIN")?;
    }
    // Reading is free.
    end.ns
        .attempt(&format!("{drop} ibctl show ib0"), LIMIT)?
        .success()?;
    guest.same(
        "ib0",
        end.ns.run(&format!("ip -d link show {}", end.dev))?,
        before,
    )
}

fn vanishing(guest: &mut Guest) -> Result {
    let mut seen = [0_u32; 3];
    for round in 0..8_u64 {
        guest.load("ib_ipoib")?;
        guest.wait_for("interface ib0", LIMIT, || {
            Ok(guest
                .attempt("ip link show ib0")?
                .status
                .success()
                .then_some(()))
        })?;
        let script = "while true; do ibctl set ib0 state=up mode=connected mtu=9000 txqueuelen=9 \
                      rx-usecs=9us; echo $?; ibctl set ib0 mode=datagram mtu=1500 txqueuelen=99 \
                      rx-usecs=1us; echo $?; done";
        guest.write("/tmp/loop.sh", script)?;
        let mut loop_of_sets = guest.start("sh /tmp/loop.sh")?;
        thread::sleep(Duration::from_millis(500 + 130 * round));
        guest.unload("ib_ipoib")?;
        thread::sleep(Duration::from_millis(300));
        anyhow::ensure!(loop_of_sets.is_running()?, "{}", loop_of_sets.printed());
        let printed = loop_of_sets.printed();
        drop(loop_of_sets);
        let mut kind_gone = false;
        for status in printed.lines().filter_map(|line| line.parse::<i32>().ok()) {
            // The kernel forgets the link kind before the interfaces go: "mode" has no carrier then.
            anyhow::ensure!(
                status != 0 || !kind_gone,
                "unsupported, and supported after all:\n{printed}"
            );
            match status {
                0 => seen[0] += 1,
                4 => seen[1] += 1,
                10 => seen[2] += 1,
                // The driver refuses changes while it goes away.
                7 | 11 | 12 => {}
                6 => kind_gone = true,
                _ => anyhow::bail!("exit status {status}:\n{printed}"),
            }
        }
        anyhow::ensure!(!printed.contains("panicked"), "{printed}");
    }
    let [set, unknown, vanished] = seen;
    guest.say(format!(
        "{set} sets, {unknown} without an interface, {vanished} lost it midway"
    ));
    anyhow::ensure!(set > 0 && unknown > 0, "the race was not run: {seen:?}");
    Ok(())
}
