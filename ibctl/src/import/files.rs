// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files that an import reads.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ibmgr_api::ErrorCode;
use ibmgrd_import::{Format, Source};

use crate::error::Error;

/// Largest file that is read. Real ones have a few kilobytes.
const SIZE_MAX: u64 = 1 << 20;

/// Most files of one import.
const FILES_MAX: usize = 4096;

/// Reads all paths: files as they are named, and of folders those that are of the format.
pub(super) fn read(format: Format, paths: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = sources.len();
            folder(format, path, true, &mut sources)?;
            if sources.len() == before {
                let message = format!("{} holds no file of {format}", path.display());
                return Err(fail(message, None));
            }
        } else {
            sources.push(file(path)?);
        }
    }
    Ok(sources)
}

/// Reads the files of a folder by their names, and of the folders in it that belong to the format.
fn folder(
    format: Format,
    path: &Path,
    is_top: bool,
    sources: &mut Vec<Source>,
) -> Result<(), Error> {
    let unreadable = |source| fail(format!("{} can't be listed", path.display()), Some(source));
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    for entry in entries {
        let Some(name) = entry.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        // Whether it is a file is asked of what a link leads to.
        let Ok(metadata) = fs::metadata(&entry) else {
            continue;
        };
        if metadata.is_dir() && is_top && format.takes_folder(name) {
            folder(format, &entry, false, sources)?;
        } else if metadata.is_file() && format.takes(name) {
            if sources.len() >= FILES_MAX {
                let message = format!("{} holds more than {FILES_MAX} files", path.display());
                return Err(fail(message, None));
            }
            sources.push(file(&entry)?);
        }
    }
    Ok(())
}

fn file(path: &Path) -> Result<Source, Error> {
    let name = path.to_string_lossy();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SIZE_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|source| fail(format!("{name} can't be read"), Some(source)))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > SIZE_MAX) {
        return Err(fail(format!("{name} has more than {SIZE_MAX} bytes"), None));
    }
    Source::new(&name, bytes).map_err(|error| super::malformed(vec![error]))
}

fn fail(message: String, source: Option<io::Error>) -> Error {
    let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let code = if source.as_ref().is_some_and(is_denied) {
        ErrorCode::Permission
    } else {
        ErrorCode::Usage
    };
    Error::Files {
        message,
        hint: None,
        code,
        source,
    }
}
