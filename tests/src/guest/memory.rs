// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel holds, to find what it holds for nobody.

use std::thread;
use std::time::Duration;

use anyhow::bail;

use super::{Guest, Result};

/// Returns the memory that the kernel can't free, in kB: slabs, vmalloc and per-CPU.
///
/// # Errors
///
/// When `/proc/meminfo` doesn't tell.
pub fn used_kb(guest: &Guest) -> Result<u64> {
    thread::sleep(Duration::from_millis(500));
    guest.write("/proc/sys/vm/drop_caches", "3")?;
    let text = guest.read("/proc/meminfo")?;
    let field = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        let Some(number) = number else {
            bail!("/proc/meminfo has no {name}")
        };
        Ok(number.parse()?)
    };
    Ok(field("SUnreclaim:")? + field("VmallocUsed:")? + field("Percpu:")?)
}

/// Returns the objects of a slab cache that are in use. Exact in machines of the shape `CHECKED`:
/// a checked cache keeps no free objects per CPU.
///
/// # Errors
///
/// When there is no such cache.
pub fn objects(guest: &Guest, cache: &str) -> Result<u64> {
    let text = guest.read(format!("/sys/kernel/slab/{cache}/objects"))?;
    let number = text.split_whitespace().next().unwrap_or_default();
    Ok(number.parse()?)
}
