// SPDX-License-Identifier: GPL-2.0-only
//! ethtool.

use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::{mem, slice};

use bindings::{
    ethtool_coalesce, ethtool_drvinfo, ethtool_link_ksettings, ethtool_ops, ethtool_ringparam,
    ethtool_stats, kernel_ethtool_coalesce, kernel_ethtool_ringparam, net_device, netlink_ext_ack,
};

use crate::error::{Errno, Result};
use crate::netdev::{Device, Driver, copy_text};

/// Bytes of a name in a string set (include/uapi/linux/ethtool.h, `ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// Ring sizes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rings {
    /// Slots of the receive ring.
    pub rx: u32,
    /// Slots of the transmit ring.
    pub tx: u32,
}

/// Coalescing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Coalesce {
    /// Microseconds that a receive event waits.
    pub rx_usecs: u32,
    /// Received frames that end the wait.
    pub rx_frames: u32,
    /// Frames that one transmit doorbell covers.
    pub tx_frames: u32,
}

/// A refusal with its reason.
pub type Refusal = (Errno, &'static CStr);

/// What a driver tells ethtool.
pub trait Ethtool: Sized {
    /// Names of the counters.
    const COUNTERS: &'static [&'static str];
    /// Names of the private flags, the lowest bit first.
    const FLAGS: &'static [&'static str];
    /// Largest ring sizes.
    const MAX_RINGS: Rings;

    /// Name of the driver.
    const NAME: &'static str;
    /// Version of the driver.
    const VERSION: &'static str;
    /// Version of the HCA's firmware, NUL-terminated.
    fn firmware(dev: &Device<Self>) -> [u8; 32];
    /// Reads the counters, in the order of their names.
    fn counters(dev: &Device<Self>, values: &mut [u64]);
    /// Reads the private flags.
    fn flags(dev: &Device<Self>) -> u32;
    /// Sets all private flags. RTNL is held.
    fn set_flags(dev: &Device<Self>, flags: u32) -> Result;
    /// Reads the ring sizes.
    fn rings(dev: &Device<Self>) -> Rings;
    /// Sets the ring sizes. RTNL is held.
    fn set_rings(dev: &Device<Self>, rings: Rings) -> core::result::Result<(), Refusal>;
    /// Reads the coalescing.
    fn coalesce(dev: &Device<Self>) -> Coalesce;
    /// Sets the coalescing. RTNL is held.
    fn set_coalesce(dev: &Device<Self>, coalesce: Coalesce) -> core::result::Result<(), Refusal>;
    /// Reads the tunable `rx-copybreak`: bytes of a packet that is copied.
    fn copybreak(dev: &Device<Self>) -> u32;
    /// Sets it. RTNL is held.
    fn set_copybreak(dev: &Device<Self>, bytes: u32) -> Result;
    /// Speed in Mbit/s, when known.
    fn speed(dev: &Device<Self>) -> Option<u32>;
}

struct Table<D>(PhantomData<D>);

impl<D: Driver> Table<D> {
    const OPS: ethtool_ops = ethtool_ops {
        supported_coalesce_params: bindings::IPOIB_H_COALESCE as u32,
        get_drvinfo: Some(get_drvinfo::<D>),
        get_link: Some(bindings::ethtool_op_get_link),
        get_coalesce: Some(get_coalesce::<D>),
        set_coalesce: Some(set_coalesce::<D>),
        get_ringparam: Some(get_ringparam::<D>),
        set_ringparam: Some(set_ringparam::<D>),
        get_strings: Some(get_strings::<D>),
        get_sset_count: Some(get_sset_count::<D>),
        get_ethtool_stats: Some(get_ethtool_stats::<D>),
        get_priv_flags: Some(get_priv_flags::<D>),
        set_priv_flags: Some(set_priv_flags::<D>),
        get_tunable: Some(get_tunable::<D>),
        set_tunable: Some(set_tunable::<D>),
        get_link_ksettings: Some(get_link_ksettings::<D>),
        // SAFETY: a table of null pointers is valid.
        ..unsafe { mem::zeroed() }
    };
}

pub(crate) fn table<D: Driver>() -> *const ethtool_ops {
    &Table::<D>::OPS
}

fn answer(extack: *mut netlink_ext_ack, result: core::result::Result<(), Refusal>) -> c_int {
    Errno::ret(result.map_err(|(errno, why)| crate::rtnl::refuse(extack, errno, why)))
}

// SAFETY of all that follow: ethtool calls them with RTNL held, for devices of this driver, with valid structures.

unsafe extern "C" fn get_drvinfo<D: Driver>(dev: *mut net_device, info: *mut ethtool_drvinfo) {
    // SAFETY: see above; the parent of an IPoIB device is the HCA's.
    unsafe {
        copy_text(&mut (*info).driver, D::NAME);
        copy_text(&mut (*info).version, D::VERSION);
        copy_text(
            &mut (*info).fw_version,
            crate::netdev::c_str(&D::firmware(Device::from_raw(dev))),
        );
        if let Some(name) = bindings::ipoib_h_parent_name(dev).as_ref() {
            copy_text(
                &mut (*info).bus_info,
                CStr::from_ptr(name).to_str().unwrap_or(""),
            );
        }
    }
}

unsafe extern "C" fn get_coalesce<D: Driver>(
    dev: *mut net_device,
    to: *mut ethtool_coalesce,
    _kernel: *mut kernel_ethtool_coalesce,
    _extack: *mut netlink_ext_ack,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        let from = D::coalesce(Device::from_raw(dev));
        (*to).rx_coalesce_usecs = from.rx_usecs;
        (*to).rx_max_coalesced_frames = from.rx_frames;
        (*to).tx_max_coalesced_frames = from.tx_frames;
    }
    0
}

unsafe extern "C" fn set_coalesce<D: Driver>(
    dev: *mut net_device,
    from: *mut ethtool_coalesce,
    _kernel: *mut kernel_ethtool_coalesce,
    extack: *mut netlink_ext_ack,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        let to = Coalesce {
            rx_usecs: (*from).rx_coalesce_usecs,
            rx_frames: (*from).rx_max_coalesced_frames,
            tx_frames: (*from).tx_max_coalesced_frames,
        };
        answer(extack, D::set_coalesce(Device::from_raw(dev), to))
    }
}

unsafe extern "C" fn get_ringparam<D: Driver>(
    dev: *mut net_device,
    to: *mut ethtool_ringparam,
    _kernel: *mut kernel_ethtool_ringparam,
    _extack: *mut netlink_ext_ack,
) {
    // SAFETY: see above.
    unsafe {
        let from = D::rings(Device::from_raw(dev));
        (*to).rx_pending = from.rx;
        (*to).tx_pending = from.tx;
        (*to).rx_max_pending = D::MAX_RINGS.rx;
        (*to).tx_max_pending = D::MAX_RINGS.tx;
    }
}

unsafe extern "C" fn set_ringparam<D: Driver>(
    dev: *mut net_device,
    from: *mut ethtool_ringparam,
    _kernel: *mut kernel_ethtool_ringparam,
    extack: *mut netlink_ext_ack,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        let to = Rings {
            rx: (*from).rx_pending,
            tx: (*from).tx_pending,
        };
        answer(extack, D::set_rings(Device::from_raw(dev), to))
    }
}

fn set<D: Driver>(set: u32) -> &'static [&'static str] {
    match set {
        bindings::ETH_SS_STATS => D::COUNTERS,
        bindings::ETH_SS_PRIV_FLAGS => D::FLAGS,
        _ => &[],
    }
}

unsafe extern "C" fn get_sset_count<D: Driver>(_dev: *mut net_device, which: c_int) -> c_int {
    match set::<D>(which as u32).len() {
        0 => Errno::EOPNOTSUPP.raw(),
        n => n as c_int,
    }
}

unsafe extern "C" fn get_strings<D: Driver>(_dev: *mut net_device, which: u32, to: *mut u8) {
    let names = set::<D>(which);
    // SAFETY: ethtool allocates 32 bytes for each string of the set.
    let to =
        unsafe { slice::from_raw_parts_mut(to.cast::<core::ffi::c_char>(), names.len() * NAME) };
    for (to, name) in to.chunks_exact_mut(NAME).zip(names) {
        copy_text(to, name);
    }
}

unsafe extern "C" fn get_ethtool_stats<D: Driver>(
    dev: *mut net_device,
    _stats: *mut ethtool_stats,
    to: *mut u64,
) {
    // SAFETY: ethtool allocates a number for each string of the set.
    unsafe {
        D::counters(
            Device::from_raw(dev),
            slice::from_raw_parts_mut(to, D::COUNTERS.len()),
        )
    };
}

unsafe extern "C" fn get_priv_flags<D: Driver>(dev: *mut net_device) -> u32 {
    // SAFETY: see above.
    D::flags(unsafe { Device::from_raw(dev) })
}

unsafe extern "C" fn set_priv_flags<D: Driver>(dev: *mut net_device, flags: u32) -> c_int {
    // SAFETY: see above.
    Errno::ret(D::set_flags(unsafe { Device::from_raw(dev) }, flags))
}

unsafe extern "C" fn get_tunable<D: Driver>(
    dev: *mut net_device,
    which: *const bindings::ethtool_tunable,
    to: *mut c_void,
) -> c_int {
    // SAFETY: see above; ethtool checked that the value of this tunable has 32 bits.
    unsafe {
        if (*which).id != bindings::ETHTOOL_RX_COPYBREAK {
            return Errno::EOPNOTSUPP.raw();
        }
        to.cast::<u32>()
            .write_unaligned(D::copybreak(Device::from_raw(dev)));
    }
    0
}

unsafe extern "C" fn set_tunable<D: Driver>(
    dev: *mut net_device,
    which: *const bindings::ethtool_tunable,
    from: *const c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        if (*which).id != bindings::ETHTOOL_RX_COPYBREAK {
            return Errno::EOPNOTSUPP.raw();
        }
        let bytes = from.cast::<u32>().read_unaligned();
        Errno::ret(D::set_copybreak(Device::from_raw(dev), bytes))
    }
}

unsafe extern "C" fn get_link_ksettings<D: Driver>(
    dev: *mut net_device,
    to: *mut ethtool_link_ksettings,
) -> c_int {
    // SAFETY: see above.
    let speed = D::speed(unsafe { Device::from_raw(dev) });
    // SAFETY: see above.
    let base = unsafe { &mut (*to).base };
    base.speed = speed.unwrap_or(bindings::SPEED_UNKNOWN as u32);
    base.duplex = if speed.is_some() {
        bindings::DUPLEX_FULL
    } else {
        bindings::DUPLEX_UNKNOWN
    } as u8;
    base.autoneg = 0;
    // PORT_OTHER.
    base.port = 0xff;
    0
}
