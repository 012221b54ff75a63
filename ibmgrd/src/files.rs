// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The drop-in folders, and what is wrong in them.

use std::path::PathBuf;

use ibmgr_api::Desired;
use ibmgr_api::status::{FileStatus, Problem, Record, RecordKind};
use ibmgrd_config::{Diagnostic, FOLDERS, Loaded, State, Store, read_folders};

/// The folders and what they said last.
#[derive(Debug)]
pub struct Files {
    folders: Vec<PathBuf>,
    store: Store,
    files: Vec<FileStatus>,
    problems: Vec<Problem>,
}

impl Files {
    /// Returns the files of `folders`, in ascending precedence; of the usual ones when there are none.
    #[must_use]
    pub fn new(folders: &[PathBuf]) -> Self {
        let folders = if folders.is_empty() {
            FOLDERS.map(PathBuf::from).to_vec()
        } else {
            folders.to_vec()
        };
        Self {
            folders,
            store: Store::new(),
            files: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads the folders, and returns what they declare together, and what to tell of it. A broken file
    /// keeps what it said when it was last right.
    pub fn load(&mut self) -> (Desired, Vec<Record>) {
        let loaded = self.store.load_listing(read_folders(&self.folders));
        let Loaded {
            desired,
            diagnostics,
            files,
        } = loaded;
        let state = |state| match state {
            State::Used => "used",
            State::KeptLastGood => "kept-last-good",
            State::Unused => "unused",
        };
        let file = |file: &ibmgrd_config::FileState| FileStatus {
            file: file.file.to_string(),
            state: state(file.state).to_owned(),
        };
        self.files = files.iter().map(file).collect();
        self.problems = diagnostics.iter().map(problem).collect();
        let mut records: Vec<Record> = diagnostics.iter().map(broken).collect();
        let used = self
            .files
            .iter()
            .filter(|file| file.state == "used")
            .count();
        let (rules, all) = (desired.rules.len(), self.files.len());
        let text = format!("{rules} rules from {used} of {all} files");
        records.push(Record::new(RecordKind::Loaded, text));
        (desired, records)
    }

    /// Returns each file and what became of it.
    #[must_use]
    pub fn files(&self) -> &[FileStatus] {
        &self.files
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

fn problem(found: &Diagnostic) -> Problem {
    Problem {
        severity: found.severity.name().to_owned(),
        message: found.message.clone(),
        origin: found.origin.clone(),
        help: found.help.clone(),
    }
}

fn broken(found: &Diagnostic) -> Record {
    let help = found.help.as_ref().map(|help| format!("; {help}"));
    let text = format!("{}{}", found.message, help.unwrap_or_default());
    let kind = if found.is_error() {
        RecordKind::Failed
    } else {
        RecordKind::Loaded
    };
    let mut record = Record::new(kind, text);
    record.origin = Some(found.origin.clone());
    record
}
