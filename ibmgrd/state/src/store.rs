// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of one network namespace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::boottime;
use crate::error::StateError;
use crate::journal::{About, FILE, FileJournal};
use crate::kept::{self, Kept};

/// Where the state is.
pub const ROOT: &str = "/run/ibmgr";

/// The state of one network namespace.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Returns the state of the namespace with the kernel's `cookie` (`SO_NETNS_COOKIE`) below `root`.
    #[must_use]
    pub fn new(root: &Path, cookie: u64) -> Self {
        Self {
            folder: root.join(format!("net-{cookie}")),
        }
    }

    /// Returns the path of the journal.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Reads what is kept of the last change; `None` when there was none since boot.
    ///
    /// # Errors
    ///
    /// It cannot be read, is damaged, or of another version.
    pub fn read(&self) -> Result<Option<Kept>, StateError> {
        let path = self.journal_path();
        match fs::read(&path) {
            Ok(bytes) => Kept::decode(&path, &bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError::Io {
                what: "reading",
                path,
                source,
            }),
        }
    }

    /// Says whether the last change may yet be put back, or cannot be told not to be: in a fraction of
    /// the time that [`Store::read`] takes.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn is_open(&self) -> Result<bool, StateError> {
        let path = self.journal_path();
        match fs::read(&path) {
            Ok(bytes) => Ok(kept::is_open(&bytes)),
            // Whoever may not read it has no change of hosts to be careful about.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                Ok(false)
            }
            Err(source) => Err(StateError::Io {
                what: "reading",
                path,
                source,
            }),
        }
    }

    /// Returns the journal of a new change. What is kept of the last one stays until it begins.
    #[must_use]
    pub fn begin(&self, what: &str, confirm_within: Option<Duration>) -> FileJournal {
        let started = boottime();
        let about = About {
            // Times and processes repeat, but not together.
            id: format!("{}-{}", started.as_nanos(), std::process::id()),
            what: what.to_owned(),
            started,
            confirm_by: confirm_within.map(|within| started.saturating_add(within)),
        };
        FileJournal::new(self.folder.clone(), about)
    }

    /// Opens the journal of the last change for more notes.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn resume(&self, kept: &Kept) -> Result<FileJournal, StateError> {
        FileJournal::resume(self.folder.clone(), kept.about.clone(), kept.length)
    }
}
