// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! When to ring the doorbell for the pending chain.
//!
//! The stack tells with each packet whether more follow (`netdev_xmit_more()`), and holds the transmit
//! lock until it told that none do. So whatever is pending when the lock is given back must be covered
//! by an event that posts it: the doorbell itself, or, in adaptive mode only, the completion of a
//! chain that the device still holds. Every path through the driver ends in [`Batch::sent`] or
//! [`Batch::not_sent`], and rings when told to.

use crate::limits::BATCH_LIMIT;

/// How doorbells are shared.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u32)]
pub enum Mode {
    /// One doorbell per packet.
    Off = 0,
    /// As the stack's hint says.
    #[default]
    On = 1,
    /// Also without the hint, while the device has work whose completion will ring.
    Adaptive = 2,
}

impl Mode {
    /// Every mode, in the order of the kernel numbers.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Adaptive];

    /// Returns the mode of a kernel number.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0 => Some(Self::Off),
            1 => Some(Self::On),
            2 => Some(Self::Adaptive),
            _ => None,
        }
    }

    /// Returns the name that sysfs shows and reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Adaptive => "adaptive",
        }
    }
}

/// Why a doorbell was rung; each reason has a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub enum Flush {
    /// Batching is off.
    Single = 0,
    /// The stack said that no more packets follow.
    Last = 1,
    /// The chain reached the limit.
    Limit = 2,
    /// The queue was stopped, by the driver or by byte queue limits: no further call comes.
    Stopped = 3,
    /// A packet was dropped and none follows.
    Drop = 4,
    /// The next packet goes to another queue pair.
    Peer = 5,
    /// The completion that an adaptive chain waited for.
    Completion = 6,
    /// The interface goes down, or its settings change.
    Quiesce = 7,
}

impl Flush {
    /// Names of the counters, in the order of the numbers.
    pub const NAMES: [&'static str; 8] = [
        "flush_single",
        "flush_last",
        "flush_limit",
        "flush_stopped",
        "flush_drop",
        "flush_peer",
        "flush_completion",
        "flush_quiesce",
    ];
}

/// What the transmit path knows after a packet.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The stack says that another packet follows under the same lock.
    pub more: bool,
    /// The transmit queue is stopped, by whomever.
    pub stopped: bool,
    /// Requests pending, this packet's included.
    pub pending: u32,
    /// Requests that the device holds, the last of which is signalled.
    pub outstanding: u32,
}

/// The batching settings of one transmit queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch {
    /// How doorbells are shared.
    pub mode: Mode,
    /// Most requests per doorbell; values out of [`BATCH_LIMIT`] act as its nearest bound.
    pub limit: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            limit: BATCH_LIMIT.default,
        }
    }
}

impl Batch {
    /// Decides after a packet joined the chain: `Some` says ring now, and why.
    #[must_use]
    pub fn sent(&self, moment: Moment) -> Option<Flush> {
        let limit = self.limit.clamp(BATCH_LIMIT.min, BATCH_LIMIT.max);
        if moment.pending == 0 {
            None
        } else if self.mode == Mode::Off {
            Some(Flush::Single)
        } else if moment.stopped {
            Some(Flush::Stopped)
        } else if moment.pending >= limit {
            Some(Flush::Limit)
        } else if moment.more || self.may_wait(moment) {
            None
        } else {
            Some(Flush::Last)
        }
    }

    /// Decides after a packet did not join the chain (dropped, queued for a path, or refused with
    /// `NETDEV_TX_BUSY`): what was pending before must not be left behind.
    #[must_use]
    pub fn not_sent(&self, moment: Moment) -> Option<Flush> {
        if moment.pending == 0 {
            None
        } else if moment.stopped {
            Some(Flush::Stopped)
        } else if moment.more || self.may_wait(moment) {
            None
        } else {
            Some(Flush::Drop)
        }
    }

    /// Decides when a completion was served: `outstanding` is what the device still holds.
    ///
    /// An adaptive chain goes out with the first completion: it has waited for exactly that.
    #[must_use]
    pub const fn completed(&self, pending: u32) -> Option<Flush> {
        if pending == 0 {
            None
        } else {
            Some(Flush::Completion)
        }
    }

    /// Says whether a chain may outlive the transmit lock.
    fn may_wait(&self, moment: Moment) -> bool {
        self.mode == Mode::Adaptive && moment.outstanding > 0
    }
}
