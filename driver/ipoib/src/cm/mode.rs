// SPDX-License-Identifier: GPL-2.0-only
//! Datagram or connected: set through rtnetlink and sysfs. RTNL is held.

use core::sync::atomic::Ordering;

use kernel::error::Result;
use kernel::rtnl;

use super::changed;
use crate::port::Dev;

/// Sets the mode. As in-tree: connected mode takes the checksum and segmentation offloads away and sets the largest MTU;
/// datagram mode gives the offloads back and brings the MTU down to that of datagrams.
///
/// # Errors
///
/// Nothing is changed.
pub(crate) fn set(dev: &Dev, connected: bool) -> Result {
    let port = dev.data();
    if port.is_connected() == connected {
        return Ok(());
    }
    let mtu = if connected {
        port.connected_mtu()
    } else {
        dev.mtu().min(port.datagram_mtu())
    };
    let previous = dev.max_mtu();
    if connected {
        dev.set_mtu_bounds(68, mtu);
    }
    port.connected.store(connected, Ordering::Release);
    // A packet that is larger than what carries it would be lost: the MTU is small whenever only datagrams go.
    let changed_mtu = dev.set_mtu(mtu);
    if let Err(errno) = changed_mtu {
        port.connected.store(!connected, Ordering::Release);
        dev.set_mtu_bounds(68, previous);
        return Err(errno);
    }
    if !connected {
        dev.set_mtu_bounds(68, port.ud_mtu);
    }
    dev.keep_routes(connected);
    dev.update_features();
    {
        let mut tx = dev.tx_lock();
        super::send::flush(dev, &mut tx, ipoib_core::batch::Flush::Quiesce);
        tx.cm.on = connected && tx.up;
    }
    changed(dev);
    rtnl::notify(dev);
    Ok(())
}
