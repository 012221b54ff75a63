// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Debian roots that the lab works in.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::cache::{Cache, Item};
use super::chroot::{self, Chroot, tail};
use super::host;
use super::key::{Key, KeyMaker};
use super::progress::Step;

/// What a root is made of.
#[derive(Clone, Copy, Debug)]
pub struct RootSpec {
    /// Debian suite; also the root's name.
    pub suite: &'static str,
    /// Packages besides the essential ones.
    pub packages: &'static [&'static str],
    /// Room that it takes while it is made, in bytes.
    pub space: u64,
}

/// Debian 13: the stable kernel, everything that runs in a machine, and QEMU.
pub const TRIXIE: RootSpec = RootSpec {
    suite: "trixie",
    packages: &[
        "linux-image-amd64",
        "linux-headers-amd64",
        "gcc",
        "make", // modules
        "rustc",
        "rust-src",
        "bindgen",
        "clang", // our driver
        "qemu-system-x86",
        "seabios", // the machine
        "kmod",
        "cpio",
        "xz-utils",
        "zstd",
        "binutils", // making an initramfs
        "busybox-static",
        "iproute2",
        "ethtool",
        "iputils-ping",
        "procps",
        "tcpdump",
        "iperf3",
        "netperf", // traffic
        "opensm",
        "infiniband-diags",
        "ibverbs-utils",
        "ibverbs-providers",
        "rdma-core",
    ],
    space: 4_000_000_000,
};

/// Debian unstable: its newer kernel, to boot, and what builds our modules for it.
pub const SID: RootSpec = RootSpec {
    suite: "sid",
    packages: &[
        "linux-image-amd64",
        "linux-headers-amd64",
        "gcc",
        "make",
        "rustc",
        "rust-src",
        "bindgen",
        "clang",
        "kmod",
        "xz-utils",
        "zstd",
    ],
    space: 4_000_000_000,
};

/// Debian 13 as an administrator has it, with systemd, D-Bus, polkit and DKMS, and what packs and checks
/// packages: they are built here, and a copy of it is booted to install them.
pub const WORKSHOP: RootSpec = RootSpec {
    suite: "trixie",
    packages: &[
        "linux-image-amd64",
        "linux-headers-amd64",
        "systemd-sysv",
        "udev",
        "dbus",
        "polkitd",
        "passwd",
        "kmod",
        "procps",
        "iproute2",
        "iputils-ping",
        "ethtool",
        "curl",
        "jq",
        "python3",
        "libglib2.0-bin",
        "rdma-core",
        "man-db",
        "bash-completion",
        "zsh",
        "fish", // the machine
        "dkms",
        "gcc",
        "make",
        "rustc",
        "rust-src",
        "bindgen",
        "clang", // our driver
        "debhelper",
        "dh-dkms",
        "lintian",
        "rpm",
        "rpmlint", // packages
        "busybox-static",
        "e2fsprogs",
        "cpio",
        "zstd",
        "xz-utils", // disks
    ],
    space: 6_000_000_000,
};

/// Options for every root: no documentation, no initrd of its own, and an
/// archive whose Release file is past its date (frozen mirrors) will do.
const OPTIONS: &[&str] = &[
    "--variant=apt",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--aptopt=APT::Install-Recommends \"false\"",
    "--aptopt=Acquire::Check-Valid-Until \"false\"",
    "--aptopt=Acquire::Retries \"3\"",
];

/// A finished root.
#[derive(Debug)]
pub struct Root {
    item: Item,
    key: Key,
    kernel: String,
}

impl RootSpec {
    /// Returns the key of its content: suite, packages and options.
    #[must_use]
    pub fn key(&self) -> Key {
        KeyMaker::new()
            .add("suite", self.suite)
            .add_words("package", self.packages)
            .add_words("option", OPTIONS)
            .finish()
    }

    /// Looks whether the root is there or can be made: room, tools, network. Cheap when it is there.
    ///
    /// # Errors
    ///
    /// What the host lacks, and what to do.
    pub fn preflight(&self, cache: &Cache) -> Result<()> {
        if cache.has("root", self.suite, &self.key()) {
            return Ok(());
        }
        host::check_space(cache.dir(), self.space)?;
        host::install_root_tools()?;
        host::check_archive(self.suite)
    }

    /// Returns the root, made first when it isn't in the cache.
    ///
    /// # Errors
    ///
    /// When the host lacks something, or the making fails; says what to do.
    pub fn ensure(&self, cache: &Cache) -> Result<Root> {
        self.preflight(cache)?;
        let key = self.key();
        let item = cache.item("root", self.suite, &key, |dir| self.build(dir))?;
        let kernel = kernel_release(item.path())?;
        Ok(Root { item, key, kernel })
    }

    fn build(&self, dir: &Path) -> Result<()> {
        let step = Step::begin(format!(
            "making the Debian {} root (download and unpack, a minute or two)",
            self.suite
        ));
        let mut said: Vec<String> = Vec::new();
        let mut command = chroot::isolated("mmdebstrap");
        command
            .args(OPTIONS)
            .arg(format!("--include={}", self.packages.join(",")));
        command.arg(self.suite).arg(dir).env("INITRD", "No");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("can't run mmdebstrap")?;
        let stderr = child
            .stderr
            .take()
            .context("mmdebstrap has no standard error")?;
        // Progress bars end in a carriage return only.
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let line = line
                .rsplit('\r')
                .find(|part| !part.trim().is_empty())
                .unwrap_or_default();
            if let Some(text) = line.strip_prefix("I: ") {
                step.note(text.trim_end_matches('.'));
            }
            said.push(line.to_owned());
        }
        let status = child.wait()?;
        if !status.success() {
            bail!(
                "mmdebstrap failed ({status}):\n{}",
                tail(&said.join("\n"), 25)
            );
        }
        kernel_release(dir)?;
        step.done();
        Ok(())
    }
}

impl Root {
    /// Returns its folder on the host.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.item.path()
    }

    /// Returns the key of its content.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the release of its kernel, as `uname -r` prints it.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Returns the path of its kernel image on the host.
    #[must_use]
    pub fn vmlinuz(&self) -> PathBuf {
        self.path().join(format!("boot/vmlinuz-{}", self.kernel))
    }

    /// Returns a way to run programs inside.
    #[must_use]
    pub fn chroot(&self) -> Chroot {
        Chroot::new(self.path())
    }

    /// Checks that programs built on this host run in this root.
    ///
    /// # Errors
    ///
    /// When the host's C library is newer than the root's.
    pub fn check_glibc(&self) -> Result<()> {
        let text = self.chroot().script("ldd --version", &[])?;
        let line = text.lines().next().unwrap_or_default();
        let ours = host::parse_version(line).with_context(|| format!("ldd said {line:?}"))?;
        let host = host::glibc_version()?;
        if host > ours {
            bail!(
                "this host's C library {}.{} is newer than the {}.{} of the lab's Debian {}, \
                 so what is built here can't run there.\n\
                 Use a host no newer than that, e.g. a Debian 12 or 13 container (--privileged)",
                host.0,
                host.1,
                ours.0,
                ours.1,
                "root"
            );
        }
        Ok(())
    }
}

/// Finds the one kernel of a root.
fn kernel_release(root: &Path) -> Result<String> {
    let dir = root.join("usr/lib/modules");
    let mut found: Vec<String> = fs::read_dir(&dir)
        .with_context(|| format!("no kernel in the root: {}", dir.display()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|release| root.join(format!("boot/vmlinuz-{release}")).exists())
        .collect();
    found.sort();
    found
        .pop()
        .with_context(|| format!("no bootable kernel in {}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_roots_apart() {
        assert_ne!(TRIXIE.key(), SID.key());
        assert_eq!(TRIXIE.key(), TRIXIE.key());
        let fewer = RootSpec {
            packages: &["gcc"],
            ..TRIXIE
        };
        assert_ne!(fewer.key(), TRIXIE.key());
    }

    #[test]
    fn a_root_needs_a_bootable_kernel() {
        let dir = tempfile::tempdir().unwrap();
        assert!(kernel_release(dir.path()).is_err());
        fs::create_dir_all(dir.path().join("usr/lib/modules/6.12.1-amd64")).unwrap();
        assert!(kernel_release(dir.path()).is_err());
        fs::create_dir_all(dir.path().join("boot")).unwrap();
        fs::write(dir.path().join("boot/vmlinuz-6.12.1-amd64"), "").unwrap();
        assert_eq!(kernel_release(dir.path()).unwrap(), "6.12.1-amd64");
    }
}
