// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where every surface asks: HTTP, D-Bus and whatever comes. It knows none of them.
//!
//! A surface makes a [`Caller`] of whoever is at its other end and calls a method of [`Office`]; each
//! method checks what the caller may do, so that no surface can forget to. What fails is a [`Failure`]
//! everywhere. Reading goes on beside the loop, on connections of its own; changes are handed to the
//! loop, which does one at a time and tells of each with a [`Record`] that names the caller.

mod caller;
mod readers;
mod request;
mod told;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use ibmgr_api::form::{FindingForm, PlanForm, SourceForm};
use ibmgr_api::status::{Record, RecordKind, Status};
use ibmgr_api::{
    Assignment, Channel, Desired, ErrorCode, Failure, HostPlan, Link, LinkName, LinkWants, Plan,
};
use ibmgrd_config::{Exported, Source, export};
use ibmgrd_engine::{
    Keys, Port as _, PortError, Query, Unplanned, Whole, observe_whole, plan_declared, prepare,
};
use ibmgrd_hw::watch::Event;
use ibmgrd_state::Store;
use ibmgrd_state::change::{Checkpoint, checkpoint};
use tokio::sync::{broadcast, mpsc, oneshot};

pub use caller::{Access, Caller, Grants, Right, Scope, Surface};
use readers::Readers;
use request::Reply;
pub use request::{
    Apply, ApplyDone, CONFIRM_MAX, RollBackDone, Set, SetDone, channel, link_name, reason,
};
pub(crate) use request::{Deed, Request};
pub(crate) use told::Told;

/// Requests that may wait for the loop.
const WAITING: usize = 64;
/// How long the loop may take to answer: a mode change that flushes paths takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A plan for the host, with the wants behind it.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// What is wanted of each interface that the declarations are for.
    pub wants: Vec<LinkWants>,
    /// What would be done.
    pub plan: HostPlan,
}

impl Planned {
    /// Returns what surfaces tell of it, with what was found in the declarations.
    #[must_use]
    pub fn form(&self, findings: Vec<FindingForm>) -> PlanForm {
        PlanForm::new(&self.plan, &self.wants, findings)
    }
}

/// Reads declarations that were sent as texts. All of them must be right: what is applied at once is all
/// or nothing.
///
/// # Errors
///
/// [`ErrorCode::BadValue`] with everything that is wrong in them.
pub fn declarations(sources: Vec<SourceForm>) -> Result<(Desired, Vec<FindingForm>), Failure> {
    let sources = sources.into_iter().map(|source| Source {
        file: source.file.into(),
        content: Ok(source.text.into_bytes()),
    });
    let loaded = ibmgrd_config::Store::new().load(sources.collect());
    if loaded.has_errors() {
        let texts: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        return Err(Failure::new(ErrorCode::BadValue, texts.join("\n")));
    }
    let findings = loaded.diagnostics.iter().map(FindingForm::from).collect();
    Ok((loaded.desired, findings))
}

/// The office. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Office {
    requests: mpsc::Sender<Request>,
    told: Told,
    readers: Readers,
    store: Store,
    access: Arc<Access>,
    namespace: u64,
}

impl Office {
    /// Opens the office, and returns it with the requests for the loop. `store` has the last change of
    /// the host, `access` who may change something over the unix socket; `namespace` is the cookie of the
    /// network namespace.
    pub(crate) fn open(
        told: Told,
        store: Store,
        access: Access,
        namespace: u64,
    ) -> (Self, mpsc::Receiver<Request>) {
        let (requests, received) = mpsc::channel(WAITING);
        let office = Self {
            requests,
            told,
            readers: Readers::new(),
            store,
            access: Arc::new(access),
            namespace,
        };
        (office, received)
    }

    /// Returns the kernel's number of the network namespace that the daemon works in.
    #[must_use]
    pub const fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Returns who may change something over the unix socket.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Follows what the daemon does and sees: a record for each change, with its reason. Whoever lags
    /// more than a thousand behind loses some, and is told so.
    ///
    /// # Errors
    ///
    /// The caller may not read.
    pub fn subscribe(&self, caller: &Caller) -> Result<broadcast::Receiver<Arc<Record>>, Failure> {
        self.check(caller, Right::Observe, None)?;
        Ok(self.told.records())
    }

    /// Follows the kernel's own notifications: of every interface, managed or not.
    ///
    /// # Errors
    ///
    /// The caller may not read.
    pub fn follow(&self, caller: &Caller) -> Result<broadcast::Receiver<Event>, Failure> {
        self.check(caller, Right::Observe, None)?;
        Ok(self.told.events())
    }

    /// Reads one interface.
    ///
    /// # Errors
    ///
    /// There is none of that name, or the kernel does not answer.
    pub fn link(&self, caller: &Caller, name: &LinkName, query: &Query) -> Result<Link, Failure> {
        self.check(caller, Right::Observe, Some(name))?;
        let read = self.readers.read(|port| port.observe(name, query));
        read.map_err(|error| failed_port(&error))
    }

    /// Returns the present name of the interface with that index, if there is one.
    ///
    /// # Errors
    ///
    /// The caller may not read it, or the kernel does not answer.
    pub fn name_of(&self, caller: &Caller, index: u32) -> Result<Option<LinkName>, Failure> {
        let name = self.readers.read(|port| port.name_of(index));
        let name = name.map_err(|error| failed_port(&error))?;
        self.check(caller, Right::Observe, name.as_ref())?;
        Ok(name)
    }

    /// Reads all interfaces that the caller may read, by index.
    ///
    /// # Errors
    ///
    /// The kernel does not answer.
    pub async fn links(&self, caller: &Caller, query: Query) -> Result<Vec<Link>, Failure> {
        let all = self.readers.read_long(move |port| port.observe_all(&query));
        let mut links = all.await?.map_err(|error| failed_port(&error))?;
        links.retain(|link| caller.check(Right::Observe, Some(&link.name)).is_ok());
        if links.is_empty() {
            self.check(caller, Right::Observe, None)?;
        }
        Ok(links)
    }

    /// Returns what a [`Set`] would do.
    ///
    /// # Errors
    ///
    /// It cannot be done, or the interface cannot be read.
    pub fn plan_set(
        &self,
        caller: &Caller,
        link: &LinkName,
        wants: &[Assignment],
        via: Option<Channel>,
    ) -> Result<Plan, Failure> {
        self.check(caller, Right::Observe, Some(link))?;
        let prepared = self.readers.read(|port| prepare(port, link, wants, via));
        let (plan, _) = prepared.map_err(|unplanned| failed_plan(&unplanned))?;
        Ok(plan)
    }

    /// Returns what applying the declarations would do, what cannot be done included.
    ///
    /// # Errors
    ///
    /// The kernel does not answer.
    pub async fn plan(&self, caller: &Caller, desired: Desired) -> Result<Planned, Failure> {
        self.check(caller, Right::Observe, None)?;
        let planned = self
            .readers
            .read_long(move |port| plan_declared(port, &desired));
        let (wants, plan) = planned.await?.map_err(|error| failed_port(&error))?;
        Ok(Planned { wants, plan })
    }

    /// Returns the present state as declarations: of these interfaces, or of all of IPoIB.
    ///
    /// # Errors
    ///
    /// There is no interface of such a name, or the kernel does not answer.
    pub async fn export(
        &self,
        caller: &Caller,
        names: Vec<LinkName>,
    ) -> Result<Vec<Exported>, Failure> {
        if names.is_empty() {
            self.check(caller, Right::Observe, None)?;
        }
        for name in &names {
            self.check(caller, Right::Observe, Some(name))?;
        }
        let read = self
            .readers
            .read_long(move |port| observe_whole(port, &names));
        let Whole { links, all } = read.await?.map_err(|error| failed_port(&error))?;
        Ok(export(links, &all))
    }

    /// Tells how it stands with the last change of the host.
    ///
    /// # Errors
    ///
    /// The state on disk cannot be used.
    pub fn checkpoint(&self, caller: &Caller) -> Result<Checkpoint, Failure> {
        self.check(caller, Right::Observe, None)?;
        checkpoint(&self.store).map_err(|error| Failure::of(error.code(), &error))
    }

    /// Tells how the daemon and all that it manages stand.
    ///
    /// # Errors
    ///
    /// The loop does not answer in time.
    pub async fn status(&self, caller: &Caller) -> Result<Status, Failure> {
        self.check(caller, Right::Observe, None)?;
        self.ask(caller, Deed::Status).await
    }

    /// Sets knobs of one interface, verified by reading back, all of them or none. What is declared
    /// otherwise counts as declared so from then on, until the declarations are read again.
    ///
    /// # Errors
    ///
    /// Nothing was tried: see [`SetDone::failure`] for all else.
    pub async fn set(&self, caller: &Caller, set: Set) -> Result<SetDone, Failure> {
        self.check(caller, Right::Change, Some(&set.link))?;
        let set = Box::new(set);
        self.ask(caller, |reply| Deed::Set(set, reply)).await
    }

    /// Applies declarations to the host, all of them or none. They count as declared from then on, until
    /// the daemon reads its files again.
    ///
    /// # Errors
    ///
    /// Nothing was changed: see [`ApplyDone::failure`] for all else.
    pub async fn apply(&self, caller: &Caller, apply: Apply) -> Result<ApplyDone, Failure> {
        // Which interfaces it is for is known in the loop only, which checks each of them.
        if matches!(caller.grants.change, Scope::Nothing) {
            self.check(caller, Right::Change, None)?;
        }
        let apply = Box::new(apply);
        self.ask(caller, |reply| Deed::Apply(apply, reply)).await
    }

    /// Keeps the last change for good, and returns what it had been asked to do.
    ///
    /// # Errors
    ///
    /// None waits to be confirmed.
    pub async fn confirm(&self, caller: &Caller) -> Result<String, Failure> {
        self.check(caller, Right::Change, None)?;
        self.ask(caller, Deed::Confirm).await
    }

    /// Takes back the change that waits to be confirmed, or ends the one that was interrupted.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn roll_back(&self, caller: &Caller) -> Result<RollBackDone, Failure> {
        self.check(caller, Right::Change, None)?;
        self.ask(caller, Deed::RollBack).await
    }

    /// Reads the declarations of the daemon's folders again and applies them, and returns how
    /// everything stands then.
    ///
    /// # Errors
    ///
    /// The loop does not answer in time. Files that are wrong are told in the status.
    pub async fn reload(&self, caller: &Caller) -> Result<Status, Failure> {
        self.check(caller, Right::Change, None)?;
        self.ask(caller, Deed::Reload).await
    }

    /// Checks a right; a denial is told like a change.
    ///
    /// # Errors
    ///
    /// The caller does not have it.
    pub fn check(
        &self,
        caller: &Caller,
        right: Right,
        link: Option<&LinkName>,
    ) -> Result<(), Failure> {
        caller.check(right, link).inspect_err(|failure| {
            let mut record = Record::new(RecordKind::Denied, &failure.message).code(failure.code);
            record.link = link.map(ToString::to_string);
            record.by = Some(caller.by());
            self.told.record(record);
        })
    }

    async fn ask<T>(
        &self,
        caller: &Caller,
        deed: impl FnOnce(Reply<T>) -> Deed,
    ) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            caller: caller.clone(),
            deed: deed(reply),
        };
        let ended = || {
            Failure::new(
                ErrorCode::Busy,
                "the daemon is ending: nothing was done; try again later",
            )
        };
        match self.requests.try_send(request) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                let what = format!("{WAITING} requests wait already: try again later");
                return Err(Failure::new(ErrorCode::Busy, what));
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(ended()),
        }
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(ended())),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                let what = format!("no answer within {seconds} s; what was begun goes on");
                Err(Failure::new(ErrorCode::Timeout, what))
            }
        }
    }
}

/// Returns what tells the present state of an interface from others: opaque, for comparing.
#[must_use]
pub fn tag(link: &Link) -> String {
    // Everything that is told of it goes in, as it is told.
    tag_of(&serde_json::to_vec(link).unwrap_or_default())
}

/// Returns the [`tag`] of the interface that is told of in this JSON.
#[must_use]
pub fn tag_of(json: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns the query that [`tag`] wants.
#[must_use]
pub const fn everything() -> Query {
    Query {
        keys: Keys::All,
        via: None,
    }
}

/// Returns what the kernel's refusal is to whoever asked.
pub(crate) fn failed_port(error: &PortError) -> Failure {
    Failure::of(error.code(), error).about(error.link(), error.key())
}

pub(crate) fn failed_plan(unplanned: &Unplanned) -> Failure {
    match unplanned {
        Unplanned::Port(error) => failed_port(error),
        Unplanned::Plan { error, .. } => {
            Failure::of(error.code(), error).about(error.link(), Some(error.key()))
        }
    }
}
