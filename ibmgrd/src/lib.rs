// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon of ibmgr: keeps network interfaces at their declared settings.
//!
//! - [`supervisor`]: what to look at, when, and what to do about it. Knows no clock and no files.
//! - [`daemon`]: the loop around it: the kernel's events, signals, requests, the service manager.
//! - [`changes`]: what `ibctl apply` changes meanwhile, and what is left of it after a crash.
//! - [`files`]: the drop-in folders. [`place`]: the turn, the journal, other programs' marks.
//! - [`http`]: what `ibctl` and other programs ask over a unix socket.

pub mod changes;
pub mod daemon;
mod error;
pub mod files;
pub mod http;
pub mod log;
mod notify;
pub mod options;
mod owners;
pub mod place;
pub mod supervisor;

pub use error::Error;
