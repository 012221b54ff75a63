// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing a file as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ibmgr_api::ErrorCode;

use crate::error::Error;

/// Says early that a file is in the way, before anything is read.
pub(super) fn check(path: &Path, force: bool) -> Result<(), Error> {
    if path.is_dir() {
        let message = format!("{} is a folder; name a file in it", path.display());
        return Err(fail(message, None, None));
    }
    if !force && fs::symlink_metadata(path).is_ok() {
        return Err(in_the_way(path));
    }
    Ok(())
}

/// Writes a file under another name, and gives it its own when it is complete and on disk. Without
/// `force` a file of that name stays as it is, also one that appeared meanwhile.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), Error> {
    let failed = |source| {
        fail(
            format!("{} can't be written", path.display()),
            None,
            Some(source),
        )
    };
    let temporary = beside(path).map_err(failed)?;
    let written = fill(&temporary, text).and_then(|()| {
        if force {
            fs::rename(&temporary, path)
        } else {
            fs::hard_link(&temporary, path)
        }
    });
    // After a rename it is gone already.
    let _ = fs::remove_file(&temporary);
    match written {
        Ok(()) => sync_folder(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(in_the_way(path)),
        Err(error) => Err(failed(error)),
    }
}

/// Returns a name in the same folder, so that the file can be moved without being copied.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("the path names no file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

fn fill(temporary: &Path, text: &str) -> io::Result<()> {
    // What a process of the same number left behind is in nobody's way.
    let _ = fs::remove_file(temporary);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

fn in_the_way(path: &Path) -> Error {
    let message = format!("{} is there already; nothing was written", path.display());
    fail(message, Some("--force replaces it"), None)
}

fn fail(message: String, hint: Option<&str>, source: Option<io::Error>) -> Error {
    let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let code = match &source {
        Some(error) if is_denied(error) => ErrorCode::Permission,
        Some(_) => ErrorCode::Kernel,
        None => ErrorCode::Usage,
    };
    Error::Files {
        message,
        hint: hint.map(str::to_owned),
        code,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        write(&path, "new\n", false).unwrap();
        assert!(check(&path, false).is_err());
        // The check may have come too early: the write itself must not replace it either.
        assert!(write(&path, "newer\n", false).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        write(&path, "newer\n", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer\n");
        assert_eq!(names(folder.path()), ["a.toml"]);
    }

    #[test]
    fn a_write_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/a.toml");
        assert!(write(&path, "x\n", false).is_err());
        assert!(check(folder.path(), true).is_err());
        assert!(names(folder.path()).is_empty());
    }
}
