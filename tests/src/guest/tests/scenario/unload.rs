// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Modules that go while packets flow, and come back.

use anyhow::ensure;

use super::Setup;
use crate::guest::ipoib::{End, Pair};
use crate::guest::{Guest, Result, traffic};

pub(super) fn driver(guest: &Guest, setup: Setup) -> Result {
    let rounds: usize = if guest.long() { 20 } else { 2 };
    for round in 0..rounds {
        let pair = setup.pair(guest)?;
        let load = traffic::start(guest, &pair)?;
        let mut modules = setup.modules().to_vec();
        if round % 2 == 1 {
            modules.reverse();
        }
        for module in modules {
            guest.unload(module)?;
            ensure!(!guest.is_loaded(module)?, "{module} is still loaded");
        }
        drop(load);
        for end in [&pair.a, &pair.b] {
            ensure_gone(end)?;
            guest.run(&format!("ip netns del {}", end.ns.name()))?;
        }
    }
    Ok(())
}

pub(super) fn hca(guest: &Guest, setup: Setup) -> Result {
    guest.load("vhca hcas=2 managed=1")?;
    let pair: Pair = setup.pair(guest)?;
    let load = traffic::start(guest, &pair)?;
    guest.unload("vhca")?;
    drop(load);
    ensure_gone(&pair.a)?;
    ensure_gone(&pair.b)
}

fn ensure_gone(end: &End) -> Result {
    let links = end.ns.run("ip -br link")?;
    ensure!(
        !links.contains(&end.dev),
        "{} outlived its driver:\n{links}",
        end.dev
    );
    Ok(())
}
