// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon through the lives of IPoIB interfaces: the driver comes after it, settings drift, the
//! driver is loaded anew.

use anyhow::ensure;

use super::{Daemon, LIMIT};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "daemon.stock",
        "the in-tree driver's interfaces are set, healed and set anew after a reload",
        stock,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
    Task::new(
        "daemon.ours",
        "our driver's interfaces are set, healed and set anew after a reload",
        ours,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
    Task::new(
        "daemon.late_pkey",
        "a child is made before its P_Key is in the port's table, and its MTU follows",
        late_pkey,
    )
    .fabric(Fabric::Managed, 2)
    .limit(180),
];

pub(super) fn reads(guest: &Guest, path: &str, wanted: &str) -> Result {
    guest.wait_for(&format!("{path} to be {wanted}"), LIMIT, || {
        let now = guest.read(path)?;
        ensure!(now == wanted, "it is {now}");
        Ok(Some(()))
    })
}

fn stock(guest: &mut Guest) -> Result {
    // The daemon is there before the driver.
    let daemon = Daemon::start(
        guest,
        r#"
[[link]]
match = { driver = "ib_ipoib" }
mode = "datagram"
mtu = 2000
txqueuelen = 300
rx-usecs = "9us"
umcast = "ignore"

[[link.child]]
pkey = 0x8001
mtu = 1900
"#,
    )?;
    ensure!(daemon.status()?.links.is_empty(), "nothing is there yet");
    guest.load("ib_ipoib")?;
    daemon.wait_ok(guest, 4)?;
    for link in ["ib0", "ib1"] {
        reads(guest, &format!("/sys/class/net/{link}/mtu"), "2000")?;
        reads(guest, &format!("/sys/class/net/{link}/umcast"), "1")?;
        reads(guest, &format!("/sys/class/net/{link}.8001/mtu"), "1900")?;
    }
    guest.contains("ethtool", &guest.run("ethtool -c ib0")?, "rx-usecs:\t9")?;

    // Drift from outside: by sysfs, which takes the MTU along, by ip, and by ethtool.
    guest.write("/sys/class/net/ib0/mode", "connected\n")?;
    daemon.wait_log(
        guest,
        &["drift", "link=\"ib0\"", "knob=\"mode\"", "to=\"connected\""],
    )?;
    reads(guest, "/sys/class/net/ib0/mode", "datagram")?;
    reads(guest, "/sys/class/net/ib0/mtu", "2000")?;
    guest.run("ip link set ib0 txqueuelen 5")?;
    reads(guest, "/sys/class/net/ib0/tx_queue_len", "300")?;
    guest.run("ethtool -C ib0 rx-usecs 7")?;
    daemon.wait_log(
        guest,
        &["changed", "knob=\"rx-usecs\"", "from=\"7us\"", "to=\"9us\""],
    )?;
    // This one has no notification: it is polled.
    guest.write("/sys/class/net/ib0/umcast", "0\n")?;
    reads(guest, "/sys/class/net/ib0/umcast", "1")?;
    guest.run("ip link del ib0.8001")?;
    daemon.wait_log(guest, &["child-made", "ib0.8001", "somebody changed it"])?;
    reads(guest, "/sys/class/net/ib0.8001/mtu", "1900")?;
    daemon.wait_ok(guest, 4)?;

    // New interfaces under the old names.
    guest.unload("ib_ipoib")?;
    daemon.wait_log(guest, &["disappeared", "link=\"ib1\""])?;
    guest.load("ib_ipoib")?;
    daemon.wait_ok(guest, 4)?;
    reads(guest, "/sys/class/net/ib0/mtu", "2000")?;
    reads(guest, "/sys/class/net/ib1.8001/mtu", "1900")
}

fn ours(guest: &mut Guest) -> Result {
    let daemon = Daemon::start(
        guest,
        r#"
[[link]]
match = { driver = "ipoib_batch" }
batching = "adaptive"
batch-limit = 17
mtu = 2000
state = "up"
"#,
    )?;
    guest.load("ipoib_batch")?;
    daemon.wait_ok(guest, 2)?;
    reads(guest, "/sys/class/net/ib0/ipoib/batch_limit", "17")?;
    guest.run("ethtool --set-priv-flags ib0 tx-batching off tx-batching-adaptive off")?;
    daemon.wait_log(
        guest,
        &[
            "changed",
            "link=\"ib0\"",
            "knob=\"batching\"",
            "to=\"adaptive\"",
        ],
    )?;
    guest.write("/sys/class/net/ib0/ipoib/batch_limit", "3\n")?;
    reads(guest, "/sys/class/net/ib0/ipoib/batch_limit", "17")?;
    guest.run("ip link set ib1 down")?;
    daemon.wait_log(
        guest,
        &["changed", "link=\"ib1\"", "knob=\"state\"", "to=\"up\""],
    )?;
    daemon.wait_ok(guest, 2)?;
    guest.unload("ipoib_batch")?;
    daemon.wait_log(guest, &["disappeared", "link=\"ib1\""])?;
    guest.load("ipoib_batch")?;
    daemon.wait_ok(guest, 2)?;
    reads(guest, "/sys/class/net/ib0/ipoib/batch_limit", "17")
}

fn late_pkey(guest: &mut Guest) -> Result {
    guest.load("ib_ipoib")?;
    let daemon = Daemon::start(
        guest,
        r#"
[[link]]
match = { name = "ib0" }
state = "up"

[[link.child]]
pkey = 0x8009
name = "late"
state = "up"
mtu = 1800
"#,
    )?;
    daemon.wait_log(guest, &["child-made", "late"])?;
    daemon.wait_ok(guest, 2)?;
    guest.same(
        "carrier",
        guest.read("/sys/class/net/late/carrier")?.as_str(),
        "0",
    )?;
    guest.vhca(0).fault("pkey", "5 0x8009\n")?;
    reads(guest, "/sys/class/net/late/carrier", "1")?;
    reads(guest, "/sys/class/net/late/mtu", "1800")?;
    daemon.wait_ok(guest, 2)
}
