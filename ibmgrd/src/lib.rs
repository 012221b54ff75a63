// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon of ibmgr: keeps network interfaces at their declared settings.
//!
//! - [`supervisor`]: what to look at, when, and what to do about it. Knows no clock and no files.
//! - [`daemon`]: the loop around it: the kernel's events, signals, requests, the service manager.
//! - [`changes`]: what `ibctl apply` changes meanwhile, and what is left of it after a crash.
//! - [`files`]: the drop-in folders. [`place`]: the turn, the journal, other programs' marks.
//! - [`office`]: where every surface asks, who may ask for what, and what is told of it.
//! - [`http`]: the surface that `ibctl` and other programs ask through, over a unix socket.
//! - [`dbus`]: the same on the system bus.

pub mod changes;
pub mod daemon;
pub mod dbus;
mod error;
pub mod files;
pub mod http;
mod inherited;
pub mod log;
mod notify;
pub mod office;
pub mod options;
mod owners;
pub mod place;
pub mod supervisor;
mod surfaces;

pub use error::Error;
