// SPDX-License-Identifier: GPL-2.0-only
//! What a driver implements, and the C functions that call it.

use core::ffi::{c_int, c_uint, c_void};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;

use bindings::{
    header_ops, net_device, net_device_ops, netdev_features_t, netdev_tx_t, rtnl_link_stats64,
    sk_buff,
};

use crate::error::{Errno, Result};
use crate::ethtool::Ethtool;
use crate::netdev::{Device, TxGuard, private};
use crate::rtnl::{Attributes, Message};
use crate::skb::Skb;
use crate::verbs::Hca;

/// Counters of `ip -s link`.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names of struct rtnl_link_stats64")]
pub struct Statistics {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub rx_errors: u64,
    pub rx_dropped: u64,
    pub multicast: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub tx_errors: u64,
    pub tx_dropped: u64,
}

/// A driver of network devices.
pub trait Driver: Ethtool + Send + Sync + Sized + 'static {
    /// What the transmit lock protects.
    type Tx: Send;

    /// Takes resources for a device that is being registered. RTNL is held.
    fn init(dev: &Device<Self>) -> Result;
    /// The device is registered: from now on it may be used by works. RTNL is held.
    fn registered(dev: &Device<Self>);
    /// Gives them back. RTNL is held; nothing calls the device any more.
    fn uninit(dev: &Device<Self>);
    /// Brings the interface up. RTNL is held.
    fn open(dev: &Device<Self>) -> Result;
    /// Brings it down. RTNL is held.
    fn stop(dev: &Device<Self>);
    /// Sends a packet, or drops it. `more` says that another follows at once.
    fn start_xmit(dev: &Device<Self>, tx: &mut Self::Tx, skb: Skb, more: bool);
    /// Puts the link-layer header in front of a packet; returns its length.
    fn header(
        dev: &Device<Self>,
        skb: &mut Skb,
        ether_type: u16,
        to: Option<&[u8; 20]>,
    ) -> Result<u32>;
    /// A completion queue is in error and has to be made anew. Any context.
    fn cq_failed(dev: &Device<Self>);
    /// The queue is stopped for too long.
    fn tx_timeout(dev: &Device<Self>);
    /// The multicast addresses changed. BHs are off.
    fn set_rx_mode(dev: &Device<Self>);
    /// Changes the link-layer address. RTNL is held.
    fn set_address(dev: &Device<Self>, address: &[u8; 20]) -> Result;
    /// Changes the MTU; it lies within the bounds. RTNL is held.
    fn change_mtu(dev: &Device<Self>, mtu: u32) -> Result;
    /// Returns the features, of those wanted, that can be in force; see [`connected_features`]. RTNL is held.
    fn fix_features(dev: &Device<Self>, features: u64) -> u64;
    /// Reads the counters.
    fn statistics(dev: &Device<Self>) -> Statistics;
    /// Returns the interface's index or that of its parent.
    fn iflink(dev: &Device<Self>) -> i32;

    /// Returns the HCA and the port that an interface is on.
    fn port(dev: &Device<Self>) -> (&Hca, u32);
    /// Says whether an interface is the one of a port, a partition (the bit of full membership does not count) and, where
    /// one is told, a GID. The device is registered, or about to go; RTNL is not held.
    fn answers(dev: &Device<Self>, port: u32, pkey: u16, gid: Option<[u8; 16]>) -> bool;
    /// Makes the data of a child.
    fn child(parent: &Device<Self>, attributes: &Attributes<'_>) -> Result<(Self, Self::Tx)>;
    /// Sets what must be in place before a device is registered.
    fn prepare(dev: &Device<Self>);
    /// Changes what the attributes say, or nothing. RTNL is held.
    fn change_link(dev: &Device<Self>, attributes: &Attributes<'_>) -> Result;
    /// Puts the link's attributes into a message.
    fn fill_link(dev: &Device<Self>, message: &mut Message<'_>) -> Result;
}

/// The tables of C functions for one driver.
pub(crate) struct Tables<D>(PhantomData<D>);

impl<D: Driver> Tables<D> {
    const ZERO: net_device_ops = {
        // SAFETY: a table of null pointers is valid.
        unsafe { core::mem::zeroed() }
    };

    pub(crate) const NETDEV: net_device_ops = net_device_ops {
        ndo_init: Some(ndo_init::<D>),
        ndo_uninit: Some(ndo_uninit::<D>),
        ndo_open: Some(ndo_open::<D>),
        ndo_stop: Some(ndo_stop::<D>),
        ndo_start_xmit: Some(ndo_start_xmit::<D>),
        ndo_tx_timeout: Some(ndo_tx_timeout::<D>),
        ndo_set_rx_mode: Some(ndo_set_rx_mode::<D>),
        ndo_set_mac_address: Some(ndo_set_mac_address::<D>),
        ndo_change_mtu: Some(ndo_change_mtu::<D>),
        ndo_fix_features: Some(ndo_fix_features::<D>),
        ndo_get_stats64: Some(ndo_get_stats64::<D>),
        ndo_get_iflink: Some(ndo_get_iflink::<D>),
        ndo_features_check: Some(ndo_features_check::<D>),
        ndo_get_vf_config: Some(crate::vf::get_config::<D>),
        ndo_get_vf_stats: Some(crate::vf::get_stats::<D>),
        ndo_get_vf_guid: Some(crate::vf::get_guid::<D>),
        ndo_set_vf_guid: Some(crate::vf::set_guid::<D>),
        ndo_set_vf_link_state: Some(crate::vf::set_link_state::<D>),
        ..Self::ZERO
    };

    pub(crate) const HEADER: header_ops = header_ops {
        create: Some(header_create::<D>),
        // SAFETY: a table of null pointers is valid.
        ..unsafe { core::mem::zeroed() }
    };
}

unsafe extern "C" fn ndo_init<D: Driver>(dev: *mut net_device) -> c_int {
    // SAFETY: the kernel calls this for devices of this driver, whose data are in place.
    Errno::ret(D::init(unsafe { Device::from_raw(dev) }))
}

unsafe extern "C" fn ndo_uninit<D: Driver>(dev: *mut net_device) {
    // SAFETY: as above.
    D::uninit(unsafe { Device::from_raw(dev) });
    crate::client::forget(dev);
}

unsafe extern "C" fn ndo_open<D: Driver>(dev: *mut net_device) -> c_int {
    // SAFETY: as above.
    Errno::ret(D::open(unsafe { Device::from_raw(dev) }))
}

unsafe extern "C" fn ndo_stop<D: Driver>(dev: *mut net_device) -> c_int {
    // SAFETY: as above.
    D::stop(unsafe { Device::from_raw(dev) });
    0
}

unsafe extern "C" fn ndo_start_xmit<D: Driver>(
    skb: *mut sk_buff,
    dev: *mut net_device,
) -> netdev_tx_t {
    // SAFETY: as above, and the stack holds the transmit lock and gives the packet away.
    unsafe {
        let dev = Device::<D>::from_raw(dev);
        let mut tx = TxGuard::of_stack(dev);
        if let Some(skb) = Skb::from_raw(skb) {
            D::start_xmit(dev, &mut tx, skb, bindings::ipoib_h_xmit_more());
        }
    }
    bindings::NETDEV_TX_OK
}

unsafe extern "C" fn ndo_tx_timeout<D: Driver>(dev: *mut net_device, _queue: c_uint) {
    // SAFETY: as above.
    D::tx_timeout(unsafe { Device::from_raw(dev) });
}

unsafe extern "C" fn ndo_set_rx_mode<D: Driver>(dev: *mut net_device) {
    // SAFETY: as above.
    D::set_rx_mode(unsafe { Device::from_raw(dev) });
}

/// An address follows its family, of 2 bytes, in each kernel's structure.
unsafe extern "C" fn ndo_set_mac_address<D: Driver>(
    dev: *mut net_device,
    address: *mut c_void,
) -> c_int {
    // SAFETY: as above; the kernel gives an address of the device's length, which is 20.
    Errno::ret(unsafe {
        let address = address.cast::<u8>().add(2).cast::<[u8; 20]>().read();
        D::set_address(Device::from_raw(dev), &address)
    })
}

unsafe extern "C" fn ndo_change_mtu<D: Driver>(dev: *mut net_device, mtu: c_int) -> c_int {
    let mtu = u32::try_from(mtu).map_err(|_| Errno::EINVAL);
    // SAFETY: as above.
    Errno::ret(mtu.and_then(|mtu| D::change_mtu(unsafe { Device::from_raw(dev) }, mtu)))
}

unsafe extern "C" fn ndo_fix_features<D: Driver>(
    dev: *mut net_device,
    features: netdev_features_t,
) -> netdev_features_t {
    // SAFETY: as above.
    D::fix_features(unsafe { Device::from_raw(dev) }, features)
}

/// Returns the features, of those given, that connections have.
#[must_use]
pub fn connected_features(features: u64) -> u64 {
    // SAFETY: computes a mask.
    unsafe { bindings::ipoib_h_connected_features(features) }
}

unsafe extern "C" fn ndo_get_stats64<D: Driver>(dev: *mut net_device, to: *mut rtnl_link_stats64) {
    // SAFETY: as above.
    let from = D::statistics(unsafe { Device::from_raw(dev) });
    // SAFETY: the kernel gives a valid structure.
    let to = unsafe { &mut *to };
    to.rx_packets = from.rx_packets;
    to.rx_bytes = from.rx_bytes;
    to.rx_errors = from.rx_errors;
    to.rx_dropped = from.rx_dropped;
    to.multicast = from.multicast;
    to.tx_packets = from.tx_packets;
    to.tx_bytes = from.tx_bytes;
    to.tx_errors = from.tx_errors;
    to.tx_dropped = from.tx_dropped;
}

unsafe extern "C" fn ndo_get_iflink<D: Driver>(dev: *const net_device) -> c_int {
    // SAFETY: as above.
    D::iflink(unsafe { Device::from_raw(dev.cast_mut()) })
}

/// What can't be cut by the device, or by the driver, is segmented by the stack.
unsafe extern "C" fn ndo_features_check<D: Driver>(
    skb: *mut sk_buff,
    dev: *mut net_device,
    features: netdev_features_t,
) -> netdev_features_t {
    // SAFETY: the packet is valid, and borrowed: it is not dropped.
    let borrowed = unsafe { Skb::from_raw(skb) }.map(ManuallyDrop::new);
    // Most packets are small, and this is asked for each.
    if borrowed.is_none_or(|skb| skb.gso_size() == 0) {
        return features;
    }
    // SAFETY: the packet is valid, the device is of this driver.
    unsafe {
        let (hca, _) = D::port(Device::<D>::from_raw(dev));
        bindings::ipoib_h_features_check(skb, features, hca.send_entries())
    }
}

unsafe extern "C" fn header_create<D: Driver>(
    skb: *mut sk_buff,
    dev: *mut net_device,
    ether_type: core::ffi::c_ushort,
    to: *const c_void,
    _from: *const c_void,
    _len: c_uint,
) -> c_int {
    // SAFETY: device and packet are valid; the packet is borrowed and given back below.
    let (dev, skb) = unsafe { (Device::<D>::from_raw(dev), Skb::from_raw(skb)) };
    let Some(mut skb) = skb else {
        return Errno::EINVAL.raw();
    };
    // SAFETY: an address of a device of our type has 20 bytes.
    let to = unsafe { to.cast::<[u8; 20]>().as_ref() };
    let result = D::header(dev, &mut skb, ether_type, to);
    let _borrowed = skb.into_raw();
    result.map_or_else(Errno::raw, |length| length as c_int)
}

pub(crate) unsafe extern "C" fn destructor<D: Driver>(dev: *mut net_device) {
    // SAFETY: the kernel calls this once, after the last reference is gone.
    unsafe { ptr::drop_in_place(private::<D>(dev)) };
}
