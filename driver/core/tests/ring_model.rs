// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The ring and the batcher against a queue of packets, over random operations.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::VecDeque;

use ipoib_core::batch::{Batch, Flush, Mode, Moment};
use ipoib_core::ring::{Producer, Retired, Size};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    /// A packet; the stack's hint; whether byte queue limits stop the queue after it.
    Send { more: bool, bql: bool },
    /// A packet that is dropped before it joins the chain.
    Drop { more: bool },
    /// The device completes its oldest chain.
    Complete,
    /// The next doorbell fails after this many requests.
    FailAfter(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(more, bql)| Op::Send { more, bql }),
        1 => any::<bool>().prop_map(|more| Op::Drop { more }),
        3 => Just(Op::Complete),
        1 => (0_u32..6).prop_map(Op::FailAfter),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    (0_u32..3, 1_u32..9).prop_map(|(mode, limit)| Batch {
        mode: Mode::from_raw(mode).unwrap(),
        limit,
    })
}

/// The driver's transmit path around the real decisions, with a device that is a queue.
struct Model {
    batch: Batch,
    ring: Producer,
    retired: Retired,
    /// Packet numbers by slot, as the driver's array of skbs.
    slots: Vec<Option<u64>>,
    /// Chains at the device: their end and packets.
    device: VecDeque<(u32, Vec<u64>)>,
    fail_after: Option<u32>,
    next: u64,
    completed: Vec<u64>,
    dropped: Vec<u64>,
    longest: usize,
}

impl Model {
    fn new(batch: Batch, slots: u32) -> Self {
        Self {
            batch,
            ring: Producer::new(Size::new(slots).unwrap()),
            retired: Retired::default(),
            slots: vec![None; slots as usize],
            device: VecDeque::new(),
            fail_after: None,
            next: 0,
            completed: Vec::new(),
            dropped: Vec::new(),
            longest: 0,
        }
    }

    fn moment(&self, more: bool, stopped: bool) -> Moment {
        Moment {
            more,
            stopped,
            pending: self.ring.pending(),
            outstanding: self.ring.outstanding(&self.retired),
        }
    }

    fn send(&mut self, more: bool, bql: bool) {
        let packet = self.next;
        let Some(position) = self.ring.reserve(&self.retired) else {
            // NETDEV_TX_BUSY: the stack keeps the packet and the queue is stopped.
            let flush = self.batch.not_sent(self.moment(more, true));
            self.flush(flush);
            return;
        };
        self.next += 1;
        let slot = self
            .slots
            .get_mut(self.ring.size().slot(position) as usize)
            .unwrap();
        assert_eq!(*slot, None, "a slot in use was handed out");
        *slot = Some(packet);
        let stopped = bql || self.ring.free(&self.retired) == 0;
        let flush = self.batch.sent(self.moment(more, stopped));
        self.flush(flush);
    }

    fn flush(&mut self, why: Option<Flush>) {
        if why.is_none() {
            return;
        }
        let positions: Vec<u32> = self.ring.chain().collect();
        let taken = self
            .fail_after
            .take()
            .map_or(positions.len(), |k| positions.len().min(k as usize));
        self.longest = self.longest.max(positions.len());
        let size = self.ring.size();
        let packet = |slots: &[Option<u64>], p: &u32| slots[size.slot(*p) as usize].unwrap();
        let chain = positions[..taken]
            .iter()
            .map(|p| packet(&self.slots, p))
            .collect::<Vec<_>>();
        let whole = taken == positions.len();
        for position in self.ring.posted(taken as u32) {
            let slot = &mut self.slots[size.slot(position) as usize];
            self.dropped.push(slot.take().unwrap());
        }
        if !chain.is_empty() {
            // A chain cut short has lost its signalled end; the driver signals by resetting the queue
            // pair then. The model lets the device complete it at its new end.
            let end = if whole {
                self.ring.chain_end()
            } else {
                positions[0].wrapping_add(taken as u32)
            };
            self.device.push_back((end, chain));
        }
    }

    fn complete(&mut self) {
        let Some((end, chain)) = self.device.pop_front() else {
            return;
        };
        let size = self.ring.size();
        let mut freed = Vec::new();
        for position in self.retired.positions_to(end, size) {
            freed.push(self.slots[size.slot(position) as usize].take().unwrap());
        }
        assert_eq!(freed, chain);
        assert_eq!(self.retired.retire_to(end, size) as usize, chain.len());
        self.completed.extend(chain);
        let flush = self.batch.completed(self.ring.pending());
        self.flush(flush);
    }
}

proptest! {
    #[test]
    fn every_packet_completes_or_is_dropped_once_and_in_order(
        batch in batch(),
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut model = Model::new(batch, 16);
        prop_assert_eq!(model.ring.free(&model.retired), 16);
        let mut more_follows = false;
        for op in ops {
            match op {
                Op::Send { more, bql } => {
                    model.send(more, bql);
                    more_follows = more && !bql;
                }
                Op::Drop { more } => {
                    let flush = model.batch.not_sent(model.moment(more, false));
                    model.flush(flush);
                    more_follows = more;
                }
                // A completion can come at any time, but it posts under the transmit lock.
                Op::Complete => model.complete(),
                Op::FailAfter(k) => model.fail_after = Some(k),
            }
            let pending = model.ring.pending();
            // R1 to R4: nothing is left behind without an event that will post it.
            if pending > 0 && !more_follows {
                prop_assert_eq!(model.batch.mode, Mode::Adaptive);
                prop_assert!(!model.device.is_empty(), "an idle ring holds a chain back");
            }
            prop_assert!(pending < model.batch.limit.max(1) || more_follows || pending == 0);
            prop_assert!(model.longest <= model.batch.limit as usize, "R5");
        }
        // The stack ends every train; then the device finishes its work.
        model.fail_after = None;
        let flush = model.batch.not_sent(model.moment(false, false));
        model.flush(flush);
        while !model.device.is_empty() {
            model.complete();
        }
        prop_assert_eq!(model.ring.pending(), 0);
        prop_assert!(model.slots.iter().all(Option::is_none));
        prop_assert!(model.completed.is_sorted(), "reordered");
        let mut all = [model.completed.clone(), model.dropped.clone()].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..model.next).collect::<Vec<_>>());
        if model.batch.mode == Mode::Off {
            prop_assert!(model.longest <= 1);
        }
    }
}

#[test]
fn positions_survive_the_overflow_of_their_counter() {
    let size = Size::new(8192).unwrap();
    let (mut ring, retired) = (Producer::new(size), Retired::default());
    // An empty ring starts 1000 positions before the overflow.
    for _ in 0..3 {
        while ring.reserve(&retired).is_some() {}
        let end = ring.chain_end();
        assert_eq!(ring.chain().count(), 8192);
        assert_eq!(ring.posted(8192).count(), 0);
        assert_eq!(ring.outstanding(&retired), 8192);
        assert_eq!(retired.positions_to(end, size).count(), 8192);
        assert_eq!(retired.retire_to(end, size), 8192);
    }
    assert_eq!(
        (
            ring.pending(),
            ring.outstanding(&retired),
            ring.free(&retired)
        ),
        (0, 0, 8192)
    );
}

#[test]
fn a_stale_completion_retires_nothing() {
    let size = Size::new(4).unwrap();
    let (mut ring, retired) = (Producer::new(size), Retired::default());
    let start = ring.reserve(&retired).unwrap();
    let end = ring.chain_end();
    ring.posted(1);
    assert_eq!(retired.retire_to(end, size), 1);
    assert_eq!(retired.retire_to(end, size), 0);
    assert_eq!(retired.retire_to(start, size), 0, "an older end");
    assert_eq!(
        retired.retire_to(end.wrapping_add(1000), size),
        0,
        "a foreign end"
    );
    assert_eq!(ring.free(&retired), 4);
}

#[test]
fn every_state_of_the_batcher_keeps_the_rules() {
    for mode in Mode::ALL {
        for (limit, pending, outstanding) in
            (1..=4).flat_map(|l| (0..=4).flat_map(move |p| (0..=2).map(move |o| (l, p, o))))
        {
            for (more, stopped) in [(false, false), (false, true), (true, false), (true, true)] {
                let batch = Batch { mode, limit };
                let moment = Moment {
                    more,
                    stopped,
                    pending,
                    outstanding,
                };
                let sent = batch.sent(moment);
                let not_sent = batch.not_sent(moment);
                assert!(
                    pending > 0 || (sent.is_none() && not_sent.is_none()),
                    "an empty doorbell"
                );
                if pending > 0 {
                    assert!(mode != Mode::Off || sent == Some(Flush::Single));
                    assert!(pending < limit || sent.is_some(), "R5");
                    assert!(!stopped || (sent.is_some() && not_sent.is_some()), "R2");
                    let covered = mode == Mode::Adaptive && outstanding > 0;
                    assert!(
                        more || covered || (sent.is_some() && not_sent.is_some()),
                        "R1, R3, R4"
                    );
                }
            }
        }
    }
}
