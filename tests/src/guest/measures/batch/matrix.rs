// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The matrix of the 2007 measurements: TCP with and without delay, by size of the sends and number of processes.

use anyhow::ensure;

use super::{Driver, LIMIT, netperf, netserver, result};
use crate::guest::ipoib::Pair;
use crate::guest::process;
use crate::guest::task::{Fabric, Task};
use crate::guest::tests::stock::KNOWN;
use crate::guest::{Guest, Result};
use crate::lab::machine::Shape;

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.batch_matrix",
    "throughput over stock, off, on and adaptive, in turns, by size and processes",
    measure,
)
.fabric(Fabric::Managed, 2)
.shape(Shape::COUNTED)
.limit(7200)
.allow(KNOWN)];

/// Numbers of a comma-separated argument.
fn numbers(guest: &Guest, name: &str) -> Result<Vec<u32>> {
    let text: String = guest.arg(name, String::new())?;
    let numbers = text.split(',').map(|word| Ok(word.parse()?));
    numbers.collect()
}

fn measure(guest: &mut Guest) -> Result {
    let rounds: u32 = guest.arg("rounds", 3)?;
    let seconds: u32 = guest.arg("seconds", 1)?;
    let doorbell: String = guest.arg("doorbell_ns", "0".to_owned())?;
    let (sizes, processes) = (numbers(guest, "sizes")?, numbers(guest, "processes")?);
    guest.write("/sys/module/vhca/parameters/doorbell_ns", &doorbell)?;
    for _ in 0..rounds {
        for driver in [Driver::Stock, Driver::Off, Driver::On, Driver::Adaptive] {
            driver.with(guest, |guest, pair| {
                let server = netserver(guest, pair)?;
                for (kind, option) in [("tcp", ""), ("nodelay", " -D")] {
                    for size in &sizes {
                        for count in &processes {
                            let options = format!("-m {size}{option}");
                            let rate = throughput(pair, *count, seconds, &options)?;
                            let name = format!("{kind}.{size}.{count}.{driver}");
                            guest.figure(&name, rate, "Mbit/s");
                        }
                    }
                }
                drop(server);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Returns the sum over so many processes that send at the same time, in Mbit/s.
fn throughput(pair: &Pair, count: u32, seconds: u32, options: &str) -> Result<f64> {
    let line = netperf(pair, seconds.into(), "TCP_STREAM", options);
    let running: Result<Vec<_>> = (0..count).map(|_| pair.a.ns.start(&line)).collect();
    let mut sum = 0.0;
    for one in running? {
        sum += result(&process::finish(one, LIMIT)?.success()?)?;
    }
    ensure!(sum > 0.0, "nothing was sent: {line}");
    Ok(sum)
}
