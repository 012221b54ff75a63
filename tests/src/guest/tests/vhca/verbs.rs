// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verbs by the book: `tests/vhca/selftest`, a kernel module whose loading runs its cases.

use anyhow::{bail, ensure};

use crate::guest::task::{Fabric, Kernel, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "vhca.verbs",
        "sends, receives, errors and events are as the specification says",
        verbs,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new("vhca.verbs_sid", "the same, on Debian sid's kernel", verbs)
        .kernel(Kernel::Sid)
        .fabric(Fabric::Managed, 2)
        .limit(120),
    Task::new(
        "vhca.verbs_can_fail",
        "loading the cases fails when none passes",
        can_fail,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "vhca.user_space",
        "user space sees the HCAs, and is refused queues of its own",
        user_space,
    )
    .fabric(Fabric::Managed, 2),
];

fn verbs(guest: &mut Guest) -> Result {
    let loaded = guest.load("vhca_selftest");
    let log = guest.run("dmesg")?;
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("vhca_selftest: "))
        // Another test may have asked it something before.
        .filter(|line| {
            !["ok", "lookup"]
                .iter()
                .any(|word| line.contains(&format!("vhca_selftest: {word} ")))
        })
        .collect();
    if let Err(error) = loaded {
        bail!("{}\n{error:#}", said.join("\n"));
    }
    ensure!(
        said.len() == 1 && said.iter().all(|line| line.contains(" 0 failed")),
        "the cases said:\n{}",
        said.join("\n")
    );
    guest.unload("vhca_selftest")
}

fn can_fail(guest: &mut Guest) -> Result {
    let output = guest.attempt("modprobe vhca_selftest only=no_case_has_this_name")?;
    ensure!(
        !output.status.success(),
        "a run without a case passed:\n{output}"
    );
    Ok(())
}

fn user_space(guest: &mut Guest) -> Result {
    guest.load("ib_uverbs")?;
    let info = guest.run("ibv_devinfo -d vhca1")?;
    for line in [
        "PORT_ACTIVE",
        "link_layer:\t\tInfiniBand",
        "vendor_part_id:",
    ] {
        ensure!(info.contains(line), "no {line} in:\n{info}");
    }
    let refused = guest.attempt("ibv_rc_pingpong -d vhca0")?;
    ensure!(
        !refused.status.success(),
        "a user's queue pair was made:\n{refused}"
    );
    Ok(())
}
