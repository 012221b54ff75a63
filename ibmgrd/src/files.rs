// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The drop-in folders, and what is wrong in them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ibmgr_api::status::{FileStatus, Problem, Record, RecordKind};
use ibmgr_api::{Desired, ErrorCode};
use ibmgrd_config::{Diagnostic, FOLDERS, Loaded, State, Store, read_folders};

/// The folders and what they said last.
#[derive(Debug)]
pub struct Files {
    folders: Vec<PathBuf>,
    store: Store,
    /// Where what files said last is kept over a restart and a reboot.
    keep: PathBuf,
    files: Vec<FileStatus>,
    problems: Vec<Problem>,
}

impl Files {
    /// Returns the files of `folders`, in ascending precedence; of the usual ones when there are none.
    /// What they said when they were last right is kept in the folder `keep`.
    #[must_use]
    pub fn new(folders: &[PathBuf], keep: &Path) -> Self {
        let folders = if folders.is_empty() {
            FOLDERS.map(PathBuf::from).to_vec()
        } else {
            folders.to_vec()
        };
        let keep = keep.join(FILE);
        let mut store = Store::new();
        for (file, text) in kept(&keep) {
            store.remember(&file, text.as_bytes());
        }
        Self {
            folders,
            store,
            keep,
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
        if let Err(error) = self.keep() {
            let text = format!(
                "{}: a file that breaks before the next start will not count: {error}",
                self.keep.display()
            );
            records.push(Record::new(RecordKind::Failed, text).code(ErrorCode::Journal));
        }
        (desired, records)
    }

    /// Keeps what the files said when they were last right.
    fn keep(&self) -> io::Result<()> {
        let texts = self.store.remembered();
        let texts: Kept = texts
            .filter_map(|(file, bytes)| {
                let text = std::str::from_utf8(bytes).ok()?;
                Some((file.to_owned(), text.to_owned()))
            })
            .collect();
        if texts == kept(&self.keep) {
            return Ok(());
        }
        if let Some(folder) = self.keep.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.keep.with_extension("new");
        let _ = fs::remove_file(&new);
        // Declarations may be readable for root only.
        let file = File::options()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        serde_json::to_writer(&file, &texts)?;
        file.sync_all()?;
        fs::rename(&new, &self.keep)
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

/// Texts by file.
type Kept = BTreeMap<String, String>;

/// The folder that they are kept in, unless another one is asked for.
pub(crate) const KEPT: &str = "/var/lib/ibmgr";
/// The file that they are kept in.
const FILE: &str = "last-good.json";

/// Reads what was kept; nothing where that cannot be read, as before the first start.
fn kept(path: &Path) -> Kept {
    let bytes = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
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
