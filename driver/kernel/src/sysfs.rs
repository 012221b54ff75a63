// SPDX-License-Identifier: GPL-2.0-only
//! Files below `/sys/class/net/<interface>`.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use bindings::{attribute, attribute_group, device, device_attribute, device_type, net_device};

use crate::alloc::{Context, KArray, KBox};
use crate::error::{Errno, Result};
use crate::netdev::{Device, Driver};

/// The text of a file under construction.
pub struct Text<'a> {
    page: &'a mut [u8],
    len: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let end = self.len.checked_add(s.len()).ok_or(fmt::Error)?;
        self.page
            .get_mut(self.len..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// A file.
pub struct File<D> {
    /// Its name.
    pub name: &'static CStr,
    /// Writes its text, when it can be read.
    pub show: Option<fn(&Device<D>, &mut Text<'_>) -> fmt::Result>,
    /// Takes what was written, without the line's end, when it can be written. RTNL is held.
    pub store: Option<fn(&Device<D>, &str) -> Result>,
}

#[repr(C)]
struct Entry<D> {
    // First, so that a pointer to it is one to the whole.
    attribute: device_attribute,
    show: Option<fn(&Device<D>, &mut Text<'_>) -> fmt::Result>,
    store: Option<fn(&Device<D>, &str) -> Result>,
    only: Option<fn(&Device<D>) -> bool>,
}

struct Group<D> {
    group: attribute_group,
    _entries: KArray<Entry<D>>,
    _pointers: KArray<*mut attribute>,
}

impl<D: Driver> Group<D> {
    fn new(
        name: Option<&'static CStr>,
        files: &[File<D>],
        only: Option<fn(&Device<D>) -> bool>,
    ) -> Result<KBox<Self>> {
        let mut source = files.iter();
        let entries = KArray::new(files.len(), || {
            let file = source.next();
            let mut attribute = device_attribute::default();
            let (show, store) = file.map_or((None, None), |file| (file.show, file.store));
            let mode =
                if show.is_some() { 0o444 } else { 0 } | if store.is_some() { 0o200 } else { 0 };
            // SAFETY: the name lives as long as the module.
            unsafe {
                bindings::ipoib_h_attribute(
                    &raw mut attribute,
                    file.map_or(c"".as_ptr(), |file| file.name.as_ptr()),
                    mode,
                    show.map(|_| show_cb::<D> as unsafe extern "C" fn(_, _, _) -> _),
                    store.map(|_| store_cb::<D> as unsafe extern "C" fn(_, _, _, _) -> _),
                );
            }
            Entry {
                attribute,
                show,
                store,
                only,
            }
        })?;
        let mut source = entries.iter();
        let pointers = KArray::new(files.len() + 1, || {
            source.next().map_or(ptr::null_mut(), |entry| {
                (&raw const entry.attribute.attr).cast_mut()
            })
        })?;
        let mut group = attribute_group::default();
        // SAFETY: the arrays live as long as the group.
        unsafe {
            let name = name.map_or(ptr::null(), CStr::as_ptr);
            bindings::ipoib_h_group(
                &raw mut group,
                name,
                pointers.as_ptr().cast_mut(),
                only.map(|_| only_cb::<D> as unsafe extern "C" fn(_, _) -> _),
            );
        }
        KBox::new(
            Self {
                group,
                _entries: entries,
                _pointers: pointers,
            },
            Context::Process,
        )
    }
}

struct Tables {
    kind: device_type,
    groups: [*const attribute_group; 3],
    named: *const attribute_group,
}

static TABLES: AtomicPtr<Tables> = AtomicPtr::new(ptr::null_mut());

/// The files of all devices; drop it after the devices are gone.
pub struct Files<D> {
    _plain: KBox<Group<D>>,
    _some: KBox<Group<D>>,
    _named: KBox<Group<D>>,
    _tables: KBox<Tables>,
}

impl<D: Driver> Files<D> {
    /// Prepares files right in the device's directory, some that only the devices have that `only` says yes to, and
    /// others in a folder of it.
    pub fn new(
        plain: &[File<D>],
        some: &[File<D>],
        only: fn(&Device<D>) -> bool,
        folder: &'static CStr,
        named: &[File<D>],
    ) -> Result<Self> {
        let plain = Group::new(None, plain, None)?;
        let some = Group::new(None, some, Some(only))?;
        let named = Group::new(Some(folder), named, None)?;
        let tables = Tables {
            kind: device_type::default(),
            groups: [&raw const plain.group, &raw const some.group, ptr::null()],
            named: &raw const named.group,
        };
        let mut tables = KBox::new(tables, Context::Process)?;
        tables.kind.groups = (&raw mut tables.groups).cast();
        TABLES.store(tables.as_ptr(), Ordering::Release);
        Ok(Self {
            _plain: plain,
            _some: some,
            _named: named,
            _tables: tables,
        })
    }
}

impl<D> Drop for Files<D> {
    fn drop(&mut self) {
        TABLES.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Gives a new device its files.
///
/// # Safety
///
/// The device is new.
pub(crate) unsafe fn attach(dev: *mut net_device) {
    let tables = TABLES.load(Ordering::Acquire);
    if !tables.is_null() {
        // SAFETY: the tables live until the devices are gone.
        unsafe {
            (*dev).dev.type_ = &raw const (*tables).kind;
            if let Some(first) = (*dev).sysfs_groups.first_mut() {
                *first = (*tables).named;
            }
        }
    }
}

unsafe extern "C" fn only_cb<D: Driver>(dev: *mut device, attribute: *mut attribute) -> bool {
    // SAFETY: the attribute is the first field of an entry; the device is of this driver, and has its data: files are
    // made after `init`.
    unsafe {
        let only = (*attribute.cast::<Entry<D>>()).only;
        only.is_none_or(|only| only(Device::<D>::from_raw(bindings::ipoib_h_to_net_dev(dev))))
    }
}

unsafe extern "C" fn show_cb<D: Driver>(
    dev: *mut device,
    attribute: *mut device_attribute,
    page: *mut c_char,
) -> isize {
    let entry = attribute.cast::<Entry<D>>();
    // SAFETY: the attribute is the first field of an entry; the device is of this driver; sysfs gives a page.
    let (dev, show, page) = unsafe {
        let dev = Device::<D>::from_raw(bindings::ipoib_h_to_net_dev(dev));
        (
            dev,
            (*entry).show,
            slice::from_raw_parts_mut(page.cast::<u8>(), 4096),
        )
    };
    let mut text = Text { page, len: 0 };
    match show.map(|show| show(dev, &mut text)) {
        Some(Ok(())) => text.len as isize,
        _ => Errno::EIO.raw() as isize,
    }
}

unsafe extern "C" fn store_cb<D: Driver>(
    dev: *mut device,
    attribute: *mut device_attribute,
    bytes: *const c_char,
    count: usize,
) -> isize {
    let entry = attribute.cast::<Entry<D>>();
    // SAFETY: as above; sysfs gives `count` bytes.
    let (dev, store, bytes) = unsafe {
        let dev = Device::<D>::from_raw(bindings::ipoib_h_to_net_dev(dev));
        (
            dev,
            (*entry).store,
            slice::from_raw_parts(bytes.cast::<u8>(), count),
        )
    };
    let (Some(store), Ok(text)) = (store, core::str::from_utf8(bytes)) else {
        return Errno::EINVAL.raw() as isize;
    };
    // Removing the device, with RTNL held, waits for this function: waiting for RTNL here could last forever.
    // SAFETY: process context.
    if unsafe { bindings::rtnl_trylock() } == 0 {
        // SAFETY: process context.
        return unsafe { bindings::ipoib_h_restart_syscall() } as isize;
    }
    let result = store(dev, text.strip_suffix('\n').unwrap_or(text));
    // SAFETY: taken above.
    unsafe { bindings::rtnl_unlock() };
    result.map_or_else(|errno| errno.raw() as isize, |()| count as isize)
}

/// Reads a number: decimal, or hexadecimal with `0x`.
#[must_use]
pub fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
