// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data model of ibmgr: what can be set, what it is, what shall change and how it went.
//!
//! - [`registry`]: one table of knobs. Everything that lists knobs derives from it.
//! - [`Key`] names a knob, [`Value`] is a value that its [`Domain`] admits: parsed once, then valid.
//! - [`Link`] is an interface as the kernel reports it; a [`Reading`] is one knob of it, with the answer
//!   to "can this device take it?" ([`Support`]).
//! - [`Plan`] holds ordered [`Step`]s; [`Report`] tells per knob how they went.
//! - Links, reports, plans and knobs serialize to one documented JSON form.
//! - [`ErrorCode`] is the one table of exit codes, D-Bus error names and HTTP statuses.
//!
//! No I/O happens here.

mod channel;
mod document;
mod domain;
mod error;
mod key;
mod link;
mod nearest;
mod pkey;
mod plan;
pub mod registry;
mod value;

// The driver's own interface, for the crates that talk to it.
pub use ipoib_core::{abi, limits};

pub use channel::{
    Carrier, Channel, ChannelsField, CoalesceField, NapiField, RingField, RtnlField, SysfsField,
    TunableField,
};
pub use domain::{Choice, Domain, Unit, ValueError};
pub use error::ErrorCode;
pub use key::{Key, KeyError};
pub use link::{Guid, Limits, Link, LinkName, LinkNameError, Reading, Support};
pub use nearest::nearest;
pub use pkey::Pkey;
pub use plan::{Assignment, Outcome, Plan, PlanError, Report, ReportLine, Skip, Step};
pub use registry::{Effect, Group, Knob, Phase};
pub use value::Value;
