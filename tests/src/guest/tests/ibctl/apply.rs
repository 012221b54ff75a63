// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl apply` on real IPoIB interfaces: modes with their MTUs, P_Key children, taking back.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{LIMIT, ibctl};
use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "ibctl.apply",
    "a host is applied, refused, confirmed and taken back",
    apply,
)
.fabric(Fabric::Managed, 2)
.limit(120)];

const FILE: &str = "/tmp/fabric.toml";

fn apply(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let end = &pair.a;
    let dev = &end.dev;
    let kid = End {
        dev: "kid".to_owned(),
        ..end.clone()
    };
    let state = || -> Result<[String; 4]> {
        Ok([
            end.detail("linkinfo/info_data/mode")?,
            end.detail("mtu")?,
            kid.detail("linkinfo/info_data/mode")?,
            kid.detail("mtu")?,
        ])
    };
    let connected = format!(
        "[[link]]\nmatch = {{ name = \"{dev}\" }}\nmode = \"connected\"\nmtu = 60000\n\
         [[link.child]]\npkey = 0x0002\nname = \"kid\"\nmode = \"connected\"\nmtu = 50000\n"
    );
    guest.write(FILE, &connected)?;
    ibctl(end, &format!("apply {FILE}"), 0)?;
    let applied = ["connected", "60000", "connected", "50000"].map(str::to_owned);
    guest.same("what was applied", state()?, applied.clone())?;
    let again = ibctl(end, &format!("apply {FILE} -o json"), 0)?.stdout;
    guest.contains("the second time", &again, "nothing-to-do")?;

    // The mode goes back to datagram, its MTU with it, and then the kernel refuses 9000: the mode, the
    // MTU of before, and the child are there again, the child even with its index.
    let index = kid.detail("ifindex")?;
    let refused = format!(
        "[[link]]\nmatch = {{ name = \"{dev}\" }}\nmode = \"datagram\"\nmtu = 9000\n\
         [[link.child]]\npkey = 0x8002\npresent = false\n"
    );
    guest.write(FILE, &refused)?;
    let output = ibctl(end, &format!("apply {FILE}"), 7)?;
    guest.contains("the reason", &output.to_string(), "everything was put back")?;
    guest.same("what was put back", state()?, applied.clone())?;
    guest.same("the child's index", kid.detail("ifindex")?, index)?;

    // Nobody confirms: the mode flips there and back, and a child comes and goes.
    let unconfirmed = format!(
        "[[link]]\nmatch = {{ name = \"{dev}\" }}\nmode = \"datagram\"\n\
         [[link.child]]\npkey = 0x8003\nname = \"guest\"\n"
    );
    guest.write(FILE, &unconfirmed)?;
    ibctl(end, &format!("apply {FILE} --confirm-within 8s"), 0)?;
    guest.same(
        "the mode",
        end.detail("linkinfo/info_data/mode")?.as_str(),
        "datagram",
    )?;
    let start = Instant::now();
    while !ibctl(end, "status -o json", 0)?
        .stdout
        .contains("rolled-back\"")
    {
        ensure!(
            start.elapsed() < Duration::from_secs(60),
            "it is not taken back"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    guest.same("what was taken back", state()?, applied)?;
    let shown = end.ns.attempt("ip link show guest", LIMIT)?;
    ensure!(
        !shown.status.success(),
        "the new child is still there:\n{shown}"
    );

    // And a child that is declared absent goes.
    guest.write(FILE, &refused.replace("mtu = 9000", "mtu = 2000"))?;
    ibctl(end, &format!("apply {FILE}"), 0)?;
    guest.same("the MTU", end.detail("mtu")?.as_str(), "2000")?;
    let shown = end.ns.attempt("ip link show kid", LIMIT)?;
    ensure!(
        !shown.status.success(),
        "the child is still there:\n{shown}"
    );
    Ok(())
}
