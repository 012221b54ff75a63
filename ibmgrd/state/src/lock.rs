// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One set at a time: each verifies by reading back, and another one in between would be taken for a
//! driver that does not keep its word.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ibmgrd_engine::PortError;

/// How long another set is waited for. A mode change that flushes paths takes seconds.
const WAIT: Duration = Duration::from_secs(30);

/// Waits until no other set runs, and keeps others waiting until the file is dropped.
///
/// Returns `None` where this user may not have the file: without the privilege for it there is hardly
/// one to change a knob.
///
/// # Errors
///
/// Another set does not end, or the file cannot be locked.
pub fn hold(path: &Path) -> Result<Option<File>, PortError> {
    let failed = |source| PortError::Io {
        what: format!("locking {}", path.display()),
        source,
    };
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if is_out_of_reach(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if start.elapsed() >= WAIT => {
                return Err(PortError::Timeout {
                    what: format!("another set holds {}", path.display()),
                    seconds: WAIT.as_secs(),
                });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let open = || {
        // Whoever can open a file can lock it: keep it from users who could only hinder.
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        // Something else in its place, such as a FIFO, must not keep the open waiting.
        options.custom_flags(nix::libc::O_NONBLOCK);
        options.open(path)
    };
    match (open(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => open(),
            }
        }
        (opened, _) => opened,
    }
}

fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ibmgr/lock");
        let first = hold(&path).unwrap().unwrap();
        let start = Instant::now();
        let other = {
            let path = path.clone();
            thread::spawn(move || hold(&path).unwrap().map(|_| start.elapsed()))
        };
        thread::sleep(Duration::from_millis(50));
        drop(first);
        let waited = other.join().unwrap().unwrap();
        assert!(waited >= Duration::from_millis(50), "{waited:?}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }

    #[test]
    fn something_else_in_its_place_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = hold(&path).unwrap_err().to_string();
        assert!(error.starts_with("locking "), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_had_is_no_failure() {
        assert!(hold(Path::new("/nowhere/at/all")).unwrap().is_none());
    }
}
