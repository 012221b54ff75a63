// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What ibmgr keeps on disk about changes of a host: the journal, and the lock that keeps changes apart.
//!
//! - [`Store`] is the folder of one network namespace below `/run/ibmgr`.
//! - [`FileJournal`] keeps the engine's notes there; [`Kept`] is what is read back of them.
//! - [`Standing`] tells whether a change is under way, was interrupted, or waits to be confirmed.
//! - [`change`] has all that is done with them: begin, confirm, take back, bring to an end.
//! - [`lock::hold`] lets one change run at a time.
//!
//! A journal is lines of a checksum and JSON. The first line is written to a new file that takes the old
//! one's place when it is whole; the others are appended. They outlive the process, not a reboot: nor do
//! the settings that they are about.

pub mod change;
mod clock;
mod error;
mod form;
mod journal;
mod kept;
pub mod lock;
mod store;

pub use clock::boottime;
pub use error::StateError;
pub use journal::{About, FileJournal};
pub use kept::{Kept, Standing};
pub use store::{ROOT, Store};

#[cfg(test)]
mod tests;
