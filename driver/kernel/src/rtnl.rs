// SPDX-License-Identifier: GPL-2.0-only
//! rtnetlink: link kinds and their attributes.

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use bindings::{
    list_head, net, net_device, netlink_ext_ack, nla_policy, nlattr, rtnl_link_ops, sk_buff,
};

use crate::alloc::{Context, KBox};
use crate::error::{Errno, Result};
use crate::netdev::{Device, Driver, Private};
use crate::ops::Tables;

/// Attributes of a kind have numbers up to this one, the largest that rtnetlink parses (`RTNL_MAX_TYPE`). Those that have
/// no entry are refused; larger ones would be ignored.
pub const MAX_ATTRIBUTE: usize = 49;

/// Room that the attributes of a link take in a message.
const ROOM: usize = 8 * 10;

static OPS: AtomicPtr<rtnl_link_ops> = AtomicPtr::new(ptr::null_mut());

/// Width of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Width {
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
}

/// The registration of a link kind; drop it after the devices are gone.
pub struct Kind {
    ops: KBox<rtnl_link_ops>,
    _policy: KBox<[nla_policy; MAX_ATTRIBUTE + 1]>,
}

impl Kind {
    /// Registers a kind with its attributes.
    ///
    /// # Errors
    ///
    /// `EEXIST` when another driver has the kind.
    pub fn new<D: Driver>(kind: &'static CStr, attributes: &[(u16, Width)]) -> Result<Self> {
        let mut policy = KBox::new([nla_policy::default(); MAX_ATTRIBUTE + 1], Context::Process)?;
        for (number, width) in attributes {
            if let Some(entry) = policy.get_mut(usize::from(*number)) {
                entry.type_ = match width {
                    Width::U16 => bindings::NLA_U16,
                    Width::U32 => bindings::NLA_U32,
                } as u8;
            }
        }
        // In-tree's attributes are parsed as in-tree does; what is unknown beyond them is refused.
        if let Some(entry) = policy.first_mut() {
            entry.__bindgen_anon_1.strict_start_type = 4;
        }
        let ops = rtnl_link_ops {
            kind: kind.as_ptr(),
            priv_size: size_of::<Private<D>>(),
            setup: Some(setup::<D>),
            netns_refund: true,
            maxtype: MAX_ATTRIBUTE as u32,
            policy: policy.as_ptr().cast::<nla_policy>(),
            changelink: Some(changelink::<D>),
            dellink: Some(dellink),
            get_size: Some(get_size),
            fill_info: Some(fill_info::<D>),
            get_num_rx_queues: Some(rx_queues),
            ..Default::default()
        };
        let ops = KBox::new(ops, Context::Process)?;
        // SAFETY: the table is boxed.
        unsafe { bindings::ipoib_h_link_ops(ops.as_ptr(), Some(newlink::<D>)) };
        // SAFETY: the table is boxed and lives until it is unregistered.
        Errno::check(unsafe { bindings::rtnl_link_register(ops.as_ptr()) })?;
        OPS.store(ops.as_ptr(), Ordering::Release);
        Ok(Self {
            ops,
            _policy: policy,
        })
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        OPS.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: registered by `new`.
        unsafe { bindings::rtnl_link_unregister(self.ops.as_ptr()) };
    }
}

/// Returns the table for devices.
pub(crate) fn ops() -> *const rtnl_link_ops {
    OPS.load(Ordering::Acquire)
}

/// Attributes of a request.
pub struct Attributes<'a> {
    data: *mut *mut nlattr,
    extack: *mut netlink_ext_ack,
    life: PhantomData<&'a nlattr>,
}

impl Attributes<'_> {
    fn payload<const N: usize>(&self, number: u16) -> Option<[u8; N]> {
        if self.data.is_null() || usize::from(number) > MAX_ATTRIBUTE {
            return None;
        }
        // SAFETY: the kernel gives an array of MAX_ATTRIBUTE + 1 pointers. Its policy checked that an attribute has
        // at least the bytes of its width, which is 2 for N = 2, 4 for N = 4.
        unsafe {
            let attribute = *self.data.add(usize::from(number));
            let short = attribute.is_null() || usize::from((*attribute).nla_len) < N + 4;
            (!short).then(|| attribute.cast::<u8>().add(4).cast::<[u8; N]>().read())
        }
    }

    /// Returns a 16-bit attribute.
    #[must_use]
    pub fn u16(&self, number: u16) -> Option<u16> {
        self.payload(number).map(u16::from_ne_bytes)
    }

    /// Returns a 32-bit attribute.
    #[must_use]
    pub fn u32(&self, number: u16) -> Option<u32> {
        self.payload(number).map(u32::from_ne_bytes)
    }

    /// Refuses the request, and says why.
    #[must_use]
    pub fn refuse(&self, errno: Errno, why: &'static CStr) -> Errno {
        refuse(self.extack, errno, why)
    }
}

/// Puts a reason into an extended acknowledgement.
pub(crate) fn refuse(extack: *mut netlink_ext_ack, errno: Errno, why: &'static CStr) -> Errno {
    // SAFETY: null or valid; the text lives as long as the module, and the message is copied out before the request
    // ends.
    if let Some(extack) = unsafe { extack.as_mut() } {
        extack._msg = why.as_ptr();
    }
    errno
}

/// A message under construction.
pub struct Message<'a>(*mut sk_buff, PhantomData<&'a sk_buff>);

impl Message<'_> {
    fn put(&mut self, number: u16, bytes: &[u8]) -> Result {
        // SAFETY: message and bytes are valid.
        Errno::check(unsafe {
            bindings::nla_put(
                self.0,
                c_int::from(number),
                bytes.len() as c_int,
                bytes.as_ptr().cast::<c_void>(),
            )
        })
    }

    /// Adds a 16-bit attribute.
    pub fn put_u16(&mut self, number: u16, value: u16) -> Result {
        self.put(number, &value.to_ne_bytes())
    }

    /// Adds a 32-bit attribute.
    pub fn put_u32(&mut self, number: u16, value: u32) -> Result {
        self.put(number, &value.to_ne_bytes())
    }
}

/// Tells the listeners that a link's attributes changed. RTNL is held.
pub fn notify<D>(dev: &Device<D>) {
    // SAFETY: the device is valid.
    unsafe { bindings::netdev_state_change(dev.as_ptr()) };
}

/// Sets what each new device has.
pub(crate) unsafe extern "C" fn setup<D: Driver>(dev: *mut net_device) {
    // SAFETY: the kernel calls this for a new device. The tables are constants.
    unsafe {
        (*dev).netdev_ops = &Tables::<D>::NETDEV;
        (*dev).header_ops = &Tables::<D>::HEADER;
        (*dev).ethtool_ops = crate::ethtool::table::<D>();
        crate::sysfs::attach(dev);
        (*dev).watchdog_timeo = 10 * bindings::HZ as c_int;
        (*dev).flags |= (bindings::IFF_BROADCAST | bindings::IFF_MULTICAST) as u32;
        (*dev).hard_header_len = 24;
        (*dev).addr_len = 20;
        (*dev).type_ = bindings::ARPHRD_INFINIBAND as u16;
        (*dev).tx_queue_len = 1000;
        (*dev).features = bindings::ipoib_h_fixed_features();
        (*dev).needs_free_netdev = true;
    }
}

unsafe extern "C" fn newlink<D: Driver>(
    net: *mut net,
    dev: *mut net_device,
    tb: *mut *mut nlattr,
    data: *mut *mut nlattr,
    extack: *mut netlink_ext_ack,
) -> c_int {
    let attributes = Attributes {
        data,
        extack,
        life: PhantomData,
    };
    // SAFETY: RTNL is held; `tb` has the attributes of a link, of which IFLA_LINK has 4 bytes.
    let parent = unsafe {
        let link = *tb.add(bindings::IFLA_LINK as usize);
        if link.is_null() {
            return attributes
                .refuse(Errno::EINVAL, c"name the parent: link ib0")
                .raw();
        }
        bindings::ipoib_h_dev_get(net, link.cast::<u8>().add(4).cast::<c_int>().read())
    };
    if parent.is_null() {
        return Errno::ENODEV.raw();
    }
    if !crate::client::is_ours(parent) {
        return attributes
            .refuse(Errno::EINVAL, c"the parent is no interface of ipoib_batch")
            .raw();
    }
    // SAFETY: the parent is ours and registered, and stays so under RTNL; the new device was allocated with our size.
    unsafe {
        let parent = Device::<D>::from_raw(parent);
        let (hca, port) = D::port(parent);
        let make = || D::child(parent, &attributes);
        match crate::client::register(dev, parent.as_ptr(), hca, port, make, D::prepare) {
            Ok(()) => {}
            Err((errno, placed)) => {
                if placed {
                    ptr::drop_in_place(crate::netdev::private::<D>(dev));
                }
                return errno.raw();
            }
        }
        let changed = D::change_link(Device::from_raw(dev), &attributes);
        if changed.is_err() {
            bindings::unregister_netdevice_queue(dev, ptr::null_mut());
        }
        Errno::ret(changed)
    }
}

unsafe extern "C" fn changelink<D: Driver>(
    dev: *mut net_device,
    _tb: *mut *mut nlattr,
    data: *mut *mut nlattr,
    extack: *mut netlink_ext_ack,
) -> c_int {
    let attributes = Attributes {
        data,
        extack,
        life: PhantomData,
    };
    // SAFETY: the device is of this driver.
    Errno::ret(D::change_link(
        unsafe { Device::from_raw(dev) },
        &attributes,
    ))
}

unsafe extern "C" fn dellink(dev: *mut net_device, head: *mut list_head) {
    crate::client::unregister(dev, head);
}

unsafe extern "C" fn rx_queues() -> c_uint {
    bindings::IPOIB_H_RX_QUEUES as c_uint
}

unsafe extern "C" fn get_size(_dev: *const net_device) -> usize {
    ROOM
}

unsafe extern "C" fn fill_info<D: Driver>(skb: *mut sk_buff, dev: *const net_device) -> c_int {
    let mut message = Message(skb, PhantomData);
    // SAFETY: the device is of this driver.
    let result = D::fill_link(unsafe { Device::from_raw(dev.cast_mut()) }, &mut message);
    result.map_or(Errno::EMSGSIZE.raw(), |()| 0)
}
