// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of mode that fail halfway, and under traffic.

use anyhow::ensure;

use super::ibctl;
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::FLIP;
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "ibctl.mode_put_back",
        "an MTU refused after the mode was changed puts both back",
        put_back,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "ibctl.mode_under_traffic",
        "the mode changes under traffic, and each set is verified",
        under_traffic,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180)
    .allow(FLIP),
];

/// Runs a set and checks each knob's outcome and value: `("mtu", "changed", "1500")`.
fn set(
    guest: &Guest,
    end: &End,
    words: &str,
    status: i32,
    wanted: &[(&str, &str, &str)],
) -> Result<serde_json::Value> {
    let output = ibctl(end, &format!("set {} {words} -o json", end.dev), status)?;
    let report: serde_json::Value = serde_json::from_str(&output.stdout)?;
    for (knob, outcome, value) in wanted {
        let found = &report["knobs"][*knob];
        let found = (found["outcome"].as_str(), found["value"].as_str());
        let what = format!("{knob} after\n{output}");
        guest.same(&what, found, (Some(*outcome), Some(*value)))?;
    }
    Ok(report)
}

fn shows(guest: &Guest, end: &End, mode: &str, mtu: &str) -> Result {
    let field = "linkinfo/info_data/mode";
    guest.same("mode", end.detail(field)?.as_str(), mode)?;
    guest.same("MTU", end.detail("mtu")?.as_str(), mtu)
}

fn put_back(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let a = &pair.a;
    // The MTU that comes along is told though nobody asked for it.
    let connected = [
        ("mode", "changed", "connected"),
        ("mtu", "changed", "65520"),
    ];
    let report = set(guest, a, "mode=connected", 0, &connected)?;
    ensure!(report["knobs"]["mtu"].get("asked").is_none(), "{report}");
    set(guest, a, "mtu=60000", 0, &[("mtu", "changed", "60000")])?;

    let back = [
        ("mode", "put-back", "connected"),
        ("mtu", "refused", "60000"),
        ("txqueuelen", "not-tried", "256"),
    ];
    for via in ["", " --via sysfs"] {
        let words = format!("txqueuelen=9 mtu=9000 mode=datagram{via}");
        set(guest, a, &words, 7, &back)?;
        shows(guest, a, "connected", "60000")?;
        guest.same("queue length", a.detail("txqlen")?.as_str(), "256")?;
    }
    set(guest, &pair.b, "mode=connected", 0, &connected)?;
    pair.wait_ready(guest)?;
    pair.ping(2, 50_000)
}

fn under_traffic(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let line = format!("ping -q -n -i 0.002 -s 1000 {}", pair.b.v4);
    let mut traffic = pair.a.ns.start(&line)?;
    for round in 0..6 {
        let (mode, mtu) = if round % 2 == 0 {
            ("connected", "65520")
        } else {
            ("datagram", "2044")
        };
        for end in [&pair.a, &pair.b] {
            // The driver may answer EBUSY though it did the change: that is no failure.
            let wanted = [("mode", "changed", mode), ("mtu", "changed", mtu)];
            set(guest, end, &format!("mode={mode} mtu={mtu}"), 0, &wanted)?;
            shows(guest, end, mode, mtu)?;
        }
    }
    ensure!(traffic.is_running()?, "ping ended:\n{}", traffic.printed());
    drop(traffic);
    pair.wait_ready(guest)?;
    pair.ping(2, 1000)
}
