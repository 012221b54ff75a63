// SPDX-License-Identifier: GPL-2.0-only
//! Counters, in the order of their names.

use core::sync::atomic::{AtomicU64, Ordering};

use ipoib_core::batch::Flush;

/// A counter with one writer at a time: the holder of the transmit lock, or the receive poller.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    pub(crate) fn add(&self, n: u32) {
        let value = self.0.load(Ordering::Relaxed);
        self.0
            .store(value.wrapping_add(u64::from(n)), Ordering::Relaxed);
    }

    /// Reads.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one interface.
        #[derive(Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
            /// Chains by length: 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64.
            pub chains: [Counter; 7],
            /// Doorbells by reason.
            pub flushes: [Counter; 8],
        }

        const NAMED: usize = [$(stringify!($name)),*].len();
        const NAMES: [&str; NAMED] = [$(stringify!($name)),*];

        impl Counters {
            fn named(&self) -> [&Counter; NAMED] {
                [$(&self.$name),*]
            }
        }
    };
}

counters! {
    /// Packets that the device sent; a segmented one counts each segment.
    tx_packets,
    /// Their bytes, encapsulation header included.
    tx_bytes,
    /// Doorbells: calls of `ib_post_send`.
    tx_doorbells,
    /// Send requests posted.
    tx_wrs,
    /// Send completions polled.
    tx_cqes,
    /// Send polls.
    tx_polls,
    /// The driver stopped the queue: the ring is full.
    tx_queue_stops,
    /// And let it run again.
    tx_queue_wakes,
    /// Sends that failed, and those that the device refused.
    tx_errors,
    /// Dropped: no valid link-layer header.
    tx_drop_header,
    /// Dropped: an Ethernet type that IPoIB does not carry.
    tx_drop_ethertype,
    /// Dropped: larger than the broadcast group's MTU.
    tx_drop_too_long,
    /// Dropped: no path to the destination, or too many packets wait for one.
    tx_drop_path,
    /// Dropped: the multicast group can't be joined, or too many packets wait for that.
    tx_drop_multicast,
    /// Dropped: no memory.
    tx_drop_memory,
    /// Dropped: the ring is full.
    tx_drop_ring,
    /// Dropped: cannot be mapped for the device, or has too many parts.
    tx_drop_map,
    /// Dropped: refused by `ib_post_send`.
    tx_drop_post,
    /// Dropped: the HCA took it and could not send it.
    tx_drop_send,
    /// Dropped: the interface went down.
    tx_drop_down,
    /// Dropped: its connection broke before it was sent.
    tx_drop_connection,
    /// Waited for a path or a group, and were handed to the interface again.
    tx_waited,
    /// Path queries sent.
    path_queries,
    /// Path queries that failed.
    path_failures,
    /// Received packets.
    rx_packets,
    /// Their bytes, without GRH and encapsulation header.
    rx_bytes,
    /// Received multicast packets.
    rx_multicast,
    /// Receive completions polled.
    rx_cqes,
    /// Receive polls.
    rx_polls,
    /// Doorbells: calls of `ib_post_recv`.
    rx_doorbells,
    /// Receives that failed.
    rx_errors,
    /// Dropped: shorter than its headers.
    rx_drop_short,
    /// Dropped: longer than the interface takes.
    rx_drop_long,
    /// Dropped: an Ethernet type that IPoIB does not carry.
    rx_drop_ethertype,
    /// Dropped: our own multicast packet.
    rx_drop_own,
    /// Dropped: no memory for another buffer.
    rx_drop_memory,
    /// Broadcast group joined.
    broadcast_joins,
    /// Multicast joins that failed.
    multicast_failures,
    /// Packets sent over connections; `tx_packets` has them, too.
    cm_tx_packets,
    /// Unicast packets to neighbours that went in datagrams, in connected mode.
    cm_tx_datagrams,
    /// Packets received over connections.
    cm_rx_packets,
    /// Their bytes, without encapsulation header.
    cm_rx_bytes,
    /// Of them, those that were copied so that their buffer could be posted again (`cm-copybreak`).
    cm_rx_copied,
    /// Receive completions of connections polled.
    cm_rx_cqes,
    /// Receive polls of connections.
    cm_rx_polls,
    /// Doorbells for receive buffers of connections.
    cm_rx_doorbells,
    /// Receives over connections that failed.
    cm_rx_errors,
    /// Dropped: shorter than its header, over a connection.
    cm_rx_drop_short,
    /// Dropped: longer than the interface takes, over a connection.
    cm_rx_drop_long,
    /// Dropped: an Ethernet type that IPoIB does not carry, over a connection.
    cm_rx_drop_ethertype,
    /// Dropped: no memory for another buffer, over a connection.
    cm_rx_drop_memory,
    /// Requests to connect sent.
    cm_requests,
    /// Connections of ours that were made.
    cm_active_opened,
    /// Connections of ours that could not be made, or broke.
    cm_active_failed,
    /// Connections of ours given up as unused.
    cm_active_reaped,
    /// Requests of ours that were rejected.
    cm_rejects,
    /// Requests of ours without an answer.
    cm_timeouts,
    /// Connections of ours that ended at a receiver without buffers.
    cm_rnr_exhausted,
    /// Connections of ours that ended without an acknowledgement.
    cm_retries_exhausted,
    /// Connections to us that were made.
    cm_passive_accepted,
    /// Requests that were refused: too many, no memory, no queue pair.
    cm_passive_refused,
    /// Connections to us that ended.
    cm_passive_closed,
    /// Of them, those given up as unused.
    cm_passive_reaped,
    /// Steps of connections that took too long.
    cm_late,
    /// Senders told that a packet was too large.
    cm_told_too_large,
    /// Transmit timeouts.
    tx_timeouts,
    /// Restarts of the queue pair after an error.
    restarts,
}

const CHAINS: [&str; 7] = [
    "chain_1", "chain_2", "chain_4", "chain_8", "chain_16", "chain_32", "chain_64",
];

const ALL: usize = NAMED + CHAINS.len() + Flush::NAMES.len();

/// Names of all counters.
pub(crate) const ALL_NAMES: [&str; ALL] = {
    let mut all = [""; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = if i < NAMED {
            NAMES[i]
        } else if i < NAMED + CHAINS.len() {
            CHAINS[i - NAMED]
        } else {
            Flush::NAMES[i - NAMED - CHAINS.len()]
        };
        i += 1;
    }
    all
};

impl Counters {
    /// Counts a doorbell.
    pub(crate) fn doorbell(&self, requests: u32, reason: Flush) {
        self.tx_doorbells.add(1);
        self.tx_wrs.add(requests);
        // 1, 2, 3 to 4 ... go to 0, 1, 2 ...
        let class = requests.max(1).next_power_of_two().trailing_zeros() as usize;
        if let Some(counter) = self.chains.get(class) {
            counter.add(1);
        }
        if let Some(counter) = self.flushes.get(reason as usize) {
            counter.add(1);
        }
    }

    /// Reads all counters.
    pub(crate) fn read(&self, values: &mut [u64]) {
        let named = self.named();
        let all = named.into_iter().chain(&self.chains).chain(&self.flushes);
        for (value, counter) in values.iter_mut().zip(all) {
            *value = counter.get();
        }
    }

    /// Returns the packets dropped on their way out.
    pub(crate) fn tx_dropped(&self) -> u64 {
        [
            &self.tx_drop_header,
            &self.tx_drop_ethertype,
            &self.tx_drop_too_long,
            &self.tx_drop_path,
            &self.tx_drop_multicast,
            &self.tx_drop_memory,
            &self.tx_drop_ring,
            &self.tx_drop_map,
            &self.tx_drop_post,
            &self.tx_drop_send,
            &self.tx_drop_down,
            &self.tx_drop_connection,
        ]
        .iter()
        .fold(0, |sum, counter| sum.wrapping_add(counter.get()))
    }

    /// Returns the packets dropped on their way in; our own multicast packets are not lost.
    pub(crate) fn rx_dropped(&self) -> u64 {
        [
            &self.rx_drop_short,
            &self.rx_drop_long,
            &self.rx_drop_ethertype,
            &self.rx_drop_memory,
            &self.cm_rx_drop_short,
            &self.cm_rx_drop_long,
            &self.cm_rx_drop_ethertype,
            &self.cm_rx_drop_memory,
        ]
        .iter()
        .fold(0, |sum, counter| sum.wrapping_add(counter.get()))
    }
}
