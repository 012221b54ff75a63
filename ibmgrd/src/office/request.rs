// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be asked of the loop, and what it answers.

use std::time::Duration;

use ibmgr_api::form::ChangeForm;
use ibmgr_api::status::Status;
use ibmgr_api::{Assignment, Channel, Desired, ErrorCode, Failure, HostReport, LinkName, Report};
use ibmgrd_state::change::{Ended, whole_seconds};
use tokio::sync::oneshot;

use super::Planned;
use super::caller::Caller;

/// Whom the answer goes to. Whoever asked may have gone away.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// Most seconds that a change may wait to be confirmed.
pub const CONFIRM_MAX: u64 = 24 * 3600;
/// Longest reason that is kept for the record, in bytes.
const WHY_MAX: usize = 256;

/// Checks a reason that is to stand in the record.
///
/// # Errors
///
/// It is too long.
pub fn reason(why: Option<String>) -> Result<Option<String>, Failure> {
    match why {
        Some(why) if why.len() > WHY_MAX => {
            let what = format!("'why' has more than {WHY_MAX} bytes");
            Err(Failure::new(ErrorCode::Usage, what))
        }
        why => Ok(why),
    }
}

/// Reads the name of a channel.
///
/// # Errors
///
/// There is none of that name.
pub fn channel(text: &str) -> Result<Channel, Failure> {
    text.parse().map_err(|_| {
        let names = Channel::ALL.map(Channel::name).join(", ");
        let what = format!("there is no channel '{text}'; there is {names}");
        Failure::new(ErrorCode::Usage, what)
    })
}

/// Reads the name of an interface.
///
/// # Errors
///
/// None can have that name.
pub fn link_name(text: &str) -> Result<LinkName, Failure> {
    let failed = |error: ibmgr_api::LinkNameError| Failure::of(ErrorCode::UnknownLink, &error);
    text.parse().map_err(failed)
}

/// Knobs of one interface to be set, all of them or none.
#[derive(Clone, Debug)]
pub struct Set {
    /// The interface.
    pub link: LinkName,
    /// The values.
    pub wants: Vec<Assignment>,
    /// Only through this channel.
    pub via: Option<Channel>,
    /// Only while the interface is what has this tag: see [`tag`](super::tag).
    pub only_if: Option<String>,
    /// Why, for the record.
    pub why: Option<String>,
}

/// How a [`Set`] went.
#[derive(Clone, Debug)]
pub struct SetDone {
    /// Knob by knob.
    pub report: Report,
    /// What it comes down to, unless all is as asked.
    pub failure: Option<Failure>,
}

/// Declarations to be applied to the whole host, all of them or none.
#[derive(Clone, Debug)]
pub struct Apply {
    /// The declarations.
    pub desired: Desired,
    /// What they are, for people: names of files.
    pub what: String,
    /// Taken back unless confirmed within this time.
    pub confirm_within: Option<Duration>,
    /// Why, for the record.
    pub why: Option<String>,
}

impl ApplyDone {
    /// Returns what surfaces tell of it.
    #[must_use]
    pub fn form(&self) -> ChangeForm {
        ChangeForm {
            report: (&self.report).into(),
            confirm_within_seconds: self.confirm_within.map(whole_seconds),
            interrupted: self.ended.as_ref().map(Ended::form),
        }
    }
}

/// How an [`Apply`] went.
#[derive(Debug)]
pub struct ApplyDone {
    /// The plan, when something of it cannot be done: then nothing was begun.
    pub refused: Option<Planned>,
    /// How it went.
    pub report: HostReport,
    /// What it comes down to, unless everything is as declared.
    pub failure: Option<Failure>,
    /// An interrupted change that was brought to an end before.
    pub ended: Option<Ended>,
    /// The time that is left to confirm it.
    pub confirm_within: Option<Duration>,
}

/// How taking back went.
#[derive(Debug)]
pub struct RollBackDone {
    /// The change, and how taking it back went.
    pub ended: Ended,
    /// What it comes down to, unless everything is as before.
    pub failure: Option<Failure>,
}

/// Something that only the loop can do.
#[derive(Debug)]
pub(crate) enum Deed {
    /// Tell how everything stands.
    Status(Reply<Status>),
    /// Set knobs of one interface.
    Set(Box<Set>, Reply<SetDone>),
    /// Apply declarations to the host.
    Apply(Box<Apply>, Reply<ApplyDone>),
    /// Keep the last change for good; answered with what it was.
    Confirm(Reply<String>),
    /// Take the last change back.
    RollBack(Reply<RollBackDone>),
    /// Read the declarations again; answered with how everything stands then.
    Reload(Reply<Status>),
}

/// A deed, and who asks for it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) caller: Caller,
    pub(crate) deed: Deed,
}

impl Request {
    /// Says whether nobody waits for the answer any more.
    pub(crate) fn is_forgotten(&self) -> bool {
        match &self.deed {
            Deed::Status(reply) | Deed::Reload(reply) => reply.is_closed(),
            Deed::Set(_, reply) => reply.is_closed(),
            Deed::Apply(_, reply) => reply.is_closed(),
            Deed::Confirm(reply) => reply.is_closed(),
            Deed::RollBack(reply) => reply.is_closed(),
        }
    }

    /// Says whether it must wait while another program of ibmgr changes something.
    pub(crate) const fn takes_turn(&self) -> bool {
        !matches!(self.deed, Deed::Status(_))
    }

    /// Answers that it was not done.
    pub(crate) fn refuse(self, failure: Failure) {
        match self.deed {
            Deed::Status(reply) | Deed::Reload(reply) => drop(reply.send(Err(failure))),
            Deed::Set(_, reply) => drop(reply.send(Err(failure))),
            Deed::Apply(_, reply) => drop(reply.send(Err(failure))),
            Deed::Confirm(reply) => drop(reply.send(Err(failure))),
            Deed::RollBack(reply) => drop(reply.send(Err(failure))),
        }
    }
}
