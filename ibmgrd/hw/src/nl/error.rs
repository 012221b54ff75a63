// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong between this process and the kernel, the extended acknowledgement included.

use std::fmt;
use std::io;

use nix::errno::Errno;

use super::attr::{Attr, attrs};
use super::request::Request;
use crate::uapi::{NLMSGERR_ATTR_MISS_TYPE, NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS};

/// Why a netlink exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NlError {
    /// The kernel answered with an error.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// A system call on the socket failed.
    #[error("{what} failed")]
    Io {
        /// The call.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// No answer came.
    #[error("no answer within {seconds} s")]
    Timeout {
        /// How long it was waited for.
        seconds: u64,
    },
    /// Interfaces came and went during each of several attempts to list them.
    #[error("the kernel's list changed while it was read, {attempts} times in a row")]
    Unsettled {
        /// How often it was tried.
        attempts: u32,
    },
    /// The running kernel has no such generic netlink family.
    #[error("this kernel has no generic netlink family '{family}'")]
    NoFamily {
        /// The family.
        family: &'static str,
    },
    /// A message that cannot be understood.
    #[error("malformed message from the kernel: {detail}")]
    Malformed {
        /// What is wrong with it.
        detail: String,
    },
}

impl NlError {
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::Malformed {
            detail: detail.into(),
        }
    }

    /// Returns the kernel's error number, when the kernel answered with one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused(refusal) => Some(refusal.errno),
            Self::Io { .. }
            | Self::Timeout { .. }
            | Self::Unsettled { .. }
            | Self::NoFamily { .. }
            | Self::Malformed { .. } => None,
        }
    }
}

/// An error answer of the kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The positive error number.
    pub errno: i32,
    /// The extended acknowledgement's text.
    pub message: Option<String>,
    /// The rejected attribute by its C name, or by its path of types where this crate has no name.
    pub bad_attr: Option<String>,
    /// The type of an attribute that was required and not sent.
    pub missing_attr: Option<u32>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errno = Errno::from_raw(self.errno);
        match &self.message {
            // "EINVAL" says little beside the kernel's own sentence, but scripts look for it.
            Some(message) => write!(f, "{message} ({errno:?}")?,
            None => write!(f, "{} ({errno:?}", sentence(self.errno))?,
        }
        if let Some(attr) = &self.bad_attr {
            write!(f, ", attribute {attr}")?;
        }
        if let Some(missing) = self.missing_attr {
            write!(f, ", attribute {missing} missing")?;
        }
        f.write_str(")")
    }
}

/// Returns the C library's sentence for an error number.
fn sentence(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Describes an error number that came without an extended acknowledgement.
pub(crate) fn describe(errno: i32) -> String {
    format!("{} ({:?})", sentence(errno), Errno::from_raw(errno))
}

/// What the kernel said along with success or failure.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ack {
    /// A warning of the kernel, or of the driver, about a request that succeeded.
    pub warning: Option<String>,
}

/// Turns the error number and the attributes of `NLMSG_ERROR` or `NLMSG_DONE` into a result.
///
/// `code` is 0 or a negative error number. Attributes that cannot be read are left out: the number is
/// what counts.
pub(crate) fn verdict(code: i32, extended: &[u8], request: &Request) -> Result<Ack, NlError> {
    let readable = || attrs(extended).map_while(Result::ok);
    let find = |kind| readable().find(|attr| attr.kind == kind);
    let message = find(NLMSGERR_ATTR_MSG).map(|attr| attr.text());
    if code == 0 {
        return Ok(Ack { warning: message });
    }
    let number = |attr: Attr<'_>| attr.u32().ok();
    let offset = find(NLMSGERR_ATTR_OFFS).and_then(number);
    Err(NlError::Refused(Box::new(Refusal {
        errno: code.saturating_neg(),
        message,
        bad_attr: offset.and_then(|offset| request.attr_at(offset)),
        missing_attr: find(NLMSGERR_ATTR_MISS_TYPE).and_then(number),
    })))
}
