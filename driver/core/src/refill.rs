// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! When to post receive buffers, and when to copy a frame instead of giving its buffer away.

/// Receive requests that are posted with one doorbell when there is no hurry.
pub const POST_BATCH: u32 = 16;

/// Says whether `waiting` empty buffers should be posted now, with `posted` ones at the device.
///
/// One doorbell serves [`POST_BATCH`] buffers. The device never has less than half of its ring for
/// want of a doorbell, so a small ring is posted in smaller chains.
#[must_use]
pub const fn is_due(waiting: u32, posted: u32, size: u32) -> bool {
    waiting > 0 && (waiting >= POST_BATCH || posted <= size / 2)
}

/// Says whether a payload of `length` bytes is copied to a small skb, so that its buffer can be
/// posted again at once. A threshold of 0 turns copying off.
#[must_use]
pub const fn is_copied(length: u32, threshold: u32) -> bool {
    length <= threshold && threshold > 0
}
