// SPDX-License-Identifier: GPL-2.0-only
//! Network devices with private data.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::ops::Deref;
use core::{mem, ptr, slice};

use bindings::net_device;

use crate::error::{Errno, Result};
use crate::skb::Skb;

pub use crate::ops::{Driver, Statistics};
pub use crate::txq::TxGuard;

/// What the kernel allocates behind a `net_device`.
pub(crate) struct Private<D: Driver> {
    pub(crate) data: D,
    /// Protected by the transmit lock.
    pub(crate) tx: UnsafeCell<D::Tx>,
}

/// A network device whose private data are in place.
#[repr(transparent)]
pub struct Device<D> {
    raw: UnsafeCell<net_device>,
    data: PhantomData<D>,
}

// SAFETY: the kernel's functions on devices can be called from any thread, and the data are `Sync`.
unsafe impl<D: Sync> Sync for Device<D> {}

/// A reference that keeps a device and its data alive.
pub struct DeviceRef<D>(*mut net_device, PhantomData<D>);

// SAFETY: it stands for a `&Device`, and the device is dropped by whoever unregisters it.
unsafe impl<D: Sync> Send for DeviceRef<D> {}
// SAFETY: as above.
unsafe impl<D: Sync> Sync for DeviceRef<D> {}

/// Offset of the private data.
const PRIVATE: usize = mem::offset_of!(net_device, priv_);

/// Returns the private data of a device.
///
/// # Safety
///
/// The device is valid and was allocated with this driver's data size.
pub(crate) unsafe fn private<D: Driver>(dev: *mut net_device) -> *mut Private<D> {
    const { assert!(align_of::<Private<D>>() <= 32) };
    // SAFETY: the data lie in the same allocation.
    unsafe { dev.cast::<u8>().add(PRIVATE).cast() }
}

impl<D: Driver> Device<D> {
    /// # Safety
    ///
    /// The device is of this driver and its private data stay in place for the lifetime that the caller chooses.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut net_device) -> &'a Self {
        // SAFETY: the layout is transparent; the rest is as the caller says.
        unsafe { &*raw.cast::<Self>() }
    }

    /// Returns the driver's data.
    #[must_use]
    pub fn data(&self) -> &D {
        // SAFETY: a device exists while its data are in place.
        unsafe { &(*private::<D>(self.as_ptr())).data }
    }

    /// Makes a reference.
    #[must_use]
    pub fn hold(&self) -> DeviceRef<D> {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_dev_hold(self.as_ptr()) };
        DeviceRef(self.as_ptr(), PhantomData)
    }
}

impl<D> Device<D> {
    pub(crate) fn as_ptr(&self) -> *mut net_device {
        self.raw.get()
    }

    /// Returns the interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        // SAFETY: the name is a NUL-terminated array; a rename replaces bytes in place.
        let name = unsafe { CStr::from_ptr((&raw const (*self.as_ptr()).name).cast()) };
        name.to_str().unwrap_or("?")
    }

    /// Returns the MTU in bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        // SAFETY: the device is valid; the field is read in one go.
        unsafe { (&raw const (*self.as_ptr()).mtu).read_volatile() }
    }

    /// Sets the MTU as ndo_change_mtu does.
    pub fn store_mtu(&self, mtu: u32) {
        // SAFETY: the device is valid; the field is written in one go.
        unsafe { (&raw mut (*self.as_ptr()).mtu).write_volatile(mtu) };
    }

    /// Sets the MTU and tells everyone. RTNL is held.
    pub fn set_mtu(&self, mtu: u32) -> Result {
        // SAFETY: the device is valid.
        Errno::check(unsafe { bindings::dev_set_mtu(self.as_ptr(), mtu as c_int) })
    }

    /// Returns the largest MTU.
    #[must_use]
    pub fn max_mtu(&self) -> u32 {
        // SAFETY: the device is valid.
        unsafe { (*self.as_ptr()).max_mtu }
    }

    /// Sets the bounds of the MTU. Before the device is registered, or with RTNL held.
    pub fn set_mtu_bounds(&self, min: u32, max: u32) {
        // SAFETY: the device is valid.
        unsafe {
            (*self.as_ptr()).min_mtu = min;
            (*self.as_ptr()).max_mtu = max;
        }
    }

    /// Returns the interface's index.
    #[must_use]
    pub fn ifindex(&self) -> i32 {
        // SAFETY: the device is valid.
        unsafe { (*self.as_ptr()).ifindex }
    }

    /// Writes bytes of the link-layer address. RTNL is held, or the device is not registered.
    pub fn set_address(&self, offset: u32, bytes: &[u8]) {
        if bytes.len().saturating_add(offset as usize) <= 20 {
            // SAFETY: the device is valid, the bytes lie within its address.
            unsafe {
                bindings::dev_addr_mod(
                    self.as_ptr(),
                    offset,
                    bytes.as_ptr().cast::<c_void>(),
                    bytes.len(),
                )
            };
        }
    }

    /// Returns the link-layer address. RTNL is held.
    #[must_use]
    pub fn address(&self) -> [u8; 20] {
        // SAFETY: the device is valid; an address of our type has 20 bytes.
        unsafe { (*self.as_ptr()).dev_addr.cast::<[u8; 20]>().read() }
    }

    /// Brings the interface up or down, as an administrator does. RTNL is held.
    pub fn set_up(&self, up: bool) -> Result {
        let bit = bindings::IFF_UP as u32;
        // SAFETY: the device is valid and registered.
        Errno::check(unsafe {
            let flags = (*self.as_ptr()).flags;
            let flags = if up { flags | bit } else { flags & !bit };
            bindings::dev_change_flags(self.as_ptr(), flags, ptr::null_mut())
        })
    }

    /// Returns the broadcast address.
    #[must_use]
    pub fn broadcast(&self) -> [u8; 20] {
        let mut address = [0; 20];
        // SAFETY: the device is valid, its array longer.
        unsafe {
            ptr::copy_nonoverlapping(
                (&raw const (*self.as_ptr()).broadcast).cast::<u8>(),
                address.as_mut_ptr(),
                20,
            );
        }
        address
    }

    /// Sets the broadcast address.
    pub fn set_broadcast(&self, address: &[u8; 20]) {
        // SAFETY: the device is valid, its array longer.
        unsafe {
            ptr::copy_nonoverlapping(
                address.as_ptr(),
                (&raw mut (*self.as_ptr()).broadcast).cast::<u8>(),
                20,
            )
        };
    }

    /// Copies multicast addresses and returns how many there are, which may be more.
    pub fn multicast(&self, addresses: &mut [[u8; 20]]) -> u32 {
        // SAFETY: the device is valid; the helper writes at most the given number.
        unsafe {
            bindings::ipoib_h_mc_list(
                self.as_ptr(),
                addresses.as_mut_ptr().cast::<u8>(),
                addresses.len() as u32,
            )
        }
    }

    /// Says whether the interface is up (`netif_running`).
    #[must_use]
    pub fn is_running(&self) -> bool {
        // SAFETY: the device is valid; bit 0 is __LINK_STATE_START.
        unsafe { (&raw const (*self.as_ptr()).state).read_volatile() & 1 != 0 }
    }

    /// Says whether the stack sees a carrier.
    pub fn set_carrier(&self, on: bool) {
        // SAFETY: the device is valid.
        unsafe {
            if on {
                bindings::netif_carrier_on(self.as_ptr());
            } else {
                bindings::netif_carrier_off(self.as_ptr());
            }
        }
    }

    /// Says whether the carrier is there, as set last.
    #[must_use]
    pub fn has_carrier(&self) -> bool {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_has_carrier(self.as_ptr()) }
    }

    /// Says whether the stack has seen the carrier and sends through a queueing discipline.
    #[must_use]
    pub fn has_queue(&self) -> bool {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_has_queue(self.as_ptr()) }
    }

    /// Returns the features in force.
    #[must_use]
    pub fn features(&self) -> u64 {
        // SAFETY: the device is valid.
        unsafe { (*self.as_ptr()).features }
    }

    /// Adds features that can be switched. Before the device is registered.
    pub fn add_features(&self, features: u64) {
        // SAFETY: the device is valid.
        unsafe {
            (*self.as_ptr()).hw_features |= features;
            (*self.as_ptr()).features |= features;
        }
    }

    /// Has the features computed anew, see [`Driver::fix_features`]. RTNL is held.
    pub fn update_features(&self) {
        // SAFETY: the device is valid.
        unsafe { bindings::netdev_update_features(self.as_ptr()) };
    }

    /// Has packets keep their route until they are given to the driver, or not. RTNL is held.
    pub fn keep_routes(&self, keep: bool) {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_keep_routes(self.as_ptr(), keep) };
    }

    /// Turns on what the HCA offers, or what the driver does in its place. Before the device is registered.
    pub fn add_offloads(&self, checksum: bool, segment: bool) {
        // SAFETY: computes a mask.
        self.add_features(unsafe { bindings::ipoib_h_offloads(checksum, segment) });
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_max_segments(self.as_ptr(), crate::train::MAX_TRAIN) };
    }

    /// Lets the stack tell the neighbours our address (gratuitous ARP, unsolicited advertisement). RTNL is held.
    pub fn notify_peers(&self) {
        // SAFETY: the device is valid.
        unsafe { bindings::__netdev_notify_peers(self.as_ptr()) };
    }

    /// Sends a packet through the stack's queue.
    pub fn queue_xmit(&self, skb: Skb) {
        let skb = skb.into_raw();
        // SAFETY: device and packet are valid; ownership goes to the stack.
        unsafe {
            (*skb)
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev = self.as_ptr();
            bindings::__dev_queue_xmit(skb, ptr::null_mut());
        }
    }
}

impl<D> Deref for DeviceRef<D> {
    type Target = Device<D>;

    fn deref(&self) -> &Device<D> {
        // SAFETY: the reference keeps device and data alive.
        unsafe { &*self.0.cast::<Device<D>>() }
    }
}

impl<D> Drop for DeviceRef<D> {
    fn drop(&mut self) {
        // SAFETY: pairs with the `dev_hold` of `hold`.
        unsafe { bindings::ipoib_h_dev_put(self.0) };
    }
}

/// Holds RTNL.
pub struct Rtnl(PhantomData<*mut ()>);

impl Rtnl {
    /// Takes RTNL. Process context.
    #[must_use]
    pub fn lock() -> Self {
        // SAFETY: process context.
        unsafe { bindings::rtnl_lock() };
        Self(PhantomData)
    }
}

impl Drop for Rtnl {
    fn drop(&mut self) {
        // SAFETY: taken by `lock`.
        unsafe { bindings::rtnl_unlock() };
    }
}

/// Reads a NUL-terminated name out of an array.
#[must_use]
pub fn c_str(bytes: &[u8]) -> &str {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    bytes
        .get(..end)
        .and_then(|name| core::str::from_utf8(name).ok())
        .unwrap_or("?")
}

/// Copies text into a C array and terminates it.
pub(crate) fn copy_text(to: &mut [core::ffi::c_char], text: &str) {
    let last = to.len().saturating_sub(1);
    // SAFETY: chars and bytes have the same layout.
    let to = unsafe { slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), last) };
    for (to, from) in to.iter_mut().zip(text.bytes().chain(core::iter::repeat(0))) {
        *to = from;
    }
}

/// Says whether received checksums are left to the device.
#[must_use]
pub fn has_rx_checksum<D>(dev: &Device<D>) -> bool {
    // SAFETY: computes a mask.
    dev.features() & unsafe { bindings::ipoib_h_rx_checksum() } != 0
}
