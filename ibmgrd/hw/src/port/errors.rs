// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of the kernel's interfaces to those of the port.

use std::io;

use ibmgr_api::Key;
use ibmgrd_engine::{PortError, Target};

use crate::nl::{NlError, describe};

/// What writes through netlink need.
pub(super) const NET_ADMIN: &str = "CAP_NET_ADMIN in the user namespace of the network namespace";
/// What writes to NAPI instances need (`GENL_ADMIN_PERM`).
pub(super) const INIT_NET_ADMIN: &str = "CAP_NET_ADMIN in the initial user namespace";
/// What writes to sysfs need: the files belong to root.
pub(super) const ROOT: &str = "root, and CAP_NET_ADMIN in the initial user namespace";

/// A question that could not be asked.
pub(super) fn unanswered(what: &str, error: NlError) -> PortError {
    let what = what.to_owned();
    match error {
        NlError::Timeout { seconds } => PortError::Timeout { what, seconds },
        NlError::Io { what: call, source } => PortError::Io {
            what: format!("{what}: {call}"),
            source,
        },
        error @ (NlError::Refused(_)
        | NlError::Unsettled { .. }
        | NlError::NoFamily { .. }
        | NlError::Malformed { .. }) => PortError::Io {
            what,
            source: io::Error::other(error.to_string()),
        },
    }
}

/// A write that failed.
pub(super) struct Failure<'a> {
    pub(super) target: &'a Target,
    pub(super) key: &'a Key,
    pub(super) needs: &'static str,
}

impl Failure<'_> {
    pub(super) fn netlink(&self, error: NlError) -> PortError {
        match error {
            NlError::Refused(refusal) => {
                // With a sentence of its own, EPERM is the driver's refusal, not a lack of privilege.
                let is_bare = refusal.message.is_none();
                self.errno(refusal.errno, is_bare, &refusal.to_string())
            }
            NlError::NoFamily { .. } => self.unsupported(error.to_string()),
            NlError::Timeout { .. }
            | NlError::Io { .. }
            | NlError::Unsettled { .. }
            | NlError::Malformed { .. } => unanswered(
                &format!("{}: setting {}", self.target.name, self.key),
                error,
            ),
        }
    }

    pub(super) fn io(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(errno) => self.errno(errno, true, &describe(errno)),
            None => {
                let what = format!("{}: setting {}", self.target.name, self.key);
                PortError::Io {
                    what,
                    source: error,
                }
            }
        }
    }

    fn errno(&self, errno: i32, is_bare: bool, message: &str) -> PortError {
        let link = self.target.name.clone();
        match errno {
            libc::ENODEV => PortError::Gone { link },
            libc::EPERM | libc::EACCES if is_bare => PortError::Permission {
                link,
                key: self.key.clone(),
                needs: self.needs,
            },
            libc::EOPNOTSUPP => self.unsupported(message),
            _ => PortError::Refused {
                link,
                key: self.key.clone(),
                errno,
                message: message.to_owned(),
            },
        }
    }

    pub(super) fn refused(&self, errno: i32, message: impl Into<String>) -> PortError {
        let (link, key) = (self.target.name.clone(), self.key.clone());
        PortError::Refused {
            link,
            key,
            errno,
            message: message.into(),
        }
    }

    pub(super) fn unsupported(&self, why: impl Into<String>) -> PortError {
        let (link, key) = (self.target.name.clone(), self.key.clone());
        PortError::Unsupported {
            link,
            key,
            why: why.into(),
        }
    }

    pub(super) fn gone(&self) -> PortError {
        PortError::Gone {
            link: self.target.name.clone(),
        }
    }
}
