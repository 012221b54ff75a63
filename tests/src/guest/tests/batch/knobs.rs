// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver's knobs: one state behind rtnetlink, ethtool and sysfs.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, ensure};

use super::ours;
use crate::guest::ipoib::End;
use crate::guest::task::{Fabric, Kernel, Task};
use crate::guest::{Guest, Result, traffic};
use crate::lab::machine::Shape;

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.knob_one_state",
        "set through one channel, read through each",
        one_state,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.describes_itself",
        "ip -d, ip -s, ethtool -i, -S, -g, -c and -k",
        describes,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "batch.threaded",
        "NAPI in threads: on and off under traffic, and unloaded while it is on",
        threaded,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED),
    Task::new(
        "sid.napi_kept",
        "settings of single NAPIs survive down and up, other rings, and another mode (Linux 6.13)",
        napi_kept,
    )
    .fabric(Fabric::Managed, 2)
    .kernel(Kernel::Sid),
];

const CHANNELS: [&str; 3] = ["rtnetlink", "ethtool", "sysfs"];

fn get(end: &End, knob: &str, via: &str) -> Result<String> {
    let text = end
        .ns
        .run(&format!("ibctl -o json get {} {knob} --via {via}", end.dev))?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    let value = json
        .pointer(&format!("/knobs/{knob}/value"))
        .and_then(|value| value.as_str());
    match value {
        Some(value) => Ok(value.to_owned()),
        None => anyhow::bail!("no {knob} via {via}:\n{text}"),
    }
}

fn one_state(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    for (knob, values) in [
        ("batching", ["off", "adaptive", "on"]),
        ("batch-limit", ["1", "17", "64"]),
        ("cm-copybreak", ["0", "2048", "256"]),
    ] {
        for via in CHANNELS {
            for value in values {
                end.ns
                    .run(&format!("ibctl set {} {knob}={value} --via {via}", end.dev))?;
                for other in CHANNELS {
                    let what = format!("{knob} set via {via}, read via {other}");
                    guest.same(&what, get(end, knob, other)?.as_str(), value)?;
                }
            }
        }
    }
    let via = ["sysfs", "rtnetlink"];
    for (knob, values) in [
        ("gro-flush-timeout", ["20us", "0"]),
        ("napi-defer-hard-irqs", ["3", "0"]),
    ] {
        for (set, read) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
            let (set, read) = (via[set], via[read]);
            for value in values {
                end.ns
                    .run(&format!("ibctl set {} {knob}={value} --via {set}", end.dev))?;
                let what = format!("{knob} set via {set}, read via {read}");
                guest.same(&what, get(end, knob, read)?.as_str(), value)?;
            }
        }
    }
    // And without ibctl: each tool shows what another one wrote.
    end.ns.run("ethtool --set-priv-flags ib0 tx-batching off")?;
    guest.same(
        "batching",
        end.ns.run("cat /sys/class/net/ib0/ipoib/batching")?.trim(),
        "off",
    )?;
    end.ns.run("ethtool -C ib0 tx-frames 9")?;
    guest.same(
        "limit",
        end.ns
            .run("cat /sys/class/net/ib0/ipoib/batch_limit")?
            .trim(),
        "9",
    )
}

fn threaded(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let load = traffic::flood(&pair)?;
    let threads = || -> Result<usize> {
        let all = guest.run("ps -o comm")?;
        Ok(all
            .lines()
            .filter(|name| name.starts_with("napi/ib"))
            .count())
    };
    for _ in 0..3 {
        for end in [&pair.a, &pair.b] {
            end.ns
                .run(&format!("ibctl set {} napi-threaded=on", end.dev))?;
        }
        ensure!(threads()? >= 4, "only {} threads of NAPI", threads()?);
        pair.ping(5, 1400)?;
        traffic::send_file(guest, &pair.a, &pair.b, 4 << 20)?;
        // New queues come with new pollers.
        pair.a
            .ns
            .run(&format!("ethtool -G {} rx 256", pair.a.dev))?;
        pair.wait_ready(guest)?;
        pair.ping(2, 1400)?;
        pair.b
            .ns
            .run(&format!("ibctl set {} napi-threaded=off", pair.b.dev))?;
        pair.ping(2, 1400)?;
        pair.a
            .ns
            .run(&format!("ethtool -G {} rx 512", pair.a.dev))?;
        pair.wait_ready(guest)?;
    }
    for end in [&pair.a, &pair.b] {
        end.ns
            .run(&format!("ibctl set {} napi-threaded=on", end.dev))?;
    }
    drop(load);
    guest.unload("ipoib_batch")?;
    guest.same("threads", threads()?, 0)
}

/// Returns the settings of single NAPIs of a knob: name and value.
fn single(end: &End, knob: &str) -> Result<BTreeMap<String, String>> {
    let text = end.ns.run(&format!("ibctl -o json show {}", end.dev))?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    let knobs = json.pointer("/links/0/knobs").or(json.get("knobs"));
    let knobs = knobs.and_then(serde_json::Value::as_object);
    let knobs = knobs.with_context(|| format!("no knobs:\n{text}"))?;
    let of = |(name, knob): (&String, &serde_json::Value)| {
        let value = knob.get("value")?.as_str()?;
        Some((name.clone(), value.to_owned()))
    };
    let start = format!("{knob}.napi-");
    let found = knobs.iter().filter(|(name, _)| name.starts_with(&start));
    Ok(found.filter_map(of).collect())
}

fn napi_kept(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    // Addresses of IPv6 go with the interface, unless they are to stay.
    let keep = format!("/proc/sys/net/ipv6/conf/{}/keep_addr_on_down", end.dev);
    end.ns
        .enter(|| fs::write(&keep, "1"))?
        .context(keep.clone())?;
    let knob = "gro-flush-timeout-of";
    let names: Vec<String> = single(end, knob)?.into_keys().collect();
    ensure!(names.len() >= 2, "NAPIs: {names:?}");
    // Each another value.
    for (number, name) in names.iter().enumerate() {
        let value = format!("{}us", 10 + number);
        end.ns
            .run(&format!("ibctl set {} {name}={value}", end.dev))?;
    }
    let set = single(end, knob)?;
    for line in [
        format!("ip link set {} down", end.dev),
        format!("ip link set {} up", end.dev),
        format!("ethtool -G {} rx 256 tx 256", end.dev),
    ] {
        end.ns.run(&line)?;
    }
    end.write("mode", "connected")?;
    end.write("mode", "datagram")?;
    pair.wait_ready(guest)?;
    pair.ping(2, 1400)?;
    guest.same("settings of single NAPIs", single(end, knob)?, set)
}

fn describes(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    pair.ping(2, 56)?;
    for (line, part) in [
        ("ip -d link show ib0", "ipoib"),
        ("ip -s link show ib0", "RX:"),
        ("ethtool -i ib0", "driver: ipoib_batch"),
        ("ethtool -S ib0", "doorbells"),
        ("ethtool -g ib0", "TX:"),
        ("ethtool -c ib0", "tx-frames"),
        ("ethtool -k ib0", "generic-receive-offload: on"),
        ("ibctl show ib0", "batching"),
    ] {
        let text = end.ns.run(line)?;
        guest.contains(line, &text, part)?;
        guest.keep(&format!("{}.txt", line.replace(' ', "_")), text.as_bytes());
    }
    Ok(())
}
