// SPDX-License-Identifier: GPL-2.0-only
//! Work in process context for a device.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use bindings::{delayed_work, net_device, work_struct, workqueue_struct};

use crate::alloc::{Context, KBox};
use crate::error::{Errno, Result};
use crate::netdev::{Device, Driver};

/// The driver's workqueue. Works run side by side, but none beside itself.
static QUEUE: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// Keeps the workqueue; dropping it waits for all works.
pub struct Queue(());

impl Queue {
    /// Makes the workqueue, once per module.
    pub fn start() -> Result<Self> {
        // SAFETY: the name is a string.
        let queue = unsafe { bindings::ipoib_h_workqueue(c"ipoib_batch".as_ptr()) };
        if queue.is_null() {
            return Err(Errno::ENOMEM);
        }
        QUEUE.store(queue, Ordering::Release);
        Ok(Self(()))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let queue = QUEUE.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `start`.
        unsafe { bindings::destroy_workqueue(queue) };
    }
}

#[repr(C)]
struct Inner<D> {
    // First, so that a pointer to it is one to the whole.
    work: UnsafeCell<delayed_work>,
    dev: AtomicPtr<net_device>,
    run: fn(&Device<D>),
}

/// A function to run later. While it waits or runs, the device stays.
pub struct Work<D>(KBox<Inner<D>>);

// SAFETY: the kernel's functions on works can be called from any thread.
unsafe impl<D> Send for Work<D> {}
// SAFETY: as above.
unsafe impl<D> Sync for Work<D> {}

impl<D: Driver> Work<D> {
    /// Makes a work that is not queued.
    pub fn new(run: fn(&Device<D>)) -> Result<Self> {
        let inner = Inner {
            work: UnsafeCell::new(delayed_work::default()),
            dev: AtomicPtr::new(ptr::null_mut()),
            run,
        };
        let inner = KBox::new(inner, Context::Process)?;
        // SAFETY: the work is new and boxed.
        unsafe { bindings::ipoib_h_delayed_work_init(inner.work.get(), Some(call::<D>)) };
        Ok(Self(inner))
    }

    /// Runs the work once, in `ms` milliseconds or before. Any context.
    pub fn queue(&self, dev: &Device<D>, ms: u32) {
        let queue = QUEUE.load(Ordering::Acquire);
        let own = dev.as_ptr();
        let other =
            self.0
                .dev
                .compare_exchange(ptr::null_mut(), own, Ordering::AcqRel, Ordering::Acquire);
        if queue.is_null() || other.is_err_and(|other| other != own) {
            return;
        }
        core::mem::forget(dev.hold());
        // SAFETY: the work is initialised and boxed. Each time it is queued it has a reference of its own, which goes
        // with whoever takes it off the queue. mod_delayed_work would not say whether it queued a work that is just
        // being cancelled.
        unsafe {
            if ms == 0 && bindings::cancel_delayed_work(self.0.work.get()) {
                bindings::ipoib_h_dev_put(own);
            }
            if !bindings::ipoib_h_queue(queue, self.0.work.get(), ms) {
                bindings::ipoib_h_dev_put(own);
            }
        }
    }
}

impl<D> Work<D> {
    /// Takes the work off the queue. One that runs is not waited for. Any context.
    pub fn withdraw(&self) {
        // SAFETY: as in `cancel`.
        unsafe {
            if bindings::cancel_delayed_work(self.0.work.get()) {
                bindings::ipoib_h_dev_put(self.0.dev.load(Ordering::Acquire));
            }
        }
    }

    /// Takes the work off the queue and waits for it to end. Process context, not from the work itself.
    pub fn cancel(&self) {
        // SAFETY: the work is initialised; one that was pending has a reference, and won't run to drop it.
        unsafe {
            if bindings::cancel_delayed_work_sync(self.0.work.get()) {
                bindings::ipoib_h_dev_put(self.0.dev.load(Ordering::Acquire));
            }
        }
    }
}

impl<D> Drop for Work<D> {
    fn drop(&mut self) {
        self.cancel();
    }
}

unsafe extern "C" fn call<D: Driver>(work: *mut work_struct) {
    // A delayed work begins with its work.
    let inner = work.cast::<Inner<D>>();
    // SAFETY: the work is the first field of an `Inner`, which lives as long as the device, which has a reference.
    unsafe {
        let dev = (*inner).dev.load(Ordering::Acquire);
        ((*inner).run)(Device::<D>::from_raw(dev));
        bindings::ipoib_h_dev_put(dev);
    }
}
