// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time that the loop works by: nobody can set it, and it goes on in sleep (`CLOCK_BOOTTIME`,
//! clock_gettime(2)), so that a change is taken back in time whatever happens to the wall clock, and
//! also after the machine has slept.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use ibmgrd_state::boottime;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::Error;

/// A descriptor as the runtime wants it.
#[derive(Debug)]
pub(super) struct Readable<T>(pub(super) T);

impl<T: AsFd> AsRawFd for Readable<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe; what is wrapped owns its descriptor and keeps it"
)]
pub(super) fn readable<T: AsFd>(it: T) -> io::Result<AsyncFd<Readable<T>>> {
    AsyncFd::with_interest(Readable(it), Interest::READABLE)
}

/// A clock and its timer. Its instants only compare with each other.
#[derive(Debug)]
pub(super) struct Clock {
    /// What `boot` is as an instant.
    base: Instant,
    /// Time since boot when the clock was made.
    boot: Duration,
    timer: AsyncFd<Readable<TimerFd>>,
}

impl Clock {
    /// Returns a clock that was never set.
    pub(super) fn new() -> Result<Self, Error> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).map_err(io::Error::from);
        let timer = timer.and_then(readable);
        Ok(Self {
            base: Instant::now(),
            boot: boottime(),
            timer: timer.map_err(Error::io("making a timer"))?,
        })
    }

    /// Returns the present time.
    pub(super) fn now(&self) -> Instant {
        self.base + boottime().saturating_sub(self.boot)
    }

    /// Waits until `at`, or for ever.
    pub(super) async fn wait(&self, at: Option<Instant>) {
        let Some(at) = at else {
            return std::future::pending().await;
        };
        // A time of zero would mean never.
        let since_boot = self.boot + at.saturating_duration_since(self.base);
        let since_boot = since_boot.max(Duration::from_nanos(1));
        let when = Expiration::OneShot(TimeSpec::from_duration(since_boot));
        let timer = &self.timer.get_ref().0;
        if timer
            .set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .is_err()
        {
            // It cannot fail for such a time; looking too often is better than never.
            return tokio::time::sleep(Duration::from_secs(1)).await;
        }
        loop {
            let Ok(mut ready) = self.timer.readable().await else {
                return;
            };
            ready.clear_ready();
            // It says "would block" when what made it readable was an earlier time.
            if ready.get_inner().0.wait().is_ok() || self.now() >= at {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_as_the_time_since_boot_does() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let clock = Clock::new().unwrap();
            for millis in [0, 1, 30] {
                let (start, at) = (boottime(), clock.now() + Duration::from_millis(millis));
                clock.wait(Some(at)).await;
                assert!(clock.now() >= at);
                assert!(boottime() - start >= Duration::from_millis(millis));
            }
            // What was waited for and given up does not end the next wait.
            let soon = clock.now() + Duration::from_millis(5);
            let given_up = tokio::time::timeout(Duration::ZERO, clock.wait(Some(soon))).await;
            assert!(given_up.is_err());
            std::thread::sleep(Duration::from_millis(10));
            let later = clock.now() + Duration::from_millis(50);
            clock.wait(Some(later)).await;
            assert!(clock.now() >= later);
        });
    }
}
