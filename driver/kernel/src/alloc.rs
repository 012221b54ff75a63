// SPDX-License-Identifier: GPL-2.0-only
//! Memory that allocation may refuse: a box, an array of fixed size, a counted reference.

use core::ffi::c_void;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use core::{mem, slice};

use crate::error::{Errno, Result};

/// Whether an allocation may sleep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Context {
    /// Process context without spinlocks: `GFP_KERNEL`.
    Process,
    /// Anything else: `GFP_ATOMIC`.
    Atomic,
}

/// An owned value on the kernel's heap.
pub struct KBox<T>(NonNull<T>);

// SAFETY: the box owns its value.
unsafe impl<T: Send> Send for KBox<T> {}
// SAFETY: a shared box gives shared access to its value only.
unsafe impl<T: Sync> Sync for KBox<T> {}

impl<T> KBox<T> {
    /// Moves a value to the heap.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(value: T, context: Context) -> Result<Self> {
        const { assert!(align_of::<T>() <= 8 && size_of::<T>() > 0) };
        // SAFETY: kzalloc takes any size; its memory is aligned for 8 bytes at least.
        let raw = unsafe { bindings::ipoib_h_kzalloc(size_of::<T>(), context == Context::Atomic) };
        let ptr = NonNull::new(raw.cast::<T>()).ok_or(Errno::ENOMEM)?;
        // SAFETY: the memory is new, large enough and aligned.
        unsafe { ptr.write(value) };
        Ok(Self(ptr))
    }

    /// Gives up ownership; `from_raw` takes it back.
    pub(crate) fn into_raw(self) -> *mut T {
        let raw = self.0.as_ptr();
        mem::forget(self);
        raw
    }

    /// Moves the value out.
    #[must_use]
    pub fn into_inner(self) -> T {
        let raw = self.into_raw();
        // SAFETY: the box owned a valid value and its memory, which came from kzalloc; the value moves, so that it is not
        // dropped here.
        unsafe {
            let value = raw.read();
            bindings::kfree(raw.cast::<c_void>());
            value
        }
    }

    /// Takes ownership back.
    ///
    /// # Safety
    ///
    /// `raw` is from `into_raw` and is not used by anyone else.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: `into_raw` returns no null pointer.
        Self(unsafe { NonNull::new_unchecked(raw) })
    }

    /// Returns a pointer to the value that stays valid while the box lives.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the box owns a valid value.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a valid value, and `self` is exclusive.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for KBox<T> {
    fn drop(&mut self) {
        // SAFETY: the box owns the value and its memory, which came from kzalloc.
        unsafe {
            self.0.drop_in_place();
            bindings::kfree(self.0.as_ptr().cast::<c_void>());
        }
    }
}

/// An array of a length that is fixed when it is made; large ones need no contiguous pages.
pub struct KArray<T> {
    ptr: NonNull<T>,
    len: usize,
}

// SAFETY: the array owns its values.
unsafe impl<T: Send> Send for KArray<T> {}
// SAFETY: a shared array gives shared access to its values only.
unsafe impl<T: Sync> Sync for KArray<T> {}

impl<T> KArray<T> {
    /// Makes an array of `len` values that `make` gives. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(len: usize, mut make: impl FnMut() -> T) -> Result<Self> {
        const { assert!(align_of::<T>() <= 8 && size_of::<T>() > 0) };
        let size = size_of::<T>()
            .checked_mul(len.max(1))
            .ok_or(Errno::ENOMEM)?;
        // SAFETY: kvzalloc takes any size; its memory is aligned for 8 bytes at least.
        let raw = unsafe { bindings::ipoib_h_kvzalloc(size) };
        let ptr = NonNull::new(raw.cast::<T>()).ok_or(Errno::ENOMEM)?;
        for i in 0..len {
            // SAFETY: slot `i` lies within the new memory.
            unsafe { ptr.add(i).write(make()) };
        }
        Ok(Self { ptr, len })
    }
}

impl<T> Deref for KArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: all `len` values are initialised and owned.
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for KArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is exclusive.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> Drop for KArray<T> {
    fn drop(&mut self) {
        for i in 0..self.len {
            // SAFETY: each of the `len` values is initialised and dropped once.
            unsafe { self.ptr.add(i).drop_in_place() };
        }
        // SAFETY: the memory came from kvzalloc.
        unsafe { bindings::kvfree(self.ptr.as_ptr().cast::<c_void>()) };
    }
}

struct Counted<T> {
    count: AtomicUsize,
    value: T,
}

/// A shared value, dropped with its last reference.
pub struct Arc<T>(NonNull<Counted<T>>);

// SAFETY: references share the value between threads, and the last one, in any thread, drops it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Moves a value to the heap, with one reference.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(value: T, context: Context) -> Result<Self> {
        let count = AtomicUsize::new(1);
        let raw = KBox::new(Counted { count, value }, context)?.into_raw();
        // SAFETY: a box is never null.
        Ok(Self(unsafe { NonNull::new_unchecked(raw) }))
    }
}

impl<T> Arc<T> {
    /// Says whether there is no other reference. Another one can't come meanwhile, as it could come from this one only.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        // SAFETY: a reference keeps the value alive.
        unsafe { self.0.as_ref() }.count.load(Ordering::Acquire) == 1
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        // SAFETY: a reference keeps the value alive.
        unsafe { self.0.as_ref() }
            .count
            .fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a reference keeps the value alive.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // SAFETY: a reference keeps the value alive.
        if unsafe { self.0.as_ref() }
            .count
            .fetch_sub(1, Ordering::Release)
            == 1
        {
            fence(Ordering::Acquire);
            // SAFETY: that was the last reference; the memory came from a box.
            drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
        }
    }
}
