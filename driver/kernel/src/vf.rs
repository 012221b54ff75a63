// SPDX-License-Identifier: GPL-2.0-only
//! Virtual functions of an HCA, which its driver's verbs configure: `ip link set ib0 vf 0 …`.

use core::ffi::c_int;

use bindings::{ib_device, ifla_vf_guid, ifla_vf_info, ifla_vf_stats, net_device};

use crate::error::Errno;
use crate::netdev::Device;
use crate::ops::Driver;

/// Returns the HCA and the port whose virtual functions a device speaks for: a child does for none, and a virtual function
/// has none.
///
/// # Safety
///
/// The device is of this driver.
unsafe fn physical<D: Driver>(dev: *mut net_device) -> Option<(*mut ib_device, u32)> {
    // SAFETY: as the caller says; the attributes of an HCA do not change.
    unsafe {
        let dev = Device::<D>::from_raw(dev);
        let (hca, port) = D::port(dev);
        let flags = (*hca.as_ptr()).attrs.kernel_cap_flags;
        let is_virtual = flags & u64::from(bindings::IBK_VIRTUAL_FUNCTION) != 0;
        let is_child = D::iflink(dev) != dev.ifindex();
        (!is_virtual && !is_child).then_some((hca.as_ptr(), port))
    }
}

pub(crate) unsafe extern "C" fn get_config<D: Driver>(
    dev: *mut net_device,
    vf: c_int,
    info: *mut ifla_vf_info,
) -> c_int {
    // SAFETY: the device is of this driver; the structure is the caller's.
    unsafe {
        physical::<D>(dev).map_or(Errno::EOPNOTSUPP.raw(), |(hca, port)| {
            bindings::ib_get_vf_config(hca, vf, port, info)
        })
    }
}

pub(crate) unsafe extern "C" fn get_stats<D: Driver>(
    dev: *mut net_device,
    vf: c_int,
    stats: *mut ifla_vf_stats,
) -> c_int {
    // SAFETY: the device is of this driver; the structure is the caller's.
    unsafe {
        physical::<D>(dev).map_or(Errno::EOPNOTSUPP.raw(), |(hca, port)| {
            bindings::ib_get_vf_stats(hca, vf, port, stats)
        })
    }
}

pub(crate) unsafe extern "C" fn get_guid<D: Driver>(
    dev: *mut net_device,
    vf: c_int,
    node: *mut ifla_vf_guid,
    port_guid: *mut ifla_vf_guid,
) -> c_int {
    // SAFETY: the device is of this driver; the structures are the caller's.
    unsafe {
        physical::<D>(dev).map_or(Errno::EOPNOTSUPP.raw(), |(hca, port)| {
            bindings::ib_get_vf_guid(hca, vf, port, node, port_guid)
        })
    }
}

pub(crate) unsafe extern "C" fn set_guid<D: Driver>(
    dev: *mut net_device,
    vf: c_int,
    guid: u64,
    kind: c_int,
) -> c_int {
    // SAFETY: the device is of this driver.
    unsafe {
        physical::<D>(dev).map_or(Errno::EOPNOTSUPP.raw(), |(hca, port)| {
            bindings::ib_set_vf_guid(hca, vf, port, guid, kind)
        })
    }
}

pub(crate) unsafe extern "C" fn set_link_state<D: Driver>(
    dev: *mut net_device,
    vf: c_int,
    state: c_int,
) -> c_int {
    // SAFETY: the device is of this driver.
    unsafe {
        physical::<D>(dev).map_or(Errno::EOPNOTSUPP.raw(), |(hca, port)| {
            bindings::ib_set_vf_link_state(hca, vf, port, state)
        })
    }
}
