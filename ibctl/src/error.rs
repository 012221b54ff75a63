// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with a command, and how it is told.

use std::error::Error as _;
use std::io::{self, Write};
use std::path::PathBuf;

use ibmgr_api::{
    ErrorCode, Failure, Key, KeyError, LinkName, LinkNameError, PlanError, ValueError,
};
use ibmgrd_engine::PortError;
use ibmgrd_state::StateError;
use ibmgrd_state::change::ChangeError;
use serde::Serialize;

use crate::cli::Format;
use crate::text::plain;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is malformed.
    #[error("{0}")]
    Usage(String),
    /// A name that no knob has.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A name that no interface can have.
    #[error(transparent)]
    LinkName(#[from] LinkNameError),
    /// A text that is no value of its knob.
    #[error("{key} takes no such value")]
    Value {
        /// The knob.
        key: Key,
        /// What is wrong with it.
        source: ValueError,
    },
    /// What the kernel said.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Why there is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What a report, or the daemon, says went wrong.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// A set went as asked, but nobody was told.
    #[error("{link}: all is set as asked, but the report could not be written")]
    Unreported {
        /// The interface.
        link: LinkName,
        /// Why not.
        source: io::Error,
    },
    /// Files of other programs that can't be read, or a file that can't be written.
    #[error("{message}")]
    Files {
        /// What is wrong, in one line or several.
        message: String,
        /// What to do.
        hint: Option<String>,
        /// The code.
        code: ErrorCode,
        /// What the system said.
        source: Option<io::Error>,
    },
    /// Why no change of the host was begun, confirmed or taken back.
    #[error(transparent)]
    Change(ChangeError),
    /// The state on disk cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Files that cannot be used.
    #[error("{0}")]
    Config(String),
    /// Values that are set, but could not be saved.
    #[error("the values are set, but {} could not be written", file.display())]
    Save {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("the output could not be written")]
    Output(#[from] io::Error),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Form<'a> {
    code: ErrorCode,
    exit_status: u8,
    message: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    causes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knob: Option<String>,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Port(error) => Self::Port(error),
            ChangeError::State(error) => Self::State(error),
            error => Self::Change(error),
        }
    }
}

impl Error {
    /// Returns the code that decides the exit status.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Usage(_) => ErrorCode::Usage,
            Self::Key(error) => error.code(),
            Self::LinkName(_) => ErrorCode::UnknownLink,
            Self::Value { .. } => ErrorCode::BadValue,
            Self::Port(error) => error.code(),
            Self::Plan(error) => error.code(),
            Self::Failed(failure) => failure.code,
            Self::Files { code, .. } => *code,
            Self::Config(_) => ErrorCode::BadValue,
            Self::Change(error) => error.code(),
            Self::Save { .. } => ErrorCode::Journal,
            Self::Unreported { .. } | Self::Output(_) => ErrorCode::Kernel,
            Self::State(error) => error.code(),
        }
    }

    /// Says whether the reader of the output went away, which is no failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn link(&self) -> Option<String> {
        match self {
            Self::Port(error) => error.link().map(ToString::to_string),
            Self::Plan(error) => error.link().map(ToString::to_string),
            Self::Failed(failure) => failure.link.clone(),
            Self::Unreported { link, .. } => Some(link.to_string()),
            Self::Usage(_)
            | Self::Key(_)
            | Self::LinkName(_)
            | Self::Value { .. }
            | Self::Files { .. }
            | Self::Change(_)
            | Self::State(_)
            | Self::Config(_)
            | Self::Save { .. }
            | Self::Output(_) => None,
        }
    }

    fn key(&self) -> Option<String> {
        match self {
            Self::Value { key, .. } => Some(key.to_string()),
            Self::Failed(failure) => failure.knob.clone(),
            Self::Port(error) => error.key().map(ToString::to_string),
            Self::Plan(error) => Some(error.key().to_string()),
            Self::Usage(_)
            | Self::Key(_)
            | Self::LinkName(_)
            | Self::Unreported { .. }
            | Self::Files { .. }
            | Self::Change(_)
            | Self::State(_)
            | Self::Config(_)
            | Self::Save { .. }
            | Self::Output(_) => None,
        }
    }

    /// Returns what the caller can do, unless the message says it.
    fn hint(&self) -> Option<String> {
        if let Self::Files { hint, code, .. } = self {
            let denied = "run it as a user who may read and write these files";
            let denied = (*code == ErrorCode::Permission).then(|| denied.to_owned());
            return hint.clone().or(denied);
        }
        let key = self.key();
        let with_link = |text: &str| match (&key, self.link()) {
            (Some(key), Some(link)) => Some(format!("'ibctl explain {key} {link}' {text}")),
            (Some(key), None) => Some(format!("'ibctl explain {key}' {text}")),
            (None, _) => None,
        };
        match self.code() {
            ErrorCode::Usage => Some("'ibctl --help' tells how it is written".to_owned()),
            ErrorCode::BadValue => with_link("tells its values"),
            ErrorCode::Unsupported => with_link("tells more"),
            ErrorCode::Refused => with_link("tells its limits; the kernel log may tell more"),
            ErrorCode::NoEffect => with_link("tells which drivers use it"),
            ErrorCode::Permission => {
                Some("run it as root, or with the capability named above".to_owned())
            }
            ErrorCode::Vanished => {
                Some("'ibctl show' lists the interfaces that are there now".to_owned())
            }
            ErrorCode::NotVerified => Some(
                "the driver has limits of its own, or another program sets the same knob"
                    .to_owned(),
            ),
            ErrorCode::NotPutBack => Some(
                "set the value by hand once the cause is gone; the report above has the old one"
                    .to_owned(),
            ),
            ErrorCode::Timeout => Some("try again; the kernel may be busy".to_owned()),
            ErrorCode::Pending if matches!(self, Self::Change(ChangeError::Unconfirmed { .. })) => {
                Some("'ibctl confirm' keeps it, 'ibctl rollback' takes it back".to_owned())
            }
            ErrorCode::Pending => Some("'ibctl status' tells how things stand".to_owned()),
            ErrorCode::Journal => Some("make /run/ibmgr writable, or make room there".to_owned()),
            _ => None,
        }
    }

    fn causes(&self) -> Vec<String> {
        if let Self::Failed(failure) = self {
            return failure.causes.clone();
        }
        let mut causes = Vec::new();
        let mut source = self.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        causes
    }

    /// Writes the error with its causes and what to do.
    ///
    /// # Errors
    ///
    /// `out` does not take it.
    pub fn write(&self, out: &mut dyn Write, format: Format) -> io::Result<()> {
        let causes = self.causes();
        let message = self.to_string();
        match format {
            Format::Table => {
                let mut chain = message;
                for cause in &causes {
                    chain.push_str(": ");
                    chain.push_str(cause);
                }
                // Usage errors have several lines of their own.
                for line in chain.lines() {
                    if line.is_empty() {
                        writeln!(out)?;
                    } else {
                        writeln!(out, "ibctl: {}", plain(line))?;
                    }
                }
                if let Some(hint) = self.hint() {
                    writeln!(out, "ibctl: hint: {}", plain(&hint))?;
                }
            }
            Format::Json => {
                let code = self.code();
                let form = Form {
                    code,
                    exit_status: code.exit_status(),
                    message,
                    causes: &causes,
                    hint: self.hint(),
                    link: self.link(),
                    knob: self.key(),
                };
                serde_json::to_writer(&mut *out, &form)?;
                writeln!(out)?;
            }
        }
        out.flush()
    }
}
