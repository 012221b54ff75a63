// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What shall change, and how it went.

use std::fmt;

use crate::channel::{Carrier, Channel};
use crate::error::ErrorCode;
use crate::key::Key;
use crate::link::LinkName;
use crate::value::Value;

/// A value that someone wants a knob to have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Assignment {
    /// The knob.
    pub key: Key,
    /// The wanted value.
    pub value: Value,
}

/// One write to the kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// The knob.
    pub key: Key,
    /// The value before, where the device has one.
    pub from: Option<Value>,
    /// The value to write.
    pub to: Value,
    /// The kernel field that carries it.
    pub carrier: Carrier,
    /// Why the driver will not use it, if it is known not to.
    pub no_effect: Option<String>,
}

/// A knob that needs no write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skip {
    /// The knob.
    pub key: Key,
    /// The value that it has, and shall have.
    pub value: Value,
    /// Why the driver does not use it, if it is known not to.
    pub no_effect: Option<String>,
}

/// Ordered steps that bring one interface from its present to the wanted values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Name of the interface when it was observed.
    pub link: LinkName,
    /// Its index: a step is refused when the name belongs to another index by then.
    pub index: u32,
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// Knobs that are as wanted already.
    pub skips: Vec<Skip>,
}

/// Why there is no plan. Nothing was changed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The same knob was given two values.
    #[error("{key} is given twice: once as {first}, once as {second}")]
    Twice {
        /// The knob.
        key: Key,
        /// The first value, as printed.
        first: String,
        /// The second value, as printed.
        second: String,
    },
    /// The device does not have the knob.
    #[error("{link}: {key} is not supported here: {why}")]
    Unsupported {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The reason.
        why: String,
    },
    /// The device has the knob, but it cannot be changed.
    #[error("{link}: {key} is fixed: {why}")]
    Fixed {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The reason.
        why: String,
    },
    /// The device's own bounds exclude the value.
    #[error("{link}: {key}={value} is out of this device's range {}", range(.key, *.min, *.max))]
    OutOfRange {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
        /// The value, as printed.
        value: String,
        /// Smallest value, in the kernel's unit.
        min: u64,
        /// Largest value, in the kernel's unit.
        max: u64,
    },
    /// No carrier of the knob is on the asked channel.
    #[error("{key} is not carried by {channel}; it is carried by {carried}")]
    NoSuchChannel {
        /// The knob.
        key: Key,
        /// The asked channel.
        channel: Channel,
        /// The channels that would do.
        carried: String,
    },
    /// The observation lacks the knob: a defect of the caller.
    #[error("{link}: {key} was not read before it was planned")]
    NotObserved {
        /// The interface.
        link: LinkName,
        /// The knob.
        key: Key,
    },
}

fn range(key: &Key, min: u64, max: u64) -> String {
    let domain = &key.knob().domain;
    format!("{} to {}", domain.show_kernel(min), domain.show_kernel(max))
}

impl PlanError {
    /// Returns the reason alone, where the interface and the knob are named beside it.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Unsupported { why, .. } => why.clone(),
            Self::Fixed { why, .. } => format!("fixed: {why}"),
            Self::OutOfRange { key, min, max, .. } => {
                format!("out of this device's range {}", range(key, *min, *max))
            }
            Self::Twice { first, second, .. } => {
                format!("given twice: once as {first}, once as {second}")
            }
            Self::NoSuchChannel { .. } | Self::NotObserved { .. } => self.to_string(),
        }
    }

    /// Returns the interface that it is about, if it is about one.
    #[must_use]
    pub const fn link(&self) -> Option<&LinkName> {
        match self {
            Self::Unsupported { link, .. }
            | Self::Fixed { link, .. }
            | Self::OutOfRange { link, .. }
            | Self::NotObserved { link, .. } => Some(link),
            Self::Twice { .. } | Self::NoSuchChannel { .. } => None,
        }
    }

    /// Returns the knob that cannot be planned.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Self::Twice { key, .. }
            | Self::Unsupported { key, .. }
            | Self::Fixed { key, .. }
            | Self::OutOfRange { key, .. }
            | Self::NoSuchChannel { key, .. }
            | Self::NotObserved { key, .. } => key,
        }
    }

    /// Returns the error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Twice { .. } | Self::NoSuchChannel { .. } => ErrorCode::Usage,
            Self::Unsupported { .. } | Self::Fixed { .. } => ErrorCode::Unsupported,
            Self::OutOfRange { .. } => ErrorCode::BadValue,
            Self::NotObserved { .. } => ErrorCode::Internal,
        }
    }
}

/// How one knob of a request went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Written, and read back as written.
    Changed,
    /// Nothing to do.
    AlreadySo,
    /// Stored by the kernel, not used by the driver.
    NoEffect {
        /// The reason.
        why: String,
    },
    /// Not done: the kernel refused it, or it could not even be asked for.
    Refused {
        /// What the kernel said, or what is wrong with the request.
        why: String,
        /// The error's code, such as refused, permission, unsupported, bad-value, kernel or timeout.
        code: ErrorCode,
    },
    /// The kernel reported success, but the value read back differs.
    NotVerified {
        /// What is there instead, and why if known.
        why: String,
    },
    /// Changed, then put back because another knob failed.
    PutBack,
    /// Changed, and could not be put back after another knob failed.
    NotPutBack {
        /// What the kernel said.
        why: String,
    },
    /// The interface disappeared, and the change with it.
    Vanished,
    /// Not reached: another knob failed before.
    NotTried,
}

impl Outcome {
    /// Returns the word for tables and JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::AlreadySo => "already-so",
            Self::NoEffect { .. } => "no-effect",
            Self::Refused {
                code: ErrorCode::Unsupported,
                ..
            } => "unsupported",
            Self::Refused { .. } => "refused",
            Self::NotVerified { .. } => "not-verified",
            Self::PutBack => "put-back",
            Self::NotPutBack { .. } => "not-put-back",
            Self::Vanished => "vanished",
            Self::NotTried => "not-tried",
        }
    }

    /// Returns the reason, where there is one.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::NoEffect { why }
            | Self::Refused { why, .. }
            | Self::NotVerified { why }
            | Self::NotPutBack { why } => Some(why),
            Self::Changed | Self::AlreadySo | Self::PutBack | Self::Vanished | Self::NotTried => {
                None
            }
        }
    }

    /// Returns the code of a failure; `None` when all is as asked or follows from another knob.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::NoEffect { .. } => Some(ErrorCode::NoEffect),
            Self::Refused { code, .. } => Some(*code),
            Self::NotVerified { .. } => Some(ErrorCode::NotVerified),
            Self::NotPutBack { .. } => Some(ErrorCode::NotPutBack),
            Self::Vanished => Some(ErrorCode::Vanished),
            Self::Changed | Self::AlreadySo | Self::PutBack | Self::NotTried => None,
        }
    }
}

/// One knob of a [`Report`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReportLine {
    /// The knob.
    pub key: Key,
    /// The value that was asked for; `None` for a knob that the kernel changed along with another.
    pub asked: Option<Value>,
    /// The value before.
    pub before: Option<Value>,
    /// The value now, read back; `None` when it could not be read.
    pub now: Option<Value>,
    /// How it went.
    pub outcome: Outcome,
}

/// How a plan went, knob by knob.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// The interface.
    pub link: LinkName,
    /// One line per knob, in the order of the steps.
    pub lines: Vec<ReportLine>,
}

impl Report {
    /// Returns the code that decides the exit status: the gravest of all lines, `None` for success.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.lines
            .iter()
            .filter_map(|line| line.outcome.code())
            .max_by_key(|code| code.gravity())
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}",
            self.key,
            self.value.show(&self.key.knob().domain)
        )
    }
}
