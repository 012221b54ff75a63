// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver's knobs: one state behind rtnetlink, ethtool and sysfs.

use super::ours;
use crate::guest::ipoib::End;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

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
