// SPDX-License-Identifier: GPL-2.0-only
//! Coming and going of HCAs and of the devices on them.

use core::ffi::{CStr, c_int, c_uchar, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use bindings::{ib_client, ib_device, ib_gid, list_head, net_device, sockaddr};

use crate::alloc::{Context, KBox};
use crate::error::{Errno, Result};
use crate::netdev::{Device, Driver, Private, Rtnl, private};
use crate::ops::destructor;
use crate::verbs::Hca;

/// A device of ours, in the list of all. The list changes under RTNL and [`ListLock`]; either is enough to read it.
struct Entry {
    next: *mut Self,
    dev: *mut net_device,
    hca: *mut ib_device,
    /// The interface that it is a child of, or null.
    parent: *mut net_device,
}

static DEVICES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// The list does not change while this lives. Nobody waits for anything else while they have it.
struct ListLock;

impl ListLock {
    fn take() -> Self {
        // SAFETY: process context; it is given back by dropping.
        unsafe { bindings::ipoib_h_list_lock() };
        Self
    }
}

impl Drop for ListLock {
    fn drop(&mut self) {
        // SAFETY: taken by `take`.
        unsafe { bindings::ipoib_h_list_unlock() };
    }
}

/// What is told of HCAs.
pub trait Client {
    /// An HCA is there. An error means that none of its ports is taken.
    fn add(hca: &Hca) -> Result;
}

/// The registration as a client of HCAs; dropping it removes all devices.
pub struct Registration(KBox<ib_client>);

impl Registration {
    /// Registers; `add` is called for each HCA, now and later.
    pub fn new<C: Client, D: Driver>() -> Result<Self> {
        let client = ib_client {
            name: c"ipoib_batch".as_ptr(),
            add: Some(add::<C>),
            remove: Some(remove),
            get_net_dev_by_params: Some(by_params::<D>),
            ..Default::default()
        };
        let client = KBox::new(client, Context::Process)?;
        // SAFETY: the client is boxed and lives until it is unregistered.
        Errno::check(unsafe { bindings::ib_register_client(client.as_ptr()) })?;
        Ok(Self(client))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered by `new`.
        unsafe { bindings::ib_unregister_client(self.0.as_ptr()) };
    }
}

/// Says whether a port is an InfiniBand port.
#[must_use]
pub fn is_infiniband(hca: &Hca, port: u32) -> bool {
    // SAFETY: the device is valid; a port out of range is no port of its table.
    unsafe {
        port >= 1
            && port <= (*hca.as_ptr()).phys_port_cnt
            && bindings::ipoib_h_is_ib_port(hca.as_ptr(), port)
    }
}

/// Says whether the HCA brings its own IPoIB netdev for a port.
#[must_use]
pub fn is_accelerated(hca: &Hca, port: u32) -> bool {
    // SAFETY: the device is valid.
    unsafe { bindings::ipoib_h_is_accelerated(hca.as_ptr(), port) }
}

/// Returns the number of ports.
#[must_use]
pub fn ports(hca: &Hca) -> u32 {
    // SAFETY: the device is valid.
    unsafe { (*hca.as_ptr()).phys_port_cnt }
}

/// Makes and registers a device on a port. `setup` sets what must be in place before.
pub fn create<D: Driver>(
    hca: &Hca,
    port: u32,
    name: &CStr,
    make: impl FnOnce() -> Result<(D, D::Tx)>,
    setup: fn(&Device<D>),
) -> Result {
    let size = size_of::<Private<D>>() as c_int;
    // SAFETY: the setup function fits the driver.
    let dev = unsafe {
        bindings::alloc_netdev_mqs(
            size,
            name.as_ptr(),
            bindings::NET_NAME_ENUM as c_uchar,
            Some(crate::rtnl::setup::<D>),
            1,
            bindings::IPOIB_H_RX_QUEUES as c_uint,
        )
    };
    if dev.is_null() {
        return Err(Errno::ENOMEM);
    }
    let rtnl = Rtnl::lock();
    // SAFETY: the device is new, of this size, and RTNL is held.
    let result = unsafe {
        (*dev).rtnl_link_ops = crate::rtnl::ops();
        register(dev, ptr::null_mut(), hca, port, make, setup)
    };
    drop(rtnl);
    // Without RTNL, which works that the data wait for may want.
    // SAFETY: the device is given up, if it is not registered.
    result.map_err(|failure| unsafe { give_up::<D>(dev, failure) })
}

/// Frees a device that could not be registered.
///
/// # Safety
///
/// The device is not registered, and nobody uses it.
unsafe fn give_up<D: Driver>(dev: *mut net_device, (errno, placed): (Errno, bool)) -> Errno {
    // SAFETY: as the caller says.
    unsafe {
        if placed {
            ptr::drop_in_place(private::<D>(dev));
        }
        bindings::free_netdev(dev);
    }
    errno
}

/// Makes and registers a child of a device, in the parent's network namespace. RTNL is held.
pub fn create_child<D: Driver>(
    parent: &Device<D>,
    name: &CStr,
    make: impl FnOnce() -> Result<(D, D::Tx)>,
) -> Result {
    let (hca, port) = D::port(parent);
    let size = size_of::<Private<D>>() as c_int;
    let by = bindings::NET_NAME_PREDICTABLE as c_uchar;
    // SAFETY: the setup function fits the driver; the device is new and of this size, and RTNL is held.
    unsafe {
        let setup: unsafe extern "C" fn(_) = crate::rtnl::setup::<D>;
        let queues = bindings::IPOIB_H_RX_QUEUES as c_uint;
        let dev = bindings::alloc_netdev_mqs(size, name.as_ptr(), by, Some(setup), 1, queues);
        if dev.is_null() {
            return Err(Errno::ENOMEM);
        }
        (*dev).rtnl_link_ops = crate::rtnl::ops();
        bindings::ipoib_h_same_net(dev, parent.as_ptr());
        register(dev, parent.as_ptr(), hca, port, make, D::prepare)
            .map_err(|failure| give_up::<D>(dev, failure))
    }
}

/// Says whether a device has a child that `which` accepts, and removes that child if `remove` says so. RTNL is held; a removed
/// child is gone when RTNL is given back.
pub fn find_child<D: Driver>(parent: &Device<D>, remove: bool, which: impl Fn(&D) -> bool) -> bool {
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: RTNL protects the list, whose devices are ours and registered. Unregistering frees the entry, which is
    // not used after that.
    unsafe {
        while !at.is_null() {
            let dev = (*at).dev;
            if (*at).parent == parent.as_ptr() && which(Device::<D>::from_raw(dev).data()) {
                if remove {
                    bindings::unregister_netdevice_queue(dev, ptr::null_mut());
                }
                return true;
            }
            at = (*at).next;
        }
    }
    false
}

/// Calls a function for each child of a device. RTNL is held.
pub fn for_children<D: Driver>(parent: &Device<D>, mut each: impl FnMut(&Device<D>)) {
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: RTNL protects the list, whose devices are ours and registered.
    unsafe {
        while !at.is_null() {
            let (dev, of) = ((*at).dev, (*at).parent);
            at = (*at).next;
            if of == parent.as_ptr() {
                each(Device::from_raw(dev));
            }
        }
    }
}

/// Puts the data in place and registers the device; a failure says whether the data are in place.
///
/// # Safety
///
/// The device is allocated with our size and not registered; RTNL is held.
pub(crate) unsafe fn register<D: Driver>(
    dev: *mut net_device,
    parent: *mut net_device,
    hca: &Hca,
    port: u32,
    make: impl FnOnce() -> Result<(D, D::Tx)>,
    setup: fn(&Device<D>),
) -> core::result::Result<(), (Errno, bool)> {
    let entry = Entry {
        next: DEVICES.load(Ordering::Acquire),
        dev,
        hca: hca.as_ptr(),
        parent,
    };
    let entry = KBox::new(entry, Context::Process).map_err(|errno| (errno, false))?;
    let (data, tx) = make().map_err(|errno| (errno, false))?;
    // SAFETY: as the caller says; the data are written before anything can use them.
    unsafe {
        private::<D>(dev).write(Private {
            data,
            tx: tx.into(),
        });
        bindings::ipoib_h_set_parent(dev, hca.as_ptr());
        (*dev).dev_port = port.wrapping_sub(1) as u16;
        // The others are places where settings of pollers are kept.
        (*dev).real_num_rx_queues = 1;
        setup(Device::from_raw(dev));
        Errno::check(bindings::register_netdevice(dev)).map_err(|errno| (errno, true))?;
        (*dev).priv_destructor = Some(destructor::<D>);
    }
    let lock = ListLock::take();
    DEVICES.store(entry.into_raw(), Ordering::Release);
    drop(lock);
    // SAFETY: the device is registered and RTNL is held.
    D::registered(unsafe { Device::from_raw(dev) });
    Ok(())
}

/// Takes a device off the list; RTNL is held.
pub(crate) fn forget(dev: *mut net_device) {
    let _lock = ListLock::take();
    let mut at: *mut *mut Entry = DEVICES.as_ptr();
    // SAFETY: RTNL and the lock protect the list, whose entries are boxes.
    unsafe {
        while !(*at).is_null() {
            let entry = *at;
            if (*entry).dev == dev {
                *at = (*entry).next;
                drop(KBox::from_raw(entry));
                return;
            }
            at = &raw mut (*entry).next;
        }
    }
}

/// Says whether a device is ours and registered; RTNL is held.
pub(crate) fn is_ours(dev: *mut net_device) -> bool {
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: RTNL protects the list, whose entries are boxes.
    unsafe {
        while !at.is_null() && (*at).dev != dev {
            at = (*at).next;
        }
    }
    !at.is_null()
}

/// Unregisters a device with its children; RTNL is held.
pub(crate) fn unregister(dev: *mut net_device, head: *mut list_head) {
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: RTNL protects the list; devices in it are registered.
    unsafe {
        while !at.is_null() {
            if (*at).parent == dev {
                bindings::unregister_netdevice_queue((*at).dev, head);
            }
            at = (*at).next;
        }
        bindings::unregister_netdevice_queue(dev, head);
    }
}

unsafe extern "C" fn add<C: Client>(raw: *mut ib_device) -> c_int {
    // SAFETY: the device is valid during the call.
    Errno::ret(unsafe { Hca::from_raw(raw) }.and_then(|hca| C::add(&hca)))
}

/// Finds the interface that a connection request of the RDMA connection manager came in for: of a port, a partition and a
/// GID, and of several such the one that has the address. The caller gives the reference back.
///
/// Not under RTNL: this runs in a work of `ib_cm`, and an interface that goes down waits, under RTNL, for its identifiers'
/// works, which come after this one in the same queue.
unsafe extern "C" fn by_params<D: Driver>(
    hca: *mut ib_device,
    port: u32,
    pkey: u16,
    gid: *const ib_gid,
    address: *const sockaddr,
    _data: *mut c_void,
) -> *mut net_device {
    let lock = ListLock::take();
    // SAFETY: null or valid.
    let gid = unsafe { gid.as_ref().map(|gid| gid.raw) };
    let (mut found, mut count) = (ptr::null_mut(), 0_u32);
    let (mut holder, mut holders) = (ptr::null_mut(), 0_u32);
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: the lock protects the list; a device leaves it before its data go, and before its last reference is waited for.
    // The address is null or valid.
    unsafe {
        while !at.is_null() {
            let dev = (*at).dev;
            if (*at).hca == hca && D::answers(Device::from_raw(dev), port, pkey, gid) {
                (found, count) = (dev, count.wrapping_add(1));
                if bindings::ipoib_h_has_address(dev, address) {
                    (holder, holders) = (dev, holders.wrapping_add(1));
                }
            }
            at = (*at).next;
        }
        let dev = match (count, holders) {
            (1, _) => found,
            (_, 1) => holder,
            _ => ptr::null_mut(),
        };
        if !dev.is_null() {
            bindings::ipoib_h_dev_hold(dev);
        }
        drop(lock);
        dev
    }
}

unsafe extern "C" fn remove(raw: *mut ib_device, _data: *mut c_void) {
    let rtnl = Rtnl::lock();
    let mut head = list_head::default();
    head.next = &raw mut head;
    head.prev = &raw mut head;
    let mut at = DEVICES.load(Ordering::Acquire);
    // SAFETY: RTNL protects the list; devices in it are registered. Unregistering empties `head`.
    unsafe {
        while !at.is_null() {
            if (*at).hca == raw {
                bindings::unregister_netdevice_queue((*at).dev, &raw mut head);
            }
            at = (*at).next;
        }
        bindings::unregister_netdevice_many(&raw mut head);
    }
    // Waits for the last references, too.
    drop(rtnl);
}
