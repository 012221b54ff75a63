// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What shall change on a whole host, and how it went.

use crate::channel::Carrier;
use crate::desired::ChildKind;
use crate::error::ErrorCode;
use crate::key::Key;
use crate::link::LinkName;
use crate::pkey::Pkey;
use crate::plan::{Assignment, Outcome, PlanError, Report, Skip, Step};
use crate::value::Value;

/// The interface that a write is meant for.
///
/// Both must still belong together when the kernel is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Name at observation.
    pub name: LinkName,
    /// Kernel index.
    pub index: u32,
}

/// A P_Key child to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewChild {
    /// The interface that it belongs to.
    pub parent: Target,
    /// Its name.
    pub name: LinkName,
    /// Its P_Key. The drivers store it with the full-member bit set, whatever is asked for:
    /// whether the port is a full or a limited member is in the port's own table.
    pub pkey: Pkey,
    /// How to make it.
    pub kind: ChildKind,
}

/// A P_Key child to remove.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OldChild {
    /// The child.
    pub child: Target,
    /// The interface that it belongs to.
    pub parent: Target,
    /// Its P_Key, as the driver tells it.
    pub pkey: Pkey,
    /// How to remove it: over rtnetlink for both kinds of child, or through the parent's file
    /// `delete_child`, which knows legacy children only.
    pub via: ChildKind,
}

/// A value that an interface had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Was {
    /// The knob.
    pub key: Key,
    /// The value.
    pub value: Value,
    /// The kernel field that carries it.
    pub carrier: Carrier,
}

/// One interface of a [`HostPlan`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkPlan {
    /// The interface.
    pub target: Target,
    /// Knobs that are as wanted already.
    pub skips: Vec<Skip>,
    /// What the knobs to be written, and those that the kernel changes along, have at present.
    pub before: Vec<Was>,
}

/// One thing to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Remove a P_Key child.
    Remove {
        /// The child.
        child: OldChild,
        /// How it had been made, for putting it back.
        kind: ChildKind,
        /// Its values at present, for putting them back. Addresses and routes are lost.
        settings: Vec<Assignment>,
    },
    /// Make a P_Key child, and give it values.
    Make {
        /// The child.
        child: NewChild,
        /// Its values: what the device can take is known only once it is there.
        wants: Vec<Assignment>,
    },
    /// Write one value.
    Set {
        /// Position of the interface in [`HostPlan::links`].
        link: usize,
        /// The write.
        step: Step,
    },
}

/// Why something cannot be planned.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostRefusal {
    /// A knob.
    #[error(transparent)]
    Knob(#[from] PlanError),
    /// A P_Key child.
    #[error("{parent}: a child with P_Key {pkey} cannot be made: {why}")]
    Child {
        /// The interface that it would belong to.
        parent: LinkName,
        /// Its P_Key.
        pkey: Pkey,
        /// The reason, and what to do.
        why: String,
    },
}

impl HostRefusal {
    /// Returns the error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Knob(error) => error.code(),
            Self::Child { .. } => ErrorCode::Unsupported,
        }
    }
}

/// Ordered actions that bring a host from its present to the declared state.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostPlan {
    /// Interfaces with declared values, parents before children, then by index.
    pub links: Vec<LinkPlan>,
    /// What to do, in order. Removals that nothing depends on come last, after everything else was
    /// verified: what is removed cannot be put back as it was.
    pub actions: Vec<Action>,
    /// What cannot be done. Whoever wants all or nothing does nothing when there is any.
    pub refused: Vec<HostRefusal>,
}

impl HostPlan {
    /// Says whether there is nothing to do.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Returns the number of the first of the removals at the end, which wait for everything else.
    #[must_use]
    pub fn last_removals(&self) -> usize {
        let is_removal = |action: &Action| matches!(action, Action::Remove { .. });
        let removals = self.actions.iter().rev().take_while(|a| is_removal(a));
        self.actions.len() - removals.count()
    }
}

/// What happened to a P_Key child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChildChange {
    /// It was to be made.
    Make,
    /// It was to be removed.
    Remove,
}

impl ChildChange {
    /// Returns the word for tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Make => "make",
            Self::Remove => "remove",
        }
    }
}

/// How it went with one P_Key child.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChildReport {
    /// The child.
    pub name: LinkName,
    /// The interface that it belongs to.
    pub parent: LinkName,
    /// Its P_Key, as declared or as the driver tells it.
    pub pkey: Pkey,
    /// What was to be done.
    pub change: ChildChange,
    /// How it went.
    pub outcome: Outcome,
}

/// In what state a change of a host ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// There was nothing to do.
    Nothing,
    /// Nothing was changed.
    NotStarted,
    /// Everything is as declared.
    Applied,
    /// Everything is as it was before.
    RolledBack,
    /// Something could not be put back; the report says what.
    InPart,
}

impl End {
    /// Returns the word for tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing-to-do",
            Self::NotStarted => "not-started",
            Self::Applied => "applied",
            Self::RolledBack => "rolled-back",
            Self::InPart => "rolled-back-in-part",
        }
    }
}

/// A failure that is about no interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trouble {
    /// What failed, and why.
    pub message: String,
    /// Its code.
    pub code: ErrorCode,
}

/// How a plan of a host went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostReport {
    /// Interfaces, in the order of the plan; those that were made follow.
    pub links: Vec<Report>,
    /// P_Key children that were to be made or removed, in the order of the plan.
    pub children: Vec<ChildReport>,
    /// What failed besides.
    pub trouble: Option<Trouble>,
    /// The state that it ended in.
    pub end: End,
}

impl HostReport {
    /// Returns the code that decides the exit status: the gravest, `None` for success.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        let links = self.links.iter().filter_map(Report::code);
        let children = self
            .children
            .iter()
            .filter_map(|child| child.outcome.code());
        let trouble = self.trouble.as_ref().map(|trouble| trouble.code);
        links
            .chain(children)
            .chain(trouble)
            .max_by_key(|code| code.gravity())
    }
}
