// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where things lie: the repo, the target folder, the folder of this run.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// How many finished runs keep their logs.
const KEPT_RUNS: usize = 8;

/// Returns the folder of the workspace.
#[must_use]
pub fn repo() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Returns Cargo's target folder: the one that this program was built in.
///
/// # Errors
///
/// When the program's own path can't be read.
pub fn target() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("can't find the path of lab itself")?;
    // Built as TARGET/PROFILE/lab, or TARGET/PROFILE/deps/NAME for tests.
    let found = exe
        .ancestors()
        .skip(1)
        .find(|dir| dir.join("CACHEDIR.TAG").exists());
    Ok(found.map_or_else(|| repo().join("target"), Path::to_owned))
}

/// Returns the time now as `date -u` formats it.
///
/// # Errors
///
/// When `date` can't be run.
pub fn utc(format: &str) -> Result<String> {
    let out = Command::new("date")
        .arg("-u")
        .arg(format!("+{format}"))
        .output();
    let out = out.context("can't run date")?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Folder for the logs of one run of `lab`.
///
/// Locked while the run lives, so that a later run can tell dead ones.
pub struct RunDir {
    path: PathBuf,
    _lock: File,
}

/// Folder of the run of this process, for [`tidy_up`].
static CURRENT: OnceLock<PathBuf> = OnceLock::new();

/// Removes the big files of this process's run, which is about to end early.
pub fn tidy_up() {
    if let Some(run) = CURRENT.get() {
        remove_images(run);
    }
}

impl RunDir {
    /// Makes the folder `TARGET/lab/TIME-PID` and removes those of old runs.
    ///
    /// # Errors
    ///
    /// When the folder can't be made.
    pub fn create() -> Result<Self> {
        let parent = target()?.join("lab");
        fs::create_dir_all(&parent)
            .with_context(|| format!("can't create {}", parent.display()))?;
        prune(&parent);
        let name = format!("{}-{}", utc("%Y%m%d-%H%M%S")?, std::process::id());
        let path = parent.join(&name);
        fs::create_dir(&path).with_context(|| format!("can't create {}", path.display()))?;
        let mut lock = File::create(path.join("lock"))?;
        lock.lock()?;
        writeln!(lock, "{}", std::process::id())?;
        // "last" is for people; a second run at the same moment may win the name.
        let last = parent.join("last");
        let _ = fs::remove_file(&last);
        let _ = symlink(&name, &last);
        // Only tests of the lab make more than one.
        let _ = CURRENT.set(path.clone());
        Ok(Self { path, _lock: lock })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the folders of runs that have ended, the newest few excepted.
fn prune(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let mut runs: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    runs.sort();
    runs.reverse();
    for (index, run) in runs.iter().enumerate() {
        let Ok(lock) = File::open(run.join("lock")) else {
            continue;
        };
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        if index >= KEPT_RUNS {
            let _ = fs::remove_dir_all(run);
        } else {
            remove_images(run);
        }
    }
}

/// Removes the big files that an interrupted run left.
fn remove_images(run: &Path) {
    let Ok(entries) = fs::read_dir(run) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_file(entry.path().join("initrd.img"));
            let _ = fs::remove_dir_all(entry.path().join("stage"));
        }
    }
}

/// Returns a `cargo` command in the repo, free of what `cargo run` left in the environment.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repo());
    if let Ok(target) = target() {
        command.env("CARGO_TARGET_DIR", target);
    }
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let inherited = text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_BIN_")
            || [
                "CARGO_MANIFEST_DIR",
                "CARGO_MANIFEST_PATH",
                "CARGO_CRATE_NAME",
                "LD_LIBRARY_PATH",
            ]
            .contains(&text.as_ref());
        if inherited {
            command.env_remove(&name);
        }
    }
    command
}
