// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures of the lab itself.

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The measures.
pub const MEASURES: &[Task] = &[Task::new(
    "measure.first_ping",
    "from power-on to a ping over IPoIB",
    first_ping,
)
.fabric(Fabric::Managed, 2)];

/// Reports the machine's uptime when the first ping had its answer.
fn first_ping(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    pair.a.ping(&pair.b, &pair.b.v4, 1, 56)?;
    let uptime = guest.read("/proc/uptime")?;
    let uptime = uptime.split(' ').next().unwrap_or_default().parse()?;
    guest.figure("uptime", uptime, "s");
    Ok(())
}
