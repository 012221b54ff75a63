// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data model of ibmgr: what can be set, what it is, what shall change and how it went.
//!
//! - [`registry`]: one table of knobs. Everything that lists knobs derives from it.
//! - [`Key`] names a knob, [`Value`] is a value that its [`Domain`] admits: parsed once, then valid.
//! - [`Link`] is an interface as the kernel reports it; a [`Reading`] is one knob of it, with the answer
//!   to "can this device take it?" ([`Support`]).
//! - [`Desired`] holds what files declare: [`Rule`]s for the interfaces that a [`Match`] picks.
//!   [`LinkWants`] is what that means for one interface.
//! - [`Plan`] holds ordered [`Step`]s; [`Report`] tells per knob how they went.
//! - [`status`]: what the daemon tells of itself.
//! - [`form`]: the documented JSON forms of links, reports, plans, knobs and requests.
//! - [`ErrorCode`] is the one table of exit codes, D-Bus error names and HTTP statuses.
//!
//! No I/O happens here.

mod channel;
mod cpus;
mod desired;
mod domain;
mod drivers;
mod error;
mod failure;
pub mod form;
mod host;
mod key;
mod link;
mod matching;
mod nearest;
mod notice;
mod pkey;
mod plan;
pub mod registry;
pub mod status;
mod summary;
mod value;
mod wants;

// The driver's own interface, for the crates that talk to it.
pub use ipoib_core::{abi, limits};

pub use channel::{
    Carrier, Channel, ChannelsField, CoalesceField, NAPI_PREFIX, NapiField, QueueField, RingField,
    RtnlField, SysfsField, TunableField, napi_number,
};
pub use cpus::{CpuSet, CpuSetError};
pub use desired::{Child, ChildKind, Declared, Desired, Origin, Policy, Rule};
pub use domain::{Choice, Domain, Unit, ValueError};
pub use drivers::{DriverChoice, DriverModule, Drivers, ModuleSignature, PortOwner};
pub use error::ErrorCode;
pub use failure::Failure;
pub use host::{
    Action, ChildChange, ChildReport, End, HostPlan, HostRefusal, HostReport, LinkPlan, NewChild,
    OldChild, Target, Trouble, Was,
};
pub use key::{Key, KeyError};
pub use link::{Guid, GuidError, Limits, Link, LinkName, LinkNameError, Reading, Support};
pub use matching::{Glob, GlobError, Match};
pub use nearest::nearest;
pub use notice::Notice;
pub use pkey::{Pkey, PkeyError};
pub use plan::{Assignment, Outcome, Plan, PlanError, Report, ReportLine, Skip, Step};
pub use registry::{Effect, Group, Knob, Phase};
pub use summary::show;
pub use value::Value;
pub use wants::{ChildWants, LinkWants, Want};
