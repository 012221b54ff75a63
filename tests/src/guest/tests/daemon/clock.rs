// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon while somebody sets the clock: it works by the time since boot.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::ensure;

use super::life::reads;
use super::{Daemon, LIMIT};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "daemon.clock_jumps",
    "healing, polling and a pending confirmation go on when the clock is set",
    clock_jumps,
)
.fabric(Fabric::Managed, 2)
.limit(180)];

const DAY: i64 = 86_400;

/// Moves the clock by so many seconds.
fn jump(guest: &Guest, seconds: i64) -> Result {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    guest.run(&format!("date -s @{}", now + seconds))?;
    let then = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    ensure!((then - now - seconds).abs() < 5, "the clock did not jump");
    Ok(())
}

fn clock_jumps(guest: &mut Guest) -> Result {
    let daemon = Daemon::start(
        guest,
        "[[link]]\nmatch = { driver = \"ib_ipoib\" }\ntxqueuelen = 300\numcast = \"ignore\"\n",
    )?;
    guest.load("ib_ipoib")?;
    daemon.wait_ok(guest, 2)?;
    for seconds in [DAY, -2 * DAY, DAY] {
        jump(guest, seconds)?;
        guest.run("ip link set ib0 txqueuelen 5")?;
        reads(guest, "/sys/class/net/ib0/tx_queue_len", "300")?;
        // This one is polled.
        guest.write("/sys/class/net/ib0/umcast", "0\n")?;
        reads(guest, "/sys/class/net/ib0/umcast", "1")?;
    }
    let file = "/tmp/clock.toml";
    guest.write(
        file,
        "[[link]]\nmatch = { name = \"ib0\" }\ntxqueuelen = 400\n",
    )?;
    let begun = Instant::now();
    guest.run(&format!("ibctl apply {file} --confirm-within 10s"))?;
    // Not at once, though the time that was written down has passed by the clock; and not in two days.
    jump(guest, DAY)?;
    thread::sleep(Duration::from_secs(3));
    reads(guest, "/sys/class/net/ib0/tx_queue_len", "400")?;
    ensure!(
        begun.elapsed() < Duration::from_secs(9),
        "this machine is too slow to tell"
    );
    jump(guest, -2 * DAY)?;
    reads(guest, "/sys/class/net/ib0/tx_queue_len", "300")?;
    ensure!(
        begun.elapsed() >= Duration::from_secs(9) && begun.elapsed() < LIMIT * 2,
        "taken back after {:?}",
        begun.elapsed()
    );
    jump(guest, DAY)?;
    daemon.wait_ok(guest, 2)
}
