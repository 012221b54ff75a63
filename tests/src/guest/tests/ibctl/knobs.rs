// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every knob that the stock driver has: written by one, read by the other.

use super::{LIMIT, ibctl, value};
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "ibctl.knobs_datagram",
        "each knob of ib0, read back by ip, ethtool and sysfs",
        datagram,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
    Task::new(
        "ibctl.knobs_connected",
        "the same in connected mode",
        connected,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
    Task::new(
        "ibctl.mode_and_mtu",
        "mode and MTU in one command, both ways, by each channel",
        mode,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "ibctl.foreign_writes",
        "what ip, ethtool and sysfs write, ibctl reads",
        foreign,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.other_netdevs",
        "veth, tun, dummy and bridge beside ib0",
        others,
    )
    .fabric(Fabric::Managed, 2),
];

fn datagram(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    knobs(guest, &pair.a, "1500")?;
    pair.wait_ready(guest)?;
    pair.ping(2, 56)
}

fn connected(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Connected)?;
    knobs(guest, &pair.a, "40000")?;
    pair.wait_ready(guest)?;
    pair.ping(2, 56)
}

/// Sets each knob through each channel that carries it, and reads it with somebody else's tool.
fn knobs(guest: &Guest, end: &End, mtu: &str) -> Result {
    let dev = &end.dev;
    let sysfs = |file: &str| end.ns.run(&format!("cat /sys/class/net/{dev}/{file}"));
    for via in ["", " --via sysfs", " --via rtnetlink"] {
        for mtu in ["1000", mtu] {
            ibctl(end, &format!("set {dev} mtu={mtu}{via}"), 0)?;
            guest.same("MTU that ip shows", end.detail("mtu")?.as_str(), mtu)?;
        }
        for length in ["77", "256"] {
            ibctl(end, &format!("set {dev} txqueuelen={length}{via}"), 0)?;
            guest.same("queue length", end.detail("txqlen")?.as_str(), length)?;
        }
        for (umcast, shown) in [("ignore", "1"), ("honour", "0")] {
            ibctl(end, &format!("set {dev} umcast={umcast}{via}"), 0)?;
            guest.same("umcast in sysfs", sysfs("umcast")?.trim(), shown)?;
        }
        ibctl(end, &format!("set {dev} alias=rack7{via}"), 0)?;
        guest.same("alias", end.detail("ifalias")?.as_str(), "rack7")?;
        ibctl(end, &format!("set {dev} alias={via}"), 0)?;
        guest.same("alias in sysfs", sysfs("ifalias")?.trim(), "")?;
    }
    for (knob, set, shown) in [
        ("rx-usecs", "20us", "rx-usecs:\t20"),
        ("rx-frames", "44", "rx-frames:\t44"),
    ] {
        ibctl(end, &format!("set {dev} {knob}={set}"), 0)?;
        guest.contains(
            "ethtool -c",
            &end.ns.run(&format!("ethtool -c {dev}"))?,
            shown,
        )?;
    }
    // Stored, and without effect: said on stderr and by the exit status.
    let output = ibctl(
        end,
        &format!("set {dev} gro-flush-timeout=20us napi-defer-hard-irqs=2"),
        8,
    )?;
    guest.contains("the report", &output.to_string(), "in-tree ib_ipoib")?;
    guest.same(
        "gro_flush_timeout",
        sysfs("gro_flush_timeout")?.trim(),
        "20000",
    )?;
    guest.same(
        "napi_defer_hard_irqs",
        sysfs("napi_defer_hard_irqs")?.trim(),
        "2",
    )?;
    ibctl(
        end,
        &format!("set {dev} gro-flush-timeout=0 napi-defer-hard-irqs=0"),
        8,
    )?;
    for (set, shown) in [("on", "1"), ("off", "0")] {
        ibctl(end, &format!("set {dev} napi-threaded={set}"), 0)?;
        guest.same("threaded", sysfs("threaded")?.trim(), shown)?;
    }
    for (set, shown) in [
        ("off", "generic-receive-offload: off"),
        ("on", "generic-receive-offload: on"),
    ] {
        ibctl(end, &format!("set {dev} feature.rx-gro={set}"), 0)?;
        guest.contains(
            "ethtool -k",
            &end.ns.run(&format!("ethtool -k {dev}"))?,
            shown,
        )?;
    }
    ibctl(end, &format!("set {dev} state=down"), 0)?;
    guest.same("state", end.detail("operstate")?.as_str(), "DOWN")?;
    ibctl(end, &format!("set {dev} state=up"), 0)?;
    // The kernel drops IPv6 addresses of an interface that goes down.
    end.bring_up()?;
    end.wait_link(guest, true)?;
    for (knob, why) in [
        ("batching=on", "ipoib_batch"),
        ("batch-limit=8", "ipoib_batch"),
        ("cm-copybreak=128", "fixed threshold"),
        ("ring.rx=512", "module parameters"),
        ("channels.combined=2", "no"),
        ("private-flag.tx-batching=on", "private flag"),
        ("tx-usecs=8us", "no"),
    ] {
        let output = ibctl(end, &format!("set {dev} {knob}"), 6)?;
        guest.contains(knob, &output.to_string(), why)?;
    }
    // Everything in one picture; each line of it must be there.
    let all = ibctl(end, &format!("show {dev}"), 0)?.stdout;
    guest.keep("show.txt", all.as_bytes());
    for word in [
        "mode",
        "umcast",
        "pkey",
        "guid",
        "rx-usecs",
        "gro-flush-timeout",
        "feature.rx-gro",
    ] {
        anyhow::ensure!(all.contains(word), "ibctl show {dev} has no {word}");
    }
    let json = ibctl(end, &format!("-o json show {dev}"), 0)?.stdout;
    guest.keep("show.json", json.as_bytes());
    Ok(())
}

fn mode(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    for via in ["", " --via sysfs", " --via rtnetlink"] {
        for end in [&pair.a, &pair.b] {
            let line = format!("set {} mtu=65520 mode=connected{via}", end.dev);
            ibctl(end, &line, 0)?;
            guest.same(
                "mode",
                end.detail("linkinfo/info_data/mode")?.as_str(),
                "connected",
            )?;
            guest.same("MTU", end.detail("mtu")?.as_str(), "65520")?;
        }
        pair.wait_ready(guest)?;
        pair.ping(2, 60000)?;
        for end in [&pair.a, &pair.b] {
            let output = ibctl(end, &format!("set {} mode=datagram{via}", end.dev), 0)?;
            // The kernel lowered the MTU along with the mode, and the report says so.
            guest.contains("the report", &output.stdout, "mtu")?;
            guest.same(
                "mode",
                end.detail("linkinfo/info_data/mode")?.as_str(),
                "datagram",
            )?;
            let again = ibctl(end, &format!("set {} mode=datagram{via}", end.dev), 0)?;
            guest.contains("the second report", &again.stdout, "already")?;
        }
        pair.wait_ready(guest)?;
        pair.ping(2, 56)?;
    }
    Ok(())
}

fn foreign(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let dev = &end.dev;
    let shell = |text: &str| {
        guest.write("/tmp/write.sh", text)?;
        end.ns.attempt("sh /tmp/write.sh", LIMIT)?.success()
    };
    end.ns.run(&format!(
        "ip link set {dev} mtu 1300 txqueuelen 99 alias row9"
    ))?;
    guest.same("mtu", value(end, "mtu")?.as_str(), "1300")?;
    guest.same("txqueuelen", value(end, "txqueuelen")?.as_str(), "99")?;
    guest.same("alias", value(end, "alias")?.as_str(), "row9")?;
    end.ns
        .run(&format!("ip link set {dev} type ipoib umcast 1"))?;
    guest.same("umcast", value(end, "umcast")?.as_str(), "ignore")?;
    end.ns
        .run(&format!("ethtool -C {dev} rx-usecs 9 rx-frames 7"))?;
    guest.same("rx-usecs", value(end, "rx-usecs")?.as_str(), "9us")?;
    guest.same("rx-frames", value(end, "rx-frames")?.as_str(), "7")?;
    end.ns.run(&format!("ethtool -K {dev} gro off"))?;
    guest.same("gro", value(end, "feature.rx-gro")?.as_str(), "off")?;
    shell(&format!(
        "echo 1500000 > /sys/class/net/{dev}/gro_flush_timeout"
    ))?;
    guest.same(
        "timeout",
        value(end, "gro-flush-timeout")?.as_str(),
        "1500us",
    )?;
    shell(&format!("echo connected > /sys/class/net/{dev}/mode"))?;
    guest.same("mode", value(end, "mode")?.as_str(), "connected")?;
    end.ns.run(&format!("ip link set {dev} down"))?;
    guest.same("state", value(end, "state")?.as_str(), "down")
}

fn others(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    for module in ["veth", "tun", "dummy", "bridge"] {
        guest.load(module)?;
    }
    let end = &pair.a;
    end.ns.run("ip link add ve0 type veth peer name ve1")?;
    end.ns.run("ip link add du0 type dummy")?;
    end.ns.run("ip link add br0 type bridge")?;
    end.ns.run("ip tuntap add dev tu0 mode tun")?;
    for dev in ["ve0", "du0", "br0", "tu0"] {
        let other = End {
            dev: dev.to_owned(),
            ..end.clone()
        };
        ibctl(
            &other,
            &format!("set {dev} mtu=1280 txqueuelen=55 alias=x"),
            0,
        )?;
        guest.same("mtu", other.detail("mtu")?.as_str(), "1280")?;
        guest.same("txqlen", other.detail("txqlen")?.as_str(), "55")?;
        let output = ibctl(&other, &format!("set {dev} mode=connected"), 6)?;
        guest.contains(dev, &output.to_string(), "no IPoIB interface")?;
    }
    let all = ibctl(end, "show", 0)?.stdout;
    let lines: Vec<&str> = all.lines().collect();
    anyhow::ensure!(
        lines.get(1).is_some_and(|line| line.starts_with("ib0")),
        "IPoIB first:\n{all}"
    );
    guest.same("lines", lines.len(), 1 + 7)
}
