// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `set --save`: the values also into a file, so that they are declared from now on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use ibmgr_api::{Assignment, Link, LinkName};
use ibmgrd_config::{load_paths, match_for, save};
use ibmgrd_engine::{Keys, Port, Query, resolve};

use crate::error::Error;

/// Where values are saved when no file is named.
pub(crate) const FILE: &str = "/etc/ibmgr/conf.d/90-set.toml";

/// What was saved.
pub(crate) struct Saved {
    /// The file.
    pub(crate) file: PathBuf,
    /// What keeps the values from counting, if something does.
    pub(crate) warning: Option<String>,
}

/// Puts values of an interface into a file.
///
/// # Errors
///
/// The file cannot be edited or written; it is as it was then.
pub(crate) fn into_file<P: Port>(
    port: &mut P,
    name: &LinkName,
    values: &[Assignment],
    path: &Path,
) -> Result<Saved, Error> {
    let links = port.observe_all(&Query {
        keys: Keys::Identity,
        via: None,
    })?;
    let by_name = |link: &&Link| {
        link.name == *name || link.alt_names.iter().any(|other| other == name.as_str())
    };
    let Some(link) = links.iter().find(by_name) else {
        return Err(Error::Usage(format!("{name} is gone, and was not saved")));
    };
    let failed = |source| Error::Save {
        file: path.to_owned(),
        source,
    };
    // A link stays one: what it leads to is written.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let text = match fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    if !target.is_file() && target.exists() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    let file = path.display().to_string();
    let edited = save(
        &file,
        &text,
        &match_for(link, &links),
        link.name.as_str(),
        values,
    );
    let edited = edited.map_err(|found| {
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        Error::Config(format!(
            "the values are set, but not saved:\n{}",
            texts.join("\n")
        ))
    })?;
    if edited != text {
        replace(&target, &edited).map_err(failed)?;
    }
    Ok(Saved {
        file: path.to_owned(),
        warning: overridden(link, &links, values, path),
    })
}

/// Says what another file declares instead, where the file is one of this host's.
fn overridden(link: &Link, links: &[Link], values: &[Assignment], path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let is_ours = ibmgrd_config::FOLDERS
        .iter()
        .any(|ours| folder == Path::new(ours));
    if !is_ours {
        return None;
    }
    let loaded = load_paths::<&Path>(&[]);
    let wants = resolve(&loaded.desired, links);
    let wants = wants.iter().find(|wants| wants.index == link.index)?;
    values.iter().find_map(|value| {
        let want = wants.settings.get(&value.key)?;
        let domain = &value.key.knob().domain;
        (want.declared.value != value.value).then(|| {
            let other = want.declared.value.show(domain);
            format!(
                "{}: {}={other} overrides it",
                want.declared.origin, value.key
            )
        })
    })
}

/// Replaces a file as a whole: whoever reads it sees the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The dot keeps it from being read as a file of the folder.
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = write(path, &beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write(path: &Path, beside: &Path, text: &str) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    let mode = old.as_ref().map_or(0o644, |old| old.mode() & 0o7777);
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(beside)?;
    if let Some(old) = old {
        fchown(&file, Some(old.uid()), Some(old.gid()))?;
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conf.d/90-set.toml");
        replace(&path, "one\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        replace(&path, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_cannot_be_written_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, "one\n").is_err());
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
