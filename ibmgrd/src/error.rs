// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What keeps the daemon from running.

use std::io;
use std::path::PathBuf;

use ibmgr_api::ErrorCode;
use ibmgrd_engine::PortError;
use ibmgrd_hw::nl::NlError;

/// Why the daemon ended, or did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel's notifications cannot be had.
    #[error("the kernel's notifications cannot be followed")]
    Watch(#[from] NlError),
    /// The network namespace cannot be told from others.
    #[error("the network namespace has no name")]
    Namespace(#[source] Box<PortError>),
    /// Something of the process itself.
    #[error("{what} failed")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Another daemon answers at the socket.
    #[error(
        "another ibmgrd answers at {}; stop it first, or give this one another --socket",
        .socket.display()
    )]
    Running {
        /// The socket.
        socket: PathBuf,
    },
    /// TLS can't be had, or nobody could ask, or everybody.
    #[error("{}: {what}", .path.display())]
    Tcp {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Error {
    /// Returns what is wrong with a file for TLS.
    pub(crate) fn tcp(path: &std::path::Path, what: impl Into<String>) -> Self {
        Self::Tcp {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// Returns a function that says what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Returns the error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Watch(_) | Self::Namespace(_) | Self::Io { .. } => ErrorCode::Kernel,
            Self::Tcp { .. } => ErrorCode::BadValue,
            Self::Running { .. } => ErrorCode::Refused,
        }
    }
}
