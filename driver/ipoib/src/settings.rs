// SPDX-License-Identifier: GPL-2.0-only
//! The knobs, whatever interface they are set through. RTNL is held by all that set.

use core::sync::atomic::Ordering;

use ipoib_core::batch::{Batch, Flush, Mode};
use kernel::error::Errno;
use kernel::ethtool::{Refusal, Rings};

use crate::port::Dev;
use crate::{cm, life, tx};

/// Returns the batching settings.
pub(crate) fn batch(dev: &Dev) -> Batch {
    dev.tx_lock().batch
}

/// Sets the mode.
pub(crate) fn set_mode(dev: &Dev, mode: Mode) {
    change(dev, |batch| batch.mode = mode);
}

/// Sets the frames that one doorbell covers, which must lie within the limits.
pub(crate) fn set_limit(dev: &Dev, limit: u32) {
    change(dev, |batch| batch.limit = limit);
}

/// What was held under the old settings goes out before the new ones hold.
fn change(dev: &Dev, set: impl FnOnce(&mut Batch)) {
    let mut tx = dev.tx_lock();
    tx::post(dev, &mut tx, &dev.data().counters, Flush::Quiesce);
    cm::send::flush(dev, &mut tx, Flush::Quiesce);
    set(&mut tx.batch);
}

/// Returns the payload bytes up to which a message of a connection is copied.
pub(crate) fn copybreak(dev: &Dev) -> u32 {
    dev.data().copybreak.load(Ordering::Relaxed)
}

/// Sets them; they must lie within the limits.
pub(crate) fn set_copybreak(dev: &Dev, bytes: u32) {
    dev.data().copybreak.store(bytes, Ordering::Relaxed);
}

/// Sets whether groups that user space joined by itself are left alone.
pub(crate) fn set_umcast(dev: &Dev, on: bool) {
    let port = dev.data();
    port.umcast.store(on, Ordering::Relaxed);
    port.works.multicast.queue(dev, 0);
}

/// Sets the ring sizes, which takes another queue pair.
pub(crate) fn set_rings(dev: &Dev, rings: Rings) -> Result<(), Refusal> {
    let port = dev.data();
    let old = *port.rings.lock();
    if old == rings {
        return Ok(());
    }
    let running = dev.is_running();
    life::stop(dev);
    life::uninit(dev);
    *port.rings.lock() = rings;
    let mut result = life::init(dev);
    if result.is_err() {
        *port.rings.lock() = old;
        if let Err(errno) = life::init(dev) {
            kernel::error!(
                "{}: no queue pair, not even with the old ring sizes, {errno}",
                dev.name()
            );
        }
    }
    if running {
        result = result.and(life::start(dev).map(|_| ()));
    }
    result.map_err(|errno: Errno| {
        (
            errno,
            c"the HCA or the memory does not allow rings of these sizes",
        )
    })
}
