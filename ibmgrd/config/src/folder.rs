// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of drop-in folders, with systemd's precedence (systemd.unit(5), "drop-in").

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::store::Source;

/// The folders, the one with the lowest precedence first: the distribution's, this boot's, the
/// administrator's.
pub const FOLDERS: [&str; 3] = [
    "/usr/lib/ibmgr/conf.d",
    "/run/ibmgr/conf.d",
    "/etc/ibmgr/conf.d",
];

/// Largest file, bytes.
pub const SIZE_MAX: u64 = 1024 * 1024;

/// What is in some folders.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files in ascending precedence, those that could not be read included.
    pub sources: Vec<Source>,
    /// Folders that could not be listed, and why. One that is not there is none of them.
    pub unlisted: Vec<(PathBuf, io::Error)>,
}

/// Reads the files of `folders`, which stand in ascending precedence.
///
/// A file of a later folder replaces one of the same name in an earlier folder; when it is empty, or a
/// link to `/dev/null`, there is no file of that name. Files are in the order of their names, whichever
/// folder they are in. Names that begin with a dot and other endings than `.toml`, `.yaml` and `.yml`
/// are not looked at.
#[must_use]
pub fn read_folders<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Listing {
    let mut listing = Listing::default();
    let mut by_name: BTreeMap<Vec<u8>, Source> = BTreeMap::new();
    for folder in folders {
        let folder = folder.as_ref();
        match names(folder) {
            Ok(paths) => {
                for path in paths {
                    let name = path
                        .file_name()
                        .unwrap_or_default()
                        .as_encoded_bytes()
                        .to_vec();
                    by_name.insert(name, read_file(&path));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => listing.unlisted.push((folder.to_owned(), error)),
        }
    }
    let is_mask = |source: &Source| matches!(&source.content, Ok(bytes) if bytes.is_empty());
    listing.sources = by_name
        .into_values()
        .filter(|source| !is_mask(source))
        .collect();
    listing
}

fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let endings: [&[u8]; 3] = [b".toml", b".yaml", b".yml"];
        let is_ours = endings.iter().any(|ending| name.ends_with(ending));
        if is_ours && !name.starts_with(b".") {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Reads one file. A link to `/dev/null` reads as empty.
#[must_use]
pub fn read_file(path: &Path) -> Source {
    Source {
        file: path.to_string_lossy().into(),
        content: content(path),
    }
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if is_null(&metadata, path) {
        return Ok(Vec::new());
    }
    // Opening a FIFO would wait for a writer.
    if !metadata.is_file() {
        let what = if metadata.is_dir() {
            "a folder"
        } else {
            "no regular file"
        };
        return Err(io::Error::other(format!("it is {what}")));
    }
    if metadata.len() > SIZE_MAX {
        let message = format!("it has {} bytes, more than {SIZE_MAX}", metadata.len());
        return Err(io::Error::other(message));
    }
    fs::read(path)
}

fn is_null(metadata: &Metadata, path: &Path) -> bool {
    metadata.file_type().is_char_device()
        && fs::canonicalize(path).is_ok_and(|target| target == Path::new("/dev/null"))
}
