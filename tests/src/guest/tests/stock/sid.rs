// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Debian unstable's newer kernel: our module builds for it, loads and carries.

use anyhow::ensure;

use super::KNOWN;
use crate::guest::ipoib::{Mode, Pair};
use crate::guest::task::{Fabric, Kernel, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "sid.datagram_ping",
        "unstable's kernel under opensm, datagram mode",
        datagram,
    )
    .kernel(Kernel::Sid)
    .fabric(Fabric::OpenSm, 2)
    .allow(KNOWN),
    Task::new(
        "sid.connected_ping",
        "unstable's kernel, connected mode",
        connected,
    )
    .kernel(Kernel::Sid)
    .fabric(Fabric::Managed, 2)
    .allow(KNOWN),
];

fn datagram(guest: &mut Guest) -> Result {
    let release = guest.read("/proc/sys/kernel/osrelease")?;
    ensure!(
        !release.starts_with("6.12."),
        "this is Debian 13's kernel {release}"
    );
    let pair = Pair::stock(guest, Mode::Datagram)?;
    pair.ping(5, 56)?;
    pair.ping(3, 8000)
}

fn connected(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Connected)?;
    pair.ping(5, 56)?;
    pair.ping(3, 60000)
}
