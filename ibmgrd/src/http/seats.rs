// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections of the unix socket by user: one user can't take them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections by user.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<HashMap<u32, usize>>>);

/// A connection that counts; it is given back by dropping it.
pub(super) struct Seat {
    seats: Seats,
    /// `None` for root's.
    user: Option<u32>,
}

impl Seats {
    fn counts(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection of a user, unless they have `most` already. Root may have as many as there are; a peer that is
    /// gone before it could be asked counts as one user with all of its kind.
    pub(super) fn take(&self, user: Option<u32>, most: usize) -> Option<Seat> {
        if user == Some(0) {
            let seats = self.clone();
            return Some(Seat { seats, user: None });
        }
        let user = user.unwrap_or(u32::MAX);
        let mut counts = self.counts();
        let count = counts.entry(user).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(counts);
        let seats = self.clone();
        let user = Some(user);
        Some(Seat { seats, user })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(user) = self.user else { return };
        let mut counts = self.seats.counts();
        if let Some(count) = counts.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_the_others() {
        let seats = Seats::default();
        let mut held: Vec<Seat> = (0..3).filter_map(|_| seats.take(Some(1000), 3)).collect();
        assert_eq!(held.len(), 3);
        assert!(seats.take(Some(1000), 3).is_none(), "a fourth one");
        assert!(seats.take(Some(1001), 3).is_some(), "another user's");
        for _ in 0..10 {
            held.push(seats.take(Some(0), 3).unwrap());
        }
        held.clear();
        assert!(seats.counts().is_empty(), "users without connections");
        assert!(seats.take(None, 0).is_none(), "a peer that is gone");
    }
}
