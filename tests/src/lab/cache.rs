// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the lab built before, by content, outside the repo.
//!
//! An item is a folder `KIND/NAME-KEY`. It is built under another name and
//! renamed when it is whole, so that a half-built item is never used. A lock
//! per item makes two runs wait for each other; users hold it shared, so that
//! nothing is removed under them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, User};

use super::key::Key;
use super::progress::say;

/// The lab's folder of finished things.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

/// A finished thing. Nobody removes it while this value lives.
#[derive(Debug)]
pub struct Item {
    path: PathBuf,
    _shared: File,
}

impl Item {
    /// Returns its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Cache {
    /// Opens `$XDG_CACHE_HOME/ibmgr-lab`, or `~/.cache/ibmgr-lab`.
    ///
    /// # Errors
    ///
    /// When there is no home folder, or the folder can't be made.
    pub fn open() -> Result<Self> {
        let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => home()?.join(".cache"),
        };
        Self::at(base.join("ibmgr-lab"))
    }

    /// Uses `dir`.
    ///
    /// # Errors
    ///
    /// When it can't be made.
    pub fn at(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(dir.join("locks")).with_context(|| {
            format!(
                "can't create {}; set XDG_CACHE_HOME to a writable folder",
                dir.display()
            )
        })?;
        Ok(Self { dir })
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Says whether an item is there already.
    #[must_use]
    pub fn has(&self, kind: &str, name: &str, key: &Key) -> bool {
        self.path(kind, name, key).exists()
    }

    /// Returns an item, built by `build` (which gets an empty folder to fill) when it isn't there.
    ///
    /// # Errors
    ///
    /// What `build` says, and errors of the file system.
    pub fn item(
        &self,
        kind: &str,
        name: &str,
        key: &Key,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Item> {
        let path = self.path(kind, name, key);
        let mut build = Some(build);
        loop {
            let lock = self.lock_file(kind, &format!("{name}-{key}"))?;
            if matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
                say(&format!("==> another lab run makes {name}; waiting for it"));
                lock.lock_shared()?;
            }
            if path.exists() {
                return Ok(Item {
                    path,
                    _shared: lock,
                });
            }
            lock.unlock()?;
            if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
                say(&format!(
                    "==> another lab run builds {name}; waiting for it"
                ));
                lock.lock()?;
            }
            if !path.exists() {
                let Some(build) = build.take() else {
                    bail!("{} was removed while it was needed", path.display());
                };
                build_whole(&path, build)?;
            }
            // A lock can't change from exclusive to shared in one step: look again.
        }
    }

    /// Removes every item for which `keep` (kind, folder name) is false, and leftovers of builds.
    ///
    /// Returns the removed ones, and those that another run is using.
    ///
    /// # Errors
    ///
    /// When an item can't be removed.
    pub fn remove(
        &self,
        keep: &dyn Fn(&str, &str) -> bool,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let (mut removed, mut busy) = (Vec::new(), Vec::new());
        for kind in folders(&self.dir)? {
            let kind_name = file_name(&kind);
            if kind_name == "locks" {
                continue;
            }
            for path in folders(&kind)? {
                let name = file_name(&path);
                let item = name.strip_suffix(".tmp").unwrap_or(&name);
                if item == name && keep(&kind_name, &name) {
                    continue;
                }
                let lock = self.lock_file(&kind_name, item)?;
                if lock.try_lock().is_err() {
                    busy.push(path);
                    continue;
                }
                remove_tree(&path)?;
                removed.push(path);
            }
        }
        Ok((removed, busy))
    }

    fn path(&self, kind: &str, name: &str, key: &Key) -> PathBuf {
        self.dir.join(kind).join(format!("{name}-{key}"))
    }

    fn lock_file(&self, kind: &str, item: &str) -> Result<File> {
        let path = self.dir.join("locks").join(format!("{kind}-{item}"));
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        file.with_context(|| format!("can't open {}", path.display()))
    }
}

fn build_whole(path: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    // A run that was killed leaves its folder; we hold the lock, so nobody uses it.
    if temporary.exists() {
        remove_tree(&temporary)?;
    }
    fs::create_dir_all(&temporary)
        .with_context(|| format!("can't create {}", temporary.display()))?;
    if let Err(error) = build(&temporary) {
        remove_tree(&temporary)?;
        return Err(error);
    }
    fs::rename(&temporary, path).with_context(|| format!("can't rename to {}", path.display()))
}

/// Removes a folder, but never something that is mounted below it.
fn remove_tree(path: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(point) = mount_below(&mounts, path) {
        bail!("{point} is mounted inside the lab's cache; umount it, then try again");
    }
    fs::remove_dir_all(path).with_context(|| format!("can't remove {}", path.display()))
}

/// Finds the first mount point at or below `path` in the text of `mountinfo`.
fn mount_below<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .into_iter()
        .find(|point| Path::new(point).starts_with(path))
}

fn home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("HOME").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    match User::from_uid(Uid::current()) {
        Ok(Some(user)) => Ok(user.dir),
        _ => bail!("no home folder for the cache; set HOME or XDG_CACHE_HOME"),
    }
}

fn folders(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::key::KeyMaker;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn key() -> Key {
        KeyMaker::new().add("x", "y").finish()
    }

    #[test]
    fn an_item_is_built_once_even_by_two() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("c")).unwrap();
        let built = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let item = cache.item("kind", "thing", &key(), |path| {
                        built.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(std::time::Duration::from_millis(30));
                        fs::write(path.join("file"), "whole")?;
                        Ok(())
                    });
                    let text = fs::read_to_string(item.unwrap().path().join("file"));
                    assert_eq!(text.unwrap(), "whole");
                });
            }
        });
        assert_eq!(built.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_failed_or_killed_build_leaves_no_item() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("c")).unwrap();
        let failed = cache.item("kind", "thing", &key(), |_| bail!("no network"));
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        assert!(!cache.has("kind", "thing", &key()));

        let leftover = dir.path().join(format!("c/kind/thing-{}.tmp", key()));
        fs::create_dir_all(&leftover).unwrap();
        fs::write(leftover.join("half"), "").unwrap();
        let item = cache.item("kind", "thing", &key(), |path| {
            assert_eq!(fs::read_dir(path)?.count(), 0);
            Ok(())
        });
        assert!(item.unwrap().path().exists());
        assert!(!leftover.exists());
    }

    #[test]
    fn removing_spares_what_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("c")).unwrap();
        let item = cache.item("kind", "thing", &key(), |_| Ok(())).unwrap();
        let (removed, busy) = cache.remove(&|_, _| false).unwrap();
        assert_eq!((removed.len(), busy.len()), (0, 1));
        drop(item);
        let (removed, busy) = cache.remove(&|kind, _| kind == "other").unwrap();
        assert_eq!((removed.len(), busy.len()), (1, 0));
    }

    #[test]
    fn mounts_below_a_folder_are_seen() {
        let info =
            "29 1 0:26 / / rw - ext4 /dev/vda rw\n31 29 0:5 / /c/root/dev rw - devtmpfs d rw\n";
        assert_eq!(mount_below(info, Path::new("/c/root")), Some("/c/root/dev"));
        assert_eq!(mount_below(info, Path::new("/c/ro")), None);
    }
}
