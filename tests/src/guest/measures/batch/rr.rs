// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and responses per second: what a held doorbell would cost.

use super::{Driver, LIMIT, netperf, netserver, result};
use crate::guest::ipoib::Pair;
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.batch_rr",
    "requests and responses over stock, off, on and adaptive, in turns",
    measure,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::COUNTED)
.limit(900)
.allow(KNOWN)];

fn measure(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 3)?;
    let seconds: u32 = guest.arg("seconds", 1)?;
    for _ in 0..rounds {
        for driver in [Driver::Stock, Driver::Off, Driver::On, Driver::Adaptive] {
            driver.with(guest, |guest, pair| rates(guest, pair, driver, seconds))?;
        }
    }
    Ok(())
}

fn rates(guest: &mut Guest, pair: &Pair, driver: Driver, seconds: u32) -> Result {
    let server = netserver(guest, pair)?;
    for (name, test) in [("tcp", "TCP_RR"), ("udp", "UDP_RR")] {
        let line = netperf(pair, seconds.into(), test, "-r 1,1");
        let rate = result(&pair.a.ns.attempt(&line, LIMIT)?.success()?)?;
        guest.figure(&format!("{name}.{driver}"), rate, "1/s");
    }
    drop(server);
    Ok(())
}
