// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the SA that take more than one MAD: RMPP, with `saquery` as the receiver.

use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// HCAs of the fabric.
const HCAS: u32 = 16;

/// The tests.
pub(super) const TESTS: &[Task] = &[Task::new(
    "mad.sa_tables",
    "tables of records come complete, over several windows",
    tables,
)
.fabric(Fabric::Managed, HCAS)];

fn tables(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let hcas = usize::try_from(HCAS)?;
    // The switch's port 0 is an end of paths, too.
    let ends = hcas + 1;
    for (line, word, wanted) in [
        ("saquery -N", "NodeRecord dump", ends),
        // The switch has a record for each of its ports.
        ("saquery PIR", "PortInfoRecord dump", ends + hcas),
        ("saquery -x", "LinkRecord dump", 2 * hcas),
        // 289 records of 64 bytes are 93 segments: more than the receiver's window of 64.
        ("saquery -p", "PathRecord dump", ends * ends),
        ("saquery -p --slid 2", "PathRecord dump", ends),
        ("saquery -p --slid 2 --dlid 3", "PathRecord dump", 1),
    ] {
        for _ in 0..3 {
            let text = guest.run(line)?;
            guest.same(line, text.matches(word).count(), wanted)?;
        }
    }
    let nobody = guest.run("saquery -p --slid 2 --dlid 999")?;
    guest.same("paths to nobody", nobody.matches("PathRecord").count(), 0)
}
