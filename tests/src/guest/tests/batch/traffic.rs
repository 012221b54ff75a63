// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets: ours to ours, and ours to stock, both ways.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{PEER, mixed, ours};
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.ping",
        "IPv4 and IPv6 both ways, managed fabric",
        |guest| ping(&ours(guest)?),
    )
    .fabric(Fabric::Managed, 2),
    Task::new("batch.ping_opensm", "the same under opensm", |guest| {
        ping(&ours(guest)?)
    })
    .fabric(Fabric::OpenSm, 2),
    Task::new("batch.ping_stock", "ours to the stock driver", |guest| {
        ping(&mixed(guest)?)
    })
    .fabric(Fabric::Managed, 2)
    .allow(PEER),
    Task::new(
        "batch.iperf",
        "TCP and UDP both ways, in each batching mode",
        iperf_ours,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
    Task::new(
        "batch.iperf_stock",
        "TCP and UDP both ways, ours and stock",
        |guest| iperf(guest, &mixed(guest)?),
    )
    .fabric(Fabric::Managed, 2)
    .limit(120)
    .allow(PEER),
    Task::new(
        "batch.doorbells",
        "a TCP stream shares doorbells and completions",
        doorbells,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
];

fn ping(pair: &Pair) -> Result {
    pair.ping(5, 56)?;
    // Over the MTU: IP sends it in pieces.
    pair.ping(3, 8000)
}

fn iperf_ours(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    for mode in ["off", "on", "adaptive"] {
        for end in [&pair.a, &pair.b] {
            end.ns
                .run(&format!("ibctl set {} batching={mode}", end.dev))?;
        }
        iperf(guest, &pair).with_context(|| format!("batching={mode}"))?;
    }
    Ok(())
}

fn iperf(guest: &Guest, pair: &Pair) -> Result {
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let tcp = Pair::iperf(from, to, guest, "--time 2")?;
        let received = number(&tcp, "/sum_received/bytes")?;
        ensure!(
            received > 1e6,
            "TCP {} to {}: {received} bytes in 2 s",
            from.dev,
            to.dev
        );
        let udp = Pair::iperf(from, to, guest, "--time 2 --udp --bitrate 2M --length 1400")?;
        let (sent, lost) = (
            number(&udp, "/sum/packets")?,
            number(&udp, "/sum/lost_packets")?,
        );
        ensure!(
            sent > 200.0,
            "UDP {} to {}: {sent} packets sent",
            from.dev,
            to.dev
        );
        ensure!(
            lost <= sent / 50.0,
            "UDP {} to {}: {lost} of {sent} lost",
            from.dev,
            to.dev
        );
    }
    Ok(())
}

fn number(report: &Value, path: &str) -> Result<f64> {
    let value = report.pointer(path).and_then(Value::as_f64);
    value.with_context(|| format!("iperf3's report has no {path}:\n{report:#}"))
}

fn doorbells(guest: &mut Guest) -> Result {
    guest.load("ipoib_batch")?;
    let pair = Pair::of_loaded(guest, Mode::Datagram)?;
    let hca = guest.vhca(0);
    let share = |mode: &str| -> Result<f64> {
        pair.a.ns.run(&format!("ibctl set ib0 batching={mode}"))?;
        let before = hca.stats()?;
        Pair::iperf(&pair.a, &pair.b, guest, "--time 2")?;
        let grown = hca.stats()?.since(&before);
        let wrs = grown.get("send_wrs")?;
        ensure!(wrs > 1000, "only {wrs} work requests");
        let (doorbells, cqes) = (grown.get("doorbells")?, grown.get("cqes_send")?);
        // One completion covers a chain; a few at the ends of the window belong to its neighbours.
        ensure!(
            cqes <= doorbells + 8,
            "{cqes} completions for {doorbells} doorbells"
        );
        Ok(f64::from(u32::try_from(doorbells)?) / f64::from(u32::try_from(wrs)?))
    };
    let off = share("off")?;
    guest.same("doorbells per packet, off", (off * 1000.0).round(), 1000.0)?;
    for mode in ["on", "adaptive"] {
        let share = share(mode)?;
        guest.figure(&format!("batch.doorbells_per_packet.{mode}"), share, "1");
        ensure!(
            share < 0.25,
            "{share} doorbells per packet with batching={mode}"
        );
    }
    Ok(())
}
