// SPDX-License-Identifier: GPL-2.0-only
//! Locks that own what they protect.

use core::cell::UnsafeCell;
use core::ffi::c_ulong;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::alloc::{Context, KBox};
use crate::error::Result;

/// A spinlock that is taken with interrupts off.
pub struct SpinLock<T> {
    // Boxed, so that the lock can move: a spinlock must not.
    raw: KBox<UnsafeCell<bindings::spinlock_t>>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives access to one thread at a time.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Makes an open lock. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(data: T) -> Result<Self> {
        let raw = KBox::new(
            UnsafeCell::new(bindings::spinlock_t::default()),
            Context::Process,
        )?;
        // SAFETY: the lock is new and nobody else knows it.
        unsafe { bindings::ipoib_h_spin_init(raw.get()) };
        let data = UnsafeCell::new(data);
        Ok(Self { raw, data })
    }

    /// Takes the lock.
    pub fn lock(&self) -> SpinGuard<'_, T> {
        // SAFETY: the lock is initialised.
        let flags = unsafe { bindings::ipoib_h_spin_lock(self.raw.get()) };
        SpinGuard {
            lock: self,
            flags,
            here: PhantomData,
        }
    }
}

/// Access to what a [`SpinLock`] protects.
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    flags: c_ulong,
    // Given back where it was taken.
    here: PhantomData<*mut ()>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock, with these flags.
        unsafe { bindings::ipoib_h_spin_unlock(self.lock.raw.get(), self.flags) };
    }
}

/// A lock whose holder may sleep.
pub struct Mutex<T> {
    raw: KBox<UnsafeCell<bindings::mutex>>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives access to one thread at a time.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// Makes an open lock. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(data: T) -> Result<Self> {
        let raw = KBox::new(
            UnsafeCell::new(bindings::mutex::default()),
            Context::Process,
        )?;
        // SAFETY: the lock is new and nobody else knows it.
        unsafe { bindings::ipoib_h_mutex_init(raw.get()) };
        let data = UnsafeCell::new(data);
        Ok(Self { raw, data })
    }

    /// Takes the lock. Process context.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // SAFETY: the lock is initialised.
        unsafe { bindings::ipoib_h_mutex_lock(self.raw.get()) };
        MutexGuard {
            lock: self,
            here: PhantomData,
        }
    }
}

/// Access to what a [`Mutex`] protects.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    here: PhantomData<*mut ()>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock.
        unsafe { bindings::mutex_unlock(self.lock.raw.get()) };
    }
}
