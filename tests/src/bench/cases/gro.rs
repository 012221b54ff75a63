// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The GRO flush timeout: what it gains and what it costs, beside the stock driver, where it has no effect.

use anyhow::Result;

use crate::bench::{Bench, Case, Goal, pick};

/// The case.
pub(super) const CASE: Case = Case {
    name: "gro",
    about: "segments per packet and acknowledgements with a GRO flush timeout, ours and stock",
    run,
};

fn run(bench: &mut Bench) -> Result<()> {
    let figures = bench.measure("measure.batch_gro", &["streams=4", "seconds=4"])?;
    let of = |name: &str| pick(&figures, name);
    let reduction = |name: &str, driver: &str| -> Result<f64> {
        Ok(of(&format!("{name}.without.{driver}"))? / of(&format!("{name}.with.{driver}"))?)
    };
    bench.bar(
        "gro.segs_per_packet",
        of("segments.with.on")?,
        Some(of("segments.with.stock")?),
        Goal::AtLeast(42.0),
        "1",
    )?;
    bench.bar(
        "gro.segs_per_packet.without",
        of("segments.without.on")?,
        Some(of("segments.without.stock")?),
        Goal::Open,
        "1",
    )?;
    // Per segment: with fewer packets to handle the streams are also faster.
    bench.bar(
        "gro.ack_reduction",
        reduction("acks_per_segment", "on")?,
        Some(reduction("acks_per_segment", "stock")?),
        Goal::AtLeast(16.0),
        "ratio",
    )?;
    for (bar, figure, unit) in [
        ("gro.acks_per_s", "acks_per_s.with", "1/s"),
        ("gro.acks_per_s.without", "acks_per_s.without", "1/s"),
        ("gro.mbps", "mbps.with", "Mbit/s"),
        ("gro.mbps.without", "mbps.without", "Mbit/s"),
        ("gro.rr_per_s", "rr.with", "1/s"),
        ("gro.rr_per_s.without", "rr.without", "1/s"),
        ("gro.rr_per_s.deferred", "rr.deferred", "1/s"),
        ("gro.packet_time", "packet_time.without", "us"),
        ("gro.timeout", "timeout", "us"),
    ] {
        let (ours, stock) = (
            of(&format!("{figure}.on"))?,
            of(&format!("{figure}.stock"))?,
        );
        bench.bar(bar, ours, Some(stock), Goal::Open, unit)?;
    }
    Ok(())
}
