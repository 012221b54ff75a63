// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What surrounds the supervisor on a real host: the turn among ibmgr's programs, the journal of the
//! daemon's own changes, and the marks of others.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ibmgr_api::status::Owner;
use ibmgrd_engine::{Journal, JournalError, Record};
use ibmgrd_state::{FileJournal, Store};

use crate::owners::Owners;
use crate::supervisor::Surroundings;

/// This host.
#[derive(Debug)]
pub struct Place {
    lock: PathBuf,
    owners: Owners,
    store: Store,
    journal: Option<FileJournal>,
}

impl Place {
    /// Returns the place whose turn is the file `lock` and whose journal is in `store`; marks are
    /// looked for below `root`.
    #[must_use]
    pub fn new(lock: &Path, store: Store, root: &Path) -> Self {
        Self {
            lock: lock.to_owned(),
            owners: Owners::new(root),
            store,
            journal: None,
        }
    }

    /// Takes the turn: until the file is dropped, no other program of ibmgr changes anything. `None`
    /// when another one has it at present.
    #[must_use]
    pub fn turn(&self) -> Option<Option<File>> {
        match self.open() {
            Ok(file) => match file.try_lock() {
                Ok(()) => Some(Some(file)),
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Error(_)) => Some(None),
            },
            // A daemon that may not write there may still be allowed to set.
            Err(_) => Some(None),
        }
    }

    fn open(&self) -> io::Result<File> {
        let open = || {
            // Whoever can open a file can lock it: keep it from users who could only hinder.
            let mut options = File::options();
            options.create(true).truncate(false).write(true).mode(0o600);
            options.custom_flags(nix::libc::O_NONBLOCK);
            options.open(&self.lock)
        };
        match (open(), self.lock.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(folder)?;
                open()
            }
            (opened, _) => opened,
        }
    }
}

impl Surroundings for Place {
    fn owners(&self, index: u32) -> Vec<Owner> {
        self.owners.of(index)
    }
}

impl Journal for Place {
    fn note(&mut self, record: Record<'_>) -> Result<(), JournalError> {
        if matches!(record, Record::Begin(_)) {
            self.journal = Some(self.store.begin("ibmgrd", None));
        }
        let journal = self.journal.as_mut();
        let journal = journal.ok_or_else(|| JournalError("it was not begun".to_owned()))?;
        journal.note(record)
    }
}
