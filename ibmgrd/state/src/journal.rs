// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeping the engine's notes in a file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ibmgr_api::{HostPlan, HostReport};
use ibmgrd_engine::{Journal, JournalError, Record};

use crate::clock;
use crate::error::StateError;
use crate::form::{Header, Line, VERSION};

/// What a journal says of its change besides the plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct About {
    /// Tells this change from others.
    pub id: String,
    /// What was asked for, for people: the files of a declaration.
    pub what: String,
    /// When it began, by [`boottime`](crate::boottime).
    pub started: Duration,
    /// When it is taken back unless it was confirmed, by [`boottime`](crate::boottime).
    pub confirm_by: Option<Duration>,
}

/// A journal in a file.
#[derive(Debug)]
pub struct FileJournal {
    folder: PathBuf,
    about: About,
    /// None before the first note.
    file: Option<File>,
    /// Bytes of whole notes.
    length: u64,
}

/// The file of the journal in its folder.
pub(crate) const FILE: &str = "journal";
/// The file that takes its place when it is whole.
const NEW: &str = "journal.new";

impl FileJournal {
    /// Returns a journal that takes the place of the one before with its first note.
    pub(crate) const fn new(folder: PathBuf, about: About) -> Self {
        Self {
            folder,
            about,
            file: None,
            length: 0,
        }
    }

    /// Opens a journal to add notes behind the first `length` bytes: what follows is a torn note.
    pub(crate) fn resume(folder: PathBuf, about: About, length: u64) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        let failed = |source| StateError::Io {
            what: "writing",
            path: path.clone(),
            source,
        };
        let file = File::options().append(true).open(&path).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        Ok(Self {
            folder,
            about,
            file: Some(file),
            length,
        })
    }

    /// Returns what it says of its change.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Notes why everything is about to be taken back.
    ///
    /// # Errors
    ///
    /// It could not be written.
    pub fn note_why(&mut self, why: &str) -> Result<(), JournalError> {
        self.append(&Line::Why(why.to_owned()))
    }

    /// Notes that the change was confirmed.
    ///
    /// # Errors
    ///
    /// It could not be written: then it is not confirmed.
    pub fn confirm(&mut self) -> Result<(), JournalError> {
        self.append(&Line::Confirmed)
    }

    /// Notes how it went, for who asks later.
    ///
    /// # Errors
    ///
    /// It could not be written.
    pub fn note_report(&mut self, report: &HostReport) -> Result<(), JournalError> {
        let report = serde_json::to_value(report).map_err(|error| failed(error.into()))?;
        self.append(&Line::Report(report))
    }

    fn begin(&mut self, plan: &HostPlan) -> io::Result<()> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let header = Header {
            version: VERSION,
            boot: clock::boot_id(),
            id: self.about.id.clone(),
            what: self.about.what.clone(),
            started: nanoseconds(self.about.started),
            confirm_by: self.about.confirm_by.map(nanoseconds),
            plan: plan.into(),
        };
        let line = Line::Begin(Box::new(header)).encode()?;
        fs::create_dir_all(&self.folder)?;
        let new = self.folder.join(NEW);
        let written = write_new(&new, &line);
        if written.is_err() {
            // What is half-written would only keep the space that was missing.
            let _ = fs::remove_file(&new);
        }
        let file = written?;
        fs::rename(&new, self.folder.join(FILE))?;
        File::open(&self.folder)?.sync_all()?;
        self.length = line.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn append(&mut self, line: &Line) -> Result<(), JournalError> {
        let bytes = line.encode().map_err(|error| failed(error.into()))?;
        let file = self
            .file
            .as_mut()
            .ok_or_else(|| JournalError("it was not begun".to_owned()))?;
        match file.write_all(&bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Half a note must not stand before later ones.
                if file.set_len(self.length).is_err() {
                    self.file = None;
                }
                Err(failed(error))
            }
        }
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    // Appending, so that a note that was cut off leaves no hole before the next.
    let mut file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn failed(error: io::Error) -> JournalError {
    JournalError(error.to_string())
}

impl Journal for FileJournal {
    fn note(&mut self, record: Record<'_>) -> Result<(), JournalError> {
        match record {
            Record::Begin(plan) => {
                let path = self.folder.join(FILE);
                self.begin(plan)
                    .map_err(|error| JournalError(format!("{}: {error}", path.display())))
            }
            Record::Intent(number) => self.append(&Line::Intent(number)),
            Record::Done(number) => self.append(&Line::Done(number)),
            Record::Verified => self.append(&Line::Verified),
            Record::Applied => self.append(&Line::Applied),
            Record::RollBack => self.append(&Line::RollBack),
            Record::RolledBack => self.append(&Line::RolledBack),
        }
    }
}
