// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of `/sys/class/net/<link>` (Documentation/ABI/testing/sysfs-class-net).
//!
//! A sysfs mount shows the interfaces of the network namespace that mounted it, whatever namespace the
//! reader is in. A name can therefore lead to another interface: [`Sysfs::is_same`] tells.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ibmgr_api::LinkName;
use nix::fcntl::AtFlags;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, faccessat, read, write};

/// Longest text of a file; sysfs gives at most a page.
const PAGE: usize = 4096;

/// A file of one queue of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// `rx-` or `tx-`.
    pub prefix: &'static str,
    /// Its number.
    pub number: u32,
    /// The file's name.
    pub file: &'static str,
}

impl Queue {
    fn path(self, link: &LinkName) -> String {
        let Self {
            prefix,
            number,
            file,
        } = self;
        format!("{link}/queues/{prefix}{number}/{file}")
    }
}

/// The directory `class/net` of a sysfs.
#[derive(Debug)]
pub struct Sysfs {
    directory: OwnedFd,
}

impl Sysfs {
    /// Opens `class/net` below `root`, which is `/sys` but for tests.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened.
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = open(&root.join("class/net"), flags, Mode::empty())?;
        Ok(Self { directory })
    }

    /// Says whether the interface that sysfs shows under that name has that index and address.
    #[must_use]
    pub fn is_same(&self, link: &LinkName, index: u32, address: &str) -> bool {
        let reads = |file, text: &str| self.read(link, file).is_ok_and(|read| read == text);
        reads("ifindex", &index.to_string()) && reads("address", address)
    }

    /// Returns the path of the device below the interface, such as `/devices/pci0000:00/0000:03:00.0`;
    /// `None` when it is not the one that its bus calls `device`.
    #[must_use]
    pub fn device_path(&self, link: &LinkName, device: &str) -> Option<String> {
        let target = readlinkat(self.directory.as_fd(), link.as_str()).ok()?;
        let target = target.into_string().ok()?;
        let (path, name) = target.trim_start_matches("../").rsplit_once("/net/")?;
        let (_, last) = path.rsplit_once('/')?;
        (last == device && name == link.as_str()).then(|| format!("/{path}"))
    }

    /// Reads a file, without the newline at its end.
    ///
    /// # Errors
    ///
    /// `ENOENT` when there is no such interface or file, or what the driver says.
    pub fn read(&self, link: &LinkName, file: &'static str) -> io::Result<String> {
        self.read_path(&path(link, file))
    }

    fn read_path(&self, path: &str) -> io::Result<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = openat(self.directory.as_fd(), path, flags, Mode::empty())?;
        let mut buffer = [0; PAGE];
        let length = read(&file, &mut buffer)?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Writes a file, in one piece as sysfs wants it.
    ///
    /// # Errors
    ///
    /// `EACCES` when the file's mode forbids it, `EPERM` without the capability, or what the driver says.
    pub fn write(&self, link: &LinkName, file: &'static str, text: &str) -> io::Result<()> {
        self.write_path(&path(link, file), text)
    }

    fn write_path(&self, path: &str, text: &str) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = openat(self.directory.as_fd(), path, flags, Mode::empty())?;
        let written = write(&file, text.as_bytes())?;
        if written == text.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Reads a file of a queue.
    ///
    /// # Errors
    ///
    /// As [`Sysfs::read`].
    pub fn read_queue(&self, link: &LinkName, queue: Queue) -> io::Result<String> {
        self.read_path(&queue.path(link))
    }

    /// Writes a file of a queue.
    ///
    /// # Errors
    ///
    /// As [`Sysfs::write`].
    pub fn write_queue(&self, link: &LinkName, queue: Queue, text: &str) -> io::Result<()> {
        self.write_path(&queue.path(link), text)
    }

    /// Says whether the interface has that queue, and the queue the file.
    #[must_use]
    pub fn has_queue(&self, link: &LinkName, queue: Queue) -> bool {
        self.may(&queue.path(link), AccessFlags::F_OK)
    }

    /// Says whether the interface has the file. The in-tree driver has `parent` in the directories of
    /// children made through `create_child`, and of no others.
    #[must_use]
    pub fn has(&self, link: &LinkName, file: &'static str) -> bool {
        self.access(link, file, AccessFlags::F_OK)
    }

    /// Says whether this process may open the file for writing. The kernel can still want a capability.
    #[must_use]
    pub fn is_writable(&self, link: &LinkName, file: &'static str) -> bool {
        self.access(link, file, AccessFlags::W_OK)
    }

    fn access(&self, link: &LinkName, file: &'static str, flags: AccessFlags) -> bool {
        self.may(&path(link, file), flags)
    }

    fn may(&self, path: &str, flags: AccessFlags) -> bool {
        let directory = self.directory.as_fd();
        faccessat(directory, path, flags, AtFlags::AT_EACCESS).is_ok()
    }
}

/// A [`LinkName`] is a single path component, so that the path stays below the directory.
fn path(link: &LinkName, file: &'static str) -> String {
    format!("{link}/{file}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn fake() -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("class/net/ib0");
        fs::create_dir_all(link.join("ipoib")).unwrap();
        fs::write(link.join("ifindex"), "7\n").unwrap();
        fs::write(link.join("address"), "80:00\n").unwrap();
        fs::write(link.join("ifalias"), "\n").unwrap();
        fs::write(link.join("ipoib/batching"), "adaptive\n").unwrap();
        let sysfs = Sysfs::open(root.path()).unwrap();
        (root, sysfs)
    }

    #[test]
    fn files_are_read_and_written_below_the_link() {
        let (root, sysfs) = fake();
        let ib0: LinkName = "ib0".parse().unwrap();
        assert_eq!(sysfs.read(&ib0, "ipoib/batching").unwrap(), "adaptive");
        assert_eq!(sysfs.read(&ib0, "ifalias").unwrap(), "");
        sysfs.write(&ib0, "ipoib/batching", "off").unwrap();
        let text = fs::read_to_string(root.path().join("class/net/ib0/ipoib/batching")).unwrap();
        assert!(text.starts_with("off"), "{text}");
        assert!(sysfs.has(&ib0, "ipoib/batching") && !sysfs.has(&ib0, "parent"));
        let error = sysfs.read(&ib0, "mode").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn files_of_queues_are_below_their_queue() {
        let (root, sysfs) = fake();
        let ib0: LinkName = "ib0".parse().unwrap();
        let folder = root.path().join("class/net/ib0/queues/rx-3");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("rps_cpus"), "00000003\n").unwrap();
        let queue = |number| Queue {
            prefix: "rx-",
            number,
            file: "rps_cpus",
        };
        assert!(sysfs.has_queue(&ib0, queue(3)) && !sysfs.has_queue(&ib0, queue(4)));
        assert_eq!(sysfs.read_queue(&ib0, queue(3)).unwrap(), "00000003");
        sysfs.write_queue(&ib0, queue(3), "f").unwrap();
        assert!(
            fs::read_to_string(folder.join("rps_cpus"))
                .unwrap()
                .starts_with('f')
        );
        assert!(sysfs.read_queue(&ib0, queue(4)).is_err());
    }

    #[test]
    fn the_device_is_where_the_link_leads() {
        let (root, sysfs) = fake();
        let target = "../../devices/pci0000:00/0000:03:00.0/net/ib1";
        std::os::unix::fs::symlink(target, root.path().join("class/net/ib1")).unwrap();
        let ib1: LinkName = "ib1".parse().unwrap();
        let path = sysfs.device_path(&ib1, "0000:03:00.0");
        assert_eq!(path.as_deref(), Some("/devices/pci0000:00/0000:03:00.0"));
        assert_eq!(sysfs.device_path(&ib1, "0000:04:00.0"), None);
        assert_eq!(sysfs.device_path(&"ib0".parse().unwrap(), "x"), None);
        assert_eq!(sysfs.device_path(&"ib2".parse().unwrap(), "x"), None);
    }

    #[test]
    fn another_interface_of_the_same_name_is_noticed() {
        let (_root, sysfs) = fake();
        let ib0: LinkName = "ib0".parse().unwrap();
        assert!(sysfs.is_same(&ib0, 7, "80:00"));
        assert!(!sysfs.is_same(&ib0, 8, "80:00"));
        assert!(!sysfs.is_same(&ib0, 7, "80:01"));
        assert!(!sysfs.is_same(&"ib1".parse().unwrap(), 7, "80:00"));
    }
}
