// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is remembered of managed interfaces, and what is to be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ibmgr_api::status::Standing;
use ibmgr_api::{ErrorCode, Key, LinkName, Value};

use super::backoff::{Failures, Fight};

/// Why something is looked at.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// Its time to be tried again has come.
    Retry,
    /// What has no notification is read now and then.
    Poll,
    /// The kernel told of a change.
    Notice,
    /// Notifications were lost.
    Lost,
    /// The carrier came or went.
    Carrier,
    /// A name or an address changed, and with it what is declared.
    Identity,
    /// The interface appeared.
    Appeared,
    /// The declarations were read anew, or a request applies them.
    Reload,
    /// The daemon starts.
    Start,
}

impl Cause {
    /// Says whether everything declared is set, whatever its policy on drift.
    pub(crate) const fn is_full(self) -> bool {
        matches!(
            self,
            Self::Identity | Self::Appeared | Self::Reload | Self::Start
        )
    }

    /// Returns why a value is set.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Retry => "tried again",
            Self::Poll | Self::Notice | Self::Lost => "somebody changed it",
            Self::Carrier => "the carrier came or went",
            Self::Identity => "the interface's name, address or declarations changed",
            Self::Appeared => "the interface appeared",
            Self::Reload => "the declarations were read",
            Self::Start => "the daemon started",
        }
    }
}

/// Which declared values are looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    All,
    Some(BTreeSet<Key>),
}

/// What is to be looked at of one interface.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) scope: Scope,
    pub(crate) has_children: bool,
    pub(crate) cause: Cause,
}

impl Work {
    pub(crate) const fn all(cause: Cause) -> Self {
        Self {
            scope: Scope::All,
            has_children: true,
            cause,
        }
    }

    pub(crate) const fn knobs(keys: BTreeSet<Key>, cause: Cause) -> Self {
        Self {
            scope: Scope::Some(keys),
            has_children: false,
            cause,
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        match (&mut self.scope, other.scope) {
            (Scope::Some(keys), Scope::Some(more)) => keys.extend(more),
            (scope, _) => *scope = Scope::All,
        }
        self.has_children |= other.has_children;
        self.cause = self.cause.max(other.cause);
    }
}

/// How one declared value stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnobState {
    pub(crate) value: Option<Value>,
    pub(crate) standing: Standing,
    pub(crate) why: Option<String>,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) fight: Fight,
    pub(crate) failures: Failures,
    pub(crate) retry: Option<Instant>,
    /// Whether the failure came from the kernel, so that trying again disturbs the interface.
    pub(crate) is_costly: bool,
}

impl KnobState {
    /// Says whether it was as declared when it was last looked at.
    pub(crate) const fn held(&self) -> bool {
        matches!(self.standing, Standing::Holds | Standing::NoEffect)
    }

    /// Notes that it is as declared; returns whether it was known to be otherwise.
    pub(crate) fn settle(&mut self, no_effect: Option<String>) -> bool {
        let was_other = matches!(
            self.standing,
            Standing::Drifted | Standing::Waiting | Standing::Failed
        );
        self.standing = if no_effect.is_some() {
            Standing::NoEffect
        } else {
            Standing::Holds
        };
        self.why = no_effect;
        self.code = None;
        self.failures = Failures::default();
        self.retry = None;
        self.is_costly = false;
        was_other
    }
}

/// How one declared child stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildState {
    pub(crate) standing: Standing,
    pub(crate) why: Option<String>,
    pub(crate) fight: Fight,
    pub(crate) failures: Failures,
    pub(crate) retry: Option<Instant>,
    /// Indices of the interfaces whose kind was looked at.
    pub(crate) seen: Vec<u32>,
}

/// A declared child below its parent: partition and declared name.
pub(crate) type ChildId = (u16, Option<LinkName>);

/// What is remembered of one interface.
#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    pub(crate) name: LinkName,
    pub(crate) knobs: BTreeMap<Key, KnobState>,
    pub(crate) children: BTreeMap<ChildId, ChildState>,
    /// Declared values that change without a notification, in the interface's present state.
    pub(crate) polled: BTreeSet<Key>,
}

impl LinkState {
    pub(crate) const fn new(name: LinkName) -> Self {
        Self {
            name,
            knobs: BTreeMap::new(),
            children: BTreeMap::new(),
            polled: BTreeSet::new(),
        }
    }
}
