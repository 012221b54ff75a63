// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the HCAs see of a TCP stream: doorbells, completions, posts of receive buffers.
//!
//! TCP makes its trains as long as rate and round-trip time allow. On a busy host both would be the host's, so the
//! machine is one whose time is counted in instructions.

use anyhow::ensure;

use super::Driver;
use crate::guest::ipoib::Pair;
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.batch_gso",
    "TCP streams over stock, off and on, in turns: events of the HCAs per packet",
    measure,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::COUNTED)
.limit(600)
.allow(KNOWN)];

/// Streams `seconds` in each of `rounds`, MTU 2044. Doorbells and completions are those of the sending HCA, receive
/// posts those of the receiving one; each per data packet.
fn measure(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 5)?;
    let seconds: u32 = guest.arg("seconds", 3)?;
    for _ in 0..rounds {
        for driver in [Driver::Stock, Driver::Off, Driver::On] {
            driver.with(guest, |guest, pair| stream(guest, pair, driver, seconds))?;
        }
    }
    Ok(())
}

fn stream(guest: &mut Guest, pair: &Pair, driver: Driver, seconds: u32) -> Result {
    guest.same("mtu", pair.a.detail("mtu")?.as_str(), "2044")?;
    let hcas = [guest.vhca(0), guest.vhca(1)];
    let before = [hcas[0].stats()?, hcas[1].stats()?];
    let options = format!("--time {seconds} --omit 1");
    Pair::iperf(&pair.a, &pair.b, guest, &options)?;
    let sent = hcas[0].stats()?.since(&before[0]);
    let received = hcas[1].stats()?.since(&before[1]);
    let packets = sent.get("send_wrs")?;
    ensure!(packets > 1000, "too few packets to tell: {packets}");
    let number = |value: u64| u32::try_from(value).map(f64::from);
    for (name, count, of) in [
        ("doorbells", sent.get("doorbells")?, packets),
        ("cqes", sent.get("cqes_send")?, packets),
        (
            "rx_posts",
            received.get("recv_posts")?,
            received.get("cqes_recv")?,
        ),
    ] {
        let share = number(count)? / number(of)?;
        guest.figure(&format!("{name}.{driver}"), share, "1");
    }
    guest.keep(
        &format!("{driver}.txt"),
        format!("{sent:?}\n{received:?}\n").as_bytes(),
    );
    if driver != Driver::Stock {
        let text = pair.a.ns.run("ethtool -S ib0")?;
        guest.keep(&format!("{driver}.txt"), text.as_bytes());
    }
    Ok(())
}
