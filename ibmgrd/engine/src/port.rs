// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the engine needs from a kernel.

use std::io;

use ibmgr_api::{Carrier, Channel, ErrorCode, Key, Link, LinkName, Target, Value};

/// Which knobs to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Keys {
    /// None: identity, state and addresses of the interface only.
    Identity,
    /// These.
    Named(Vec<Key>),
    /// Every row of the registry, and every member of its families that the device lists.
    All,
}

/// What to read, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Query {
    /// Which knobs.
    pub keys: Keys,
    /// Only through this channel; `None` lets each knob's first working carrier serve.
    pub via: Option<Channel>,
}

impl Query {
    /// Returns a query for some knobs, through whatever carries them.
    #[must_use]
    pub const fn named(keys: Vec<Key>) -> Self {
        Self {
            keys: Keys::Named(keys),
            via: None,
        }
    }
}

/// Reads and writes interfaces of one network namespace.
pub trait Port {
    /// Reads one interface. Every asked key gets a reading, if only to say why there is no value.
    ///
    /// # Errors
    ///
    /// [`PortError::NoSuchLink`] when there is none; otherwise what kept the kernel from answering.
    fn observe(&mut self, link: &LinkName, query: &Query) -> Result<Link, PortError>;

    /// Reads every interface, in the order of their indices.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering. An interface that disappears meanwhile is left out.
    fn observe_all(&mut self, query: &Query) -> Result<Vec<Link>, PortError>;

    /// Returns the present name of the interface with that index, `None` when there is none.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    fn name_of(&mut self, index: u32) -> Result<Option<LinkName>, PortError>;

    /// Writes one value through one carrier. Success says that the kernel took the request, no more.
    /// A name that another interface has taken over since is [`PortError::Gone`].
    ///
    /// # Errors
    ///
    /// What the kernel said.
    fn write(
        &mut self,
        target: &Target,
        key: &Key,
        value: &Value,
        carrier: Carrier,
    ) -> Result<(), PortError>;
}

/// Why the kernel did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No interface has that name.
    #[error("no interface is called '{link}'{}", suggestions(.nearest))]
    NoSuchLink {
        /// The name.
        link: LinkName,
        /// Names that look like it.
        nearest: Vec<String>,
    },
    /// The interface disappeared.
    #[error("{link}: the interface disappeared")]
    Gone {
        /// The interface.
        link: LinkName,
    },
    /// The kernel refused the value.
    #[error("{link}: the kernel refused {key}: {message}")]
    Refused {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The error number.
        errno: i32,
        /// The extended acknowledgement's message if there is one, and the error's name.
        message: String,
    },
    /// The caller lacks a privilege.
    #[error("{link}: no permission to set {key}: it takes {needs}")]
    Permission {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The capability, and the namespace that it is needed in.
        needs: &'static str,
    },
    /// The device, its driver or the kernel does not have the knob.
    #[error("{link}: {key} is not supported here: {why}")]
    Unsupported {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The reason.
        why: String,
    },
    /// The kernel refused to make or to remove a P_Key child.
    #[error("{link}: {what} was refused: {message}")]
    ChildRefused {
        /// The child.
        link: LinkName,
        /// What was tried.
        what: String,
        /// The error number.
        errno: i32,
        /// What the kernel said, and what it means for a child.
        message: String,
        /// The code: refused, permission or unsupported.
        code: ErrorCode,
    },
    /// The kernel could not be talked to.
    #[error("{what} failed")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The kernel did not answer in time.
    #[error("{what}: no answer within {seconds} s")]
    Timeout {
        /// What was asked.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
}

fn suggestions(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "; 'ibctl show' lists them".to_owned()
    } else {
        format!("; did you mean {}?", nearest.join(" or "))
    }
}

impl PortError {
    /// Returns the interface that it is about, if it is about one.
    #[must_use]
    pub const fn link(&self) -> Option<&LinkName> {
        match self {
            Self::NoSuchLink { link, .. }
            | Self::Gone { link }
            | Self::Refused { link, .. }
            | Self::Permission { link, .. }
            | Self::Unsupported { link, .. }
            | Self::ChildRefused { link, .. } => Some(link),
            Self::Io { .. } | Self::Timeout { .. } => None,
        }
    }

    /// Returns the knob that it is about, if it is about one.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Refused { key, .. }
            | Self::Permission { key, .. }
            | Self::Unsupported { key, .. } => Some(key),
            Self::NoSuchLink { .. }
            | Self::Gone { .. }
            | Self::ChildRefused { .. }
            | Self::Io { .. }
            | Self::Timeout { .. } => None,
        }
    }

    /// Returns the error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NoSuchLink { .. } => ErrorCode::UnknownLink,
            Self::Gone { .. } => ErrorCode::Vanished,
            Self::Refused { .. } => ErrorCode::Refused,
            Self::Permission { .. } => ErrorCode::Permission,
            Self::Unsupported { .. } => ErrorCode::Unsupported,
            Self::ChildRefused { code, .. } => *code,
            Self::Io { .. } => ErrorCode::Kernel,
            Self::Timeout { .. } => ErrorCode::Timeout,
        }
    }
}
