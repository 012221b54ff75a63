// SPDX-License-Identifier: GPL-2.0-only
//! Large packets that the driver cuts, for an HCA that does not. Under the transmit lock.

use ipoib_core::batch::Moment;
use ipoib_core::wire::ENCAP_LEN;
use kernel::error::Errno;
use kernel::sendq::{Posted, Target};
use kernel::skb::Skb;

use crate::port::Dev;
use crate::tx::{Outcome, Tx, chained, lose, ring};

/// Puts the segments of a packet, which begins with its encapsulation header, into the chain. Doorbells are rung on the
/// way, as for packets that the stack cut.
pub(crate) fn send(dev: &Dev, tx: &mut Tx, skb: Skb, to: Target, more: bool) -> Outcome {
    let counters = &dev.data().counters;
    let bytes = skb.len();
    let segments = skb.segments();
    let begun = tx
        .queue
        .as_mut()
        .map_or(Err(Errno::ENODEV), |queue| queue.begin(skb, to));
    let mut train = match begun {
        Ok(train) => train,
        Err(errno) => {
            let lost = match errno {
                Errno::EBUSY => &counters.tx_drop_ring,
                Errno::ENOMEM => &counters.tx_drop_memory,
                Errno::ENODEV => &counters.tx_drop_down,
                _ => &counters.tx_drop_map,
            };
            lost.add(segments);
            return Outcome::Gone;
        }
    };
    if train.longest() > tx.mtu.saturating_add(ENCAP_LEN as u32) {
        counters.tx_drop_too_long.add(segments);
        let _kept = tx.queue.as_mut().is_some_and(|queue| queue.give_up(train));
        return Outcome::Gone;
    }
    let mut posted = Posted::default();
    while let Some(queue) = tx.queue.as_mut() {
        match queue.segment(&mut train) {
            Ok(true) => {}
            Ok(false) => return chained(dev, tx, bytes, more),
            Err(_) => break,
        }
        let moment = Moment {
            more: true,
            stopped: false,
            pending: queue.pending(),
            outstanding: queue.awaited(),
        };
        if let Some(reason) = tx.batch.sent(moment) {
            posted = ring(tx, counters, reason);
            if posted.refused.is_some() {
                break;
            }
        }
    }
    // The train ends early. Its segments in the ring keep the packet, and the byte queue limits must hear of that before
    // they hear of what is lost.
    counters.tx_drop_post.add(train.left());
    let kept = tx.queue.as_mut().is_some_and(|queue| queue.give_up(train));
    let outcome = if kept {
        chained(dev, tx, bytes, more)
    } else {
        Outcome::Gone
    };
    lose(dev, tx, counters, posted);
    outcome
}
