// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stock `ib_ipoib`: one doorbell and one completion per packet, the state of the art to beat.

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};
use crate::wire::Figure;

/// The case.
pub(super) const CASE: Case = Case {
    name: "stock",
    about: "doorbells, completions and hints per packet of the stock driver, and its throughput",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let figures = bench.measure("measure.stock_stream", &["rounds=3", "seconds=3"])?;
    let middle = |name: &str| -> Result<f64> {
        let named = figures.iter().filter(|figure| figure.name == name);
        let values: Vec<f64> = named.map(|figure: &Figure| figure.value).collect();
        median(&values).with_context(|| format!("no figure {name}"))
    };
    let one = Goal::Near(1.0, 0.005);
    bench.bar(
        "stock.doorbells_per_packet",
        middle("doorbells.datagram")?,
        None,
        one,
        "1",
    )?;
    bench.bar(
        "stock.cqes_per_packet",
        middle("cqes_send.datagram")?,
        None,
        one,
        "1",
    )?;
    let connected = middle("doorbells.connected")?;
    bench.bar(
        "stock.doorbells_per_packet.connected",
        connected,
        None,
        one,
        "1",
    )?;
    bench.bar(
        "stock.xmit_more_share",
        middle("xmit_more.datagram")?,
        None,
        Goal::Open,
        "1",
    )?;
    // The modes are each other's peer: absolute rates differ by 4 from boot to boot.
    let (datagram, connected) = (middle("mbps.datagram")?, middle("mbps.connected")?);
    bench.bar(
        "stock.tcp_mbps.datagram",
        datagram,
        Some(connected),
        Goal::Open,
        "Mbit/s",
    )?;
    bench.bar(
        "stock.tcp_mbps.connected",
        connected,
        Some(datagram),
        Goal::Open,
        "Mbit/s",
    )
}
