// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When to try again: after failures, and against a program that keeps changing a value.

use std::time::{Duration, Instant};

/// The first delay.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(300);
/// So many changes are put right at once before delays begin.
const FREE: u32 = 5;
/// After so long without a change the next one is put right at once again; at least four delays.
const QUIET: Duration = Duration::from_secs(60);

/// Returns 1 s, 2 s, 4 s and so on up to 5 minutes; nothing for the zeroth time.
fn delay(time: u32) -> Duration {
    match time.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST.saturating_mul(1 << doublings.min(10)).min(LONGEST),
    }
}

/// Changes of one value by others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fight {
    /// All of them.
    pub(crate) drifts: u64,
    recent: u32,
    last: Option<Instant>,
}

impl Fight {
    /// Notes that somebody changed it.
    pub(crate) fn note(&mut self, now: Instant) {
        let quiet = QUIET.max(self.delay() * 4);
        let is_quiet = |last: Instant| now.saturating_duration_since(last) >= quiet;
        if self.last.is_some_and(is_quiet) {
            self.recent = 0;
        }
        self.recent = self.recent.saturating_add(1);
        self.drifts += 1;
        self.last = Some(now);
    }

    /// Returns how long the next correction waits after the last change.
    pub(crate) fn delay(&self) -> Duration {
        delay(self.recent.saturating_sub(FREE))
    }

    /// Returns when it may be set again, if that is not now.
    pub(crate) fn until(&self, now: Instant) -> Option<Instant> {
        let until = self.last? + self.delay();
        (until > now).then_some(until)
    }

    /// Returns how often it was changed of late.
    pub(crate) const fn recent(&self) -> u32 {
        self.recent
    }
}

/// Failures of one write in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failures {
    count: u32,
}

impl Failures {
    /// Notes a failure, and returns when to try again.
    pub(crate) fn note(&mut self, now: Instant) -> Instant {
        self.count = self.count.saturating_add(1);
        now + delay(self.count)
    }

    /// Returns when to try after something happened that may have removed the cause. Not at once: the
    /// attempt itself may have made it happen.
    pub(crate) fn sooner(planned: Instant, now: Instant) -> Instant {
        planned.min(now + FIRST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fight_is_slowed_down_and_forgotten() {
        let start = Instant::now();
        let mut fight = Fight::default();
        for _ in 0..FREE {
            fight.note(start);
            assert_eq!(fight.until(start), None);
        }
        let mut now = start;
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            fight.note(now);
            assert_eq!(fight.until(now), Some(now + Duration::from_secs(expected)));
            now += Duration::from_secs(expected);
            assert_eq!(fight.until(now), None);
        }
        assert_eq!((fight.drifts, fight.recent()), (16, 16));
        fight.note(now + Duration::from_secs(1200));
        assert_eq!(fight.until(now + Duration::from_secs(1200)), None);
        assert_eq!(fight.drifts, 17);
    }

    #[test]
    fn failures_are_tried_again_ever_later() {
        let now = Instant::now();
        let mut failures = Failures::default();
        let delays: Vec<u64> = (0..12)
            .map(|_| (failures.note(now) - now).as_secs())
            .collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let planned = now + Duration::from_secs(300);
        assert_eq!(Failures::sooner(planned, now), now + FIRST);
        assert_eq!(Failures::sooner(now, now), now);
    }
}
