// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Transmit against completion, in every interleaving that the memory model allows.
//!
//! Run it with `RUSTFLAGS="--cfg loom" cargo test -p ipoib-core --test loom --release`.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use ipoib_core::ring::{Producer, Retired, Size};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

struct Shared {
    retired: Retired,
    /// Chains that the device was handed: the end of the last one.
    device: AtomicU32,
    slots: [UnsafeCell<Option<u32>>; 2],
}

#[test]
fn a_slot_is_empty_when_it_is_handed_out_again() {
    loom::model(|| {
        let size = Size::new(2).unwrap();
        let shared = Arc::new(Shared {
            retired: Retired::default(),
            device: AtomicU32::new(Producer::new(size).chain_end()),
            slots: [UnsafeCell::new(None), UnsafeCell::new(None)],
        });
        let completion = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for _ in 0..2 {
                    let end = shared.device.load(Ordering::Acquire);
                    for position in shared.retired.positions_to(end, size) {
                        let slot = &shared.slots[size.slot(position) as usize];
                        // loom reports a race if the transmit side touches the slot at the same time.
                        let packet = slot.with_mut(|slot| take(slot));
                        assert_eq!(packet, Some(position));
                    }
                    shared.retired.retire_to(end, size);
                    thread::yield_now();
                }
            })
        };
        let mut ring = Producer::new(size);
        let mut reserved = 0;
        for _ in 0..3 {
            let Some(position) = ring.reserve(&shared.retired) else {
                break;
            };
            reserved += 1;
            let slot = &shared.slots[size.slot(position) as usize];
            slot.with_mut(|slot| put(slot, position));
            let end = ring.chain_end();
            ring.posted(1);
            shared.device.store(end, Ordering::Release);
        }
        assert!(reserved >= 2, "an empty ring has two slots");
        completion.join().unwrap();
    });
}

#[expect(
    unsafe_code,
    reason = "loom's cell hands out raw pointers and checks their use"
)]
fn take(slot: *mut Option<u32>) -> Option<u32> {
    // SAFETY: loom's cell gave the pointer for the length of the closure that calls this.
    unsafe { (*slot).take() }
}

#[expect(
    unsafe_code,
    reason = "loom's cell hands out raw pointers and checks their use"
)]
fn put(slot: *mut Option<u32>, packet: u32) {
    // SAFETY: loom's cell gave the pointer for the length of the closure that calls this.
    let old = unsafe { (*slot).replace(packet) };
    assert_eq!(old, None, "a slot in use was handed out");
}
