// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with files.

use std::io;
use std::path::PathBuf;

use ibmgr_api::ErrorCode;

/// Why the state on disk cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A system call failed.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried, such as `writing`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A line in the middle of a journal is not what was written.
    #[error(
        "{} is damaged in line {line}: what it was to take back is not known; see what the interfaces \
         are, then move it away",
        path.display()
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Another release of ibmgr wrote it.
    #[error(
        "{} has version {found}, and this program reads {}: finish it with the program that began it, \
         or move it away",
        path.display(),
        crate::form::VERSION
    )]
    Version {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl StateError {
    /// Returns the error's code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                ErrorCode::Permission
            }
            Self::Io { .. } | Self::Damaged { .. } | Self::Version { .. } => ErrorCode::Journal,
        }
    }
}
