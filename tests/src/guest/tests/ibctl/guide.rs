// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `docs/ibctl.md`: what the guide shows happens on a real ib0.

use std::fs;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::shown::compare;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

pub(super) const TESTS: &[Task] = &[Task::new(
    "ibctl.guide",
    "the guide shows what ibctl does on a real ib0",
    guide,
)
.fabric(Fabric::Managed, 2)
.limit(120)];

/// The page, as it was when this program was built.
const PAGE: &str = include_str!("../../../../../docs/ibctl.md");

fn guide(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    // An earlier round left files, and the page makes them anew.
    for entry in fs::read_dir("/tmp")? {
        let path = entry?.path();
        if path.is_file() {
            fs::remove_file(path)?;
        }
    }
    compare(guest, &pair.a.ns, "docs/ibctl.md", PAGE, 15)
}
