// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures of the stock `ib_ipoib`: what one packet costs it.

use anyhow::{Context, ensure};

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.stock_stream",
    "TCP streams over the stock driver, modes interleaved",
    stream,
)
.fabric(Fabric::Managed, 2)
.limit(300)
.allow(KNOWN)];

/// Runs `rounds` streams of `seconds` in each mode, interleaved, and reports for each the throughput
/// and what the sending HCA counted. The fabric delivers one packet per wire event by default.
fn stream(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 3)?;
    let seconds: u32 = guest.arg("seconds", 3)?;
    let pair = Pair::stock(guest, Mode::Datagram)?;
    for _ in 0..rounds {
        for mode in [Mode::Datagram, Mode::Connected] {
            for end in [&pair.a, &pair.b] {
                end.set_mode(mode)?;
                end.bring_up()?;
            }
            pair.wait_ready(guest)?;
            let hca = guest.vhca(0);
            let before = hca.stats()?;
            let options = format!("--time {seconds} --omit 1");
            let end = Pair::iperf(&pair.a, &pair.b, guest, &options)?;
            let grown = hca.stats()?.since(&before);
            let sent = end
                .pointer("/sum_received/bits_per_second")
                .and_then(|v| v.as_f64());
            guest.figure(
                &format!("mbps.{mode}"),
                sent.context("iperf3 tells no rate")? / 1e6,
                "Mbit/s",
            );
            let packets = grown.get("send_wrs")?;
            ensure!(packets > 1000, "too few packets to tell: {packets}");
            for name in ["doorbells", "cqes_send", "xmit_more"] {
                let share = f64::from(u32::try_from(grown.get(name)?)?)
                    / f64::from(u32::try_from(packets)?);
                guest.figure(&format!("{name}.{mode}"), share, "1");
            }
        }
    }
    Ok(())
}
