// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Connected mode (RFC 4755): what the two ends tell each other, and the life of a connection.
//!
//! A connection carries packets one way. The *active* end makes it and sends, the *passive* end takes it and receives.
//! Both are machines here: [`Active::on`] and [`Passive::on`] take what happened and say what to do about it.

use crate::limits::Limit;
use crate::wire::ENCAP_LEN;

/// Largest IP packet of a connection, in bytes: that of the in-tree driver, 16 short of 64 KiB.
pub const MAX_MTU: u32 = 65_520;

/// Bytes of a page that a receive buffer is made of.
pub const PAGE: u32 = 4096;

/// Pages of a receive buffer: enough for [`MAX_MTU`] with its encapsulation header.
pub const MAX_PAGES: usize = 16;

/// Milliseconds that a connection may be idle.
///
/// The default is near that of the in-tree driver for passive ones (two rounds of 256 s); the minimum lets tests wait for it.
pub const IDLE_MS: Limit = Limit {
    min: 1000,
    max: 86_400_000,
    default: 512_000,
};

/// Receive buffers of 64 KiB that an interface's connections share, or that each has where the HCA can't share.
#[must_use]
pub const fn receive_buffers(ring: u32, shared: bool) -> u32 {
    let most = if shared { 256 } else { 64 };
    if ring < most { ring } else { most }
}

/// Connections to us that are served at a time; more are refused, and their senders use datagrams.
#[must_use]
pub const fn most_passive(shared: bool) -> u32 {
    if shared { 1024 } else { 64 }
}

/// Connections of ours at a time; what goes to more neighbours goes in datagrams.
pub const MOST_ACTIVE: u32 = 1024;

/// Slots of a connection's send ring.
pub const SEND_RING: u32 = 128;

/// Requests that all connections of an interface may have under way.
pub const SEND_TOTAL: u32 = 1024;

/// Packets that wait for a connection because no datagram carries them.
pub const WAITING: u32 = 16;

/// How often a message is sent again without an answer; the retries of the layers above do better (RFC 4755, 8).
pub const RETRIES: u8 = 0;

/// How often a message is sent again that met a receiver without buffers. As with the in-tree driver, never: it would
/// hold up what goes to others.
pub const RNR_RETRIES: u8 = 0;

/// Returns the service ID under which an interface takes connections (RFC 4755, 3.2): its queue pair number.
#[must_use]
pub const fn service_id(qpn: u32) -> u64 {
    0x1000_0000_0000_0000 | (qpn & 0x00ff_ffff) as u64
}

/// Bytes of the private data that matter in REQ and REP.
pub const HELLO_LEN: usize = 8;

/// What each end says in the private data of REQ and REP (RFC 4755, 3.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hello {
    /// The sender's datagram queue pair, 24 bits.
    pub qpn: u32,
    /// Bytes of the largest message that it takes, encapsulation header included.
    pub bytes: u32,
}

impl Hello {
    /// Returns the wire form: both numbers big-endian, the queue pair's high byte 0.
    #[must_use]
    pub const fn encode(self) -> [u8; HELLO_LEN] {
        let [_, a, b, c] = self.qpn.to_be_bytes();
        let [d, e, f, g] = self.bytes.to_be_bytes();
        [0, a, b, c, d, e, f, g]
    }

    /// Reads the wire form. `None` when the other end takes no packet at all, or none of a size that IP demands (RFC 791:
    /// 68 bytes). What is larger than a receive buffer can be is cut to that.
    #[must_use]
    pub const fn decode(wire: [u8; HELLO_LEN]) -> Option<Self> {
        let [_, a, b, c, d, e, f, g] = wire;
        let qpn = u32::from_be_bytes([0, a, b, c]);
        let bytes = u32::from_be_bytes([d, e, f, g]);
        let most = MAX_MTU + ENCAP_LEN as u32;
        if bytes < 68 + ENCAP_LEN as u32 {
            return None;
        }
        let bytes = if bytes > most { most } else { bytes };
        Some(Self { qpn, bytes })
    }
}

/// Returns the pages that hold `bytes`.
#[must_use]
pub const fn pages(bytes: u32) -> u32 {
    bytes.div_ceil(PAGE)
}

/// Returns the largest IP packet that fits into a buffer of so many pages, at most [`MAX_MTU`].
#[must_use]
pub const fn mtu_of_pages(pages: u32) -> u32 {
    let mtu = pages.saturating_mul(PAGE).saturating_sub(ENCAP_LEN as u32);
    if mtu > MAX_MTU { MAX_MTU } else { mtu }
}

/// Returns the bytes of a message of `bytes` that go to the linear part when its pages are given away: the headers,
/// which the stack would move there anyway. At least one byte stays in the pages.
#[must_use]
pub const fn head_bytes(bytes: u32) -> u32 {
    let half = bytes / 2;
    if half > 128 { 128 } else { half }
}

/// Says whether something that was last used `unused_ms` ago is given up.
#[must_use]
pub const fn is_idle(unused_ms: u32, limit_ms: u32) -> bool {
    unused_ms >= limit_ms
}

/// The pause before the next attempt to connect; it grows with each failure in a row.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Shortest pause in milliseconds.
    pub const MIN_MS: u32 = 20;
    /// Longest pause in milliseconds.
    pub const MAX_MS: u32 = 16_000;
    /// A connection that stood so many milliseconds was no failure: the next one begins with the shortest pause.
    pub const GOOD_MS: u32 = 5000;

    /// Notes a failure, of a connection that stood `up_ms`; returns the pause.
    pub fn fail(&mut self, up_ms: u32) -> u32 {
        if up_ms >= Self::GOOD_MS {
            self.failures = 0;
        }
        let pause = Self::MIN_MS
            .checked_shl(self.failures.min(16))
            .unwrap_or(Self::MAX_MS)
            .min(Self::MAX_MS);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Notes a refusal, which the other end will not change its mind about soon.
    pub fn refuse(&mut self) -> u32 {
        self.failures = self.failures.max(6);
        self.fail(0)
    }

    /// Says whether the neighbour has to be taken for one that takes datagrams only: the stack is told their size.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        self.failures >= 4
    }
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Happening {
    /// Begin, or begin again after a pause.
    Start,
    /// The path is known.
    Path,
    /// REP, or RTU: the other end is there.
    Answer,
    /// It can't be: no path, no memory, REJ, or no answer.
    Refusal,
    /// The other end disconnects, or the queue pair failed.
    Loss,
    /// It is no longer wanted: unused, another mode, the interface goes down.
    Unwanted,
    /// What was posted has completed.
    Quiet,
    /// No receive will complete any more (`IB_EVENT_QP_LAST_WQE_REACHED`).
    LastReceive,
    /// The marker behind the last request came back.
    Drained,
    /// What is waited for took too long.
    Late,
}

/// What to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Ask for the path.
    Ask,
    /// Send REQ.
    Request,
    /// Send RTU and carry packets.
    Open,
    /// Take no more packets; what is posted may go out.
    Close,
    /// Put the queue pair into error.
    Break,
    /// Post the marker.
    Mark,
    /// Free everything.
    Free,
}

/// Where an active connection stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Active {
    /// It will begin.
    #[default]
    Wanted,
    /// The subnet administrator was asked for the path.
    Asking,
    /// REQ was sent.
    Requested,
    /// Packets go over it.
    Up,
    /// No more packets; what is posted goes out.
    Closing,
    /// The queue pair is in error and returns what it has.
    Draining,
    /// There is none, for a while.
    Resting,
}

impl Active {
    /// Returns the next state and what to do on the way.
    #[must_use]
    pub const fn on(self, what: Happening) -> (Self, Step) {
        use Happening as H;
        match (self, what) {
            (Self::Wanted | Self::Resting, H::Start) => (Self::Asking, Step::Ask),
            (Self::Wanted | Self::Resting, H::Unwanted) => (Self::Resting, Step::Free),
            (Self::Asking, H::Path) => (Self::Requested, Step::Request),
            (Self::Asking, H::Refusal | H::Unwanted | H::Loss | H::Late) => {
                (Self::Resting, Step::Free)
            }
            (Self::Requested, H::Answer) => (Self::Up, Step::Open),
            // Nothing was posted: nothing has to come back.
            (Self::Requested, H::Refusal | H::Unwanted | H::Loss | H::Late) => {
                (Self::Resting, Step::Free)
            }
            (Self::Up, H::Unwanted) => (Self::Closing, Step::Close),
            (Self::Up, H::Loss | H::Refusal) => (Self::Draining, Step::Break),
            (Self::Closing, H::Quiet | H::Late | H::Loss | H::Refusal) => {
                (Self::Draining, Step::Break)
            }
            (Self::Draining, H::Drained | H::Late) => (Self::Resting, Step::Free),
            (other, _) => (other, Step::Nothing),
        }
    }
}

/// Where a passive connection stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Passive {
    /// REP was sent; packets may come before RTU does.
    #[default]
    Answered,
    /// Packets come.
    Up,
    /// The queue pair is in error; receives come back.
    Flushing,
    /// All receives came back, the marker is under way.
    Draining,
    /// Nothing uses it.
    Over,
}

impl Passive {
    /// Returns the next state and what to do on the way. `shared` says that its buffers come from a shared queue: the end
    /// of its receives is told by an event then, and by the last of its own buffers otherwise.
    #[must_use]
    pub const fn on(self, what: Happening, shared: bool) -> (Self, Step) {
        use Happening as H;
        match (self, what) {
            (Self::Answered, H::Answer) => (Self::Up, Step::Open),
            (Self::Answered | Self::Up, H::Loss | H::Refusal | H::Unwanted) => {
                (Self::Flushing, Step::Break)
            }
            (Self::Flushing, H::LastReceive) if shared => (Self::Draining, Step::Mark),
            // Without the event, the marker is tried before all is given up.
            (Self::Flushing, H::Late) if shared => (Self::Draining, Step::Mark),
            (Self::Flushing | Self::Draining, H::Drained | H::Late) => (Self::Over, Step::Free),
            (other, _) => (other, Step::Nothing),
        }
    }
}
