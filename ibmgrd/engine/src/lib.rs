// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From wanted and observed values to ordered steps, and through them.
//!
//! [`resolve()`] turns declarations into wanted values of the interfaces that are there.
//! [`plan()`] is a pure function; [`run()`] takes the plan through a [`Port`], which is the kernel in
//! production and a misbehaving model of it in tests. No clock, no files, no sockets here.
//!
//! For a whole host: [`plan_host`], [`apply()`] with a [`Journal`], and [`recover`] after a crash.
//!
//! Properties, each proven by a test in `tests/`: a plan after a successful run is empty; knobs that
//! were not asked for keep their value, or are put back to it; the order of the input never matters;
//! a failure leaves the values of before, or says which it could not put back.

mod host;
mod order;
mod parts;
mod plan;
mod port;
mod prepare;
mod resolve;
mod run;

pub use host::{
    Host, Journal, JournalError, Record, Recovery, Story, apply, keys_of, plan_declared, plan_host,
    recover, roll_back,
};
pub use ibmgr_api::{NewChild, OldChild, Target};
pub use parts::keys_of_parts;
pub use plan::{carrier_on, keys_to_observe, plan, rejected};
pub use port::{Keys, Port, PortError, Query};
pub use prepare::{Unplanned, Whole, observe_whole, prepare};
pub use resolve::resolve;
pub use run::run;
