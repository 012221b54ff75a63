// SPDX-License-Identifier: GPL-2.0-only
//! The transmit queue of a device: its lock, its stopping and waking, its byte queue limits.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::netdev::{Device, Driver, private};

impl<D: Driver> Device<D> {
    /// Takes the transmit lock, with BHs off. Not in hard interrupts, nor within `start_xmit`.
    pub fn tx_lock(&self) -> TxGuard<'_, D> {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_tx_lock(self.as_ptr()) };
        TxGuard {
            dev: self,
            taken: true,
            here: PhantomData,
        }
    }
}

impl<D> Device<D> {
    /// Stops the transmit queue. The transmit lock is held.
    pub fn stop_queue(&self) {
        // SAFETY: the device is valid and has one queue.
        unsafe { bindings::ipoib_h_tx_stop(self.as_ptr()) };
    }

    /// Lets the transmit queue run.
    pub fn wake_queue(&self) {
        // SAFETY: the device is valid and has one queue.
        unsafe { bindings::netif_tx_wake_queue((*self.as_ptr())._tx) };
    }

    /// Says whether the driver stopped the transmit queue.
    #[must_use]
    pub fn is_queue_stopped(&self) -> bool {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_tx_stopped(self.as_ptr()) }
    }

    /// Counts bytes to the byte queue limits; says whether the queue is now stopped, by whomever.
    pub fn sent(&self, bytes: u32, more: bool) -> bool {
        // SAFETY: the device is valid; the transmit lock is held by the sender.
        unsafe { bindings::ipoib_h_tx_sent(self.as_ptr(), bytes, more) }
    }

    /// Takes packets and bytes off the byte queue limits.
    pub fn completed(&self, skbs: u32, bytes: u32) {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_tx_completed(self.as_ptr(), skbs, bytes) };
    }

    /// Starts the byte queue limits anew; nothing is in flight.
    pub fn reset_limits(&self) {
        // SAFETY: the device is valid.
        unsafe { bindings::ipoib_h_tx_reset(self.as_ptr()) };
    }
}

/// The transmit lock of a device, and what it protects.
pub struct TxGuard<'a, D: Driver> {
    dev: &'a Device<D>,
    taken: bool,
    // Given back where it was taken.
    here: PhantomData<*mut ()>,
}

impl<'a, D: Driver> TxGuard<'a, D> {
    /// # Safety
    ///
    /// The caller is `start_xmit`: the stack holds the lock.
    pub(crate) unsafe fn of_stack(dev: &'a Device<D>) -> Self {
        Self {
            dev,
            taken: false,
            here: PhantomData,
        }
    }
}

impl<D: Driver> Deref for TxGuard<'_, D> {
    type Target = D::Tx;

    fn deref(&self) -> &D::Tx {
        // SAFETY: the transmit lock is held.
        unsafe { &*(*private::<D>(self.dev.as_ptr())).tx.get() }
    }
}

impl<D: Driver> DerefMut for TxGuard<'_, D> {
    fn deref_mut(&mut self) -> &mut D::Tx {
        // SAFETY: the transmit lock is held, and there is one guard per holder.
        unsafe { &mut *(*private::<D>(self.dev.as_ptr())).tx.get() }
    }
}

impl<D: Driver> Drop for TxGuard<'_, D> {
    fn drop(&mut self) {
        if self.taken {
            // SAFETY: taken by `tx_lock`.
            unsafe { bindings::ipoib_h_tx_unlock(self.dev.as_ptr()) };
        }
    }
}
