// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The initramfs: layers that are cached apart and joined at boot.
//!
//! The kernel unpacks joined cpio archives one after the other. So the big
//! userland layer is made once, the modules layer once per set of modules, and
//! our own programs are packed anew at each run, which costs little. Nothing is
//! compressed: unpacking under emulation costs more than copying.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::cache::{Cache, Item};
use super::chroot::Chroot;
use super::key::KeyMaker;
use super::progress::Step;
use super::roots::Root;

/// Programs of the root that a machine has, libraries come along.
const PROGRAMS: &[&str] = &[
    "/usr/bin/busybox",
    "/usr/bin/bash",
    "/usr/bin/kmod",
    "/usr/bin/setpriv",
    "/usr/bin/ip",
    "/usr/sbin/tc",
    "/usr/bin/ss",
    "/usr/sbin/ethtool",
    "/usr/bin/ping",
    "/usr/sbin/sysctl",
    "/usr/bin/tcpdump",
    "/usr/bin/iperf3",
    "/usr/bin/netperf",
    "/usr/bin/netserver",
    "/usr/bin/zstd",
    "/usr/sbin/opensm",
    "/usr/sbin/ibstat",
    "/usr/sbin/saquery",
    "/usr/sbin/smpquery",
    "/usr/sbin/perfquery",
    "/usr/sbin/sminfo",
    "/usr/sbin/iblinkinfo",
    "/usr/sbin/ibnetdiscover",
    "/usr/sbin/ibaddr",
    "/usr/sbin/ibping",
    "/usr/bin/ibv_devinfo",
    "/usr/bin/ibv_rc_pingpong",
    "/usr/bin/ibv_devices",
    "/usr/bin/rdma",
];

/// Other files and folders that these programs read.
const DATA: &[&str] = &[
    "/etc/libibverbs.d",
    "/usr/lib/x86_64-linux-gnu/libibverbs",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/usr/share/iproute2",
    "/usr/share/terminfo/l/linux",
    "/usr/share/terminfo/v/vt100",
    "/usr/share/terminfo/x/xterm",
    "/usr/share/terminfo/x/xterm-256color",
];

/// Libraries that programs load by name, so that `ldd` doesn't tell.
const LOADED_LIBRARIES: &[&str] = &["/usr/lib/x86_64-linux-gnu/libgcc_s.so.1"];

/// Links that make a program known by other names.
const LINKS: &[(&str, &str)] = &[
    ("usr/sbin/modprobe", "/usr/bin/kmod"),
    ("usr/sbin/insmod", "/usr/bin/kmod"),
    ("usr/sbin/rmmod", "/usr/bin/kmod"),
    ("usr/sbin/lsmod", "/usr/bin/kmod"),
    ("usr/sbin/modinfo", "/usr/bin/kmod"),
    ("usr/sbin/depmod", "/usr/bin/kmod"),
    ("usr/sbin/ip", "/usr/bin/ip"),
    ("usr/bin/sh", "bash"),
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
    ("var/run", "/run"),
    ("etc/mtab", "/proc/self/mounts"),
];

/// Empty folders of a machine.
const FOLDERS: &[&str] = &[
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "root",
    "mnt",
    "lab",
    "var/log",
    "var/cache/opensm",
    "var/lib",
    "etc/opensm",
    "usr/lib/busybox",
];

/// Name of the archive in a layer's folder.
pub const LAYER: &str = "layer.cpio";

/// Grows when the way that layers are made changes.
const FORMAT: &str = "1";

/// Returns the userland layer, made first when it isn't cached.
///
/// # Errors
///
/// When a program is missing from the root, or a tool fails.
pub fn userland(cache: &Cache, root: &Root) -> Result<Item> {
    let links: Vec<String> = LINKS
        .iter()
        .map(|(name, to)| format!("{name}={to}"))
        .collect();
    let key = KeyMaker::new()
        .add("format", FORMAT)
        .add("root", root.key().to_string())
        .add_words("program", PROGRAMS)
        .add_words("data", DATA)
        .add_words("library", LOADED_LIBRARIES)
        .add("links", links.join("\n"))
        .add_words("folder", FOLDERS)
        .finish();
    cache.item("initramfs", "userland", &key, |dir| {
        let step = Step::begin("packing the machine's userland");
        let stage = dir.join("stage");
        fs::create_dir(&stage)?;
        let mut copier = Copier::new(root.path(), &stage);
        for path in PROGRAMS.iter().chain(LOADED_LIBRARIES).chain(DATA) {
            copier
                .copy(Path::new(path))
                .with_context(|| format!("can't take {path} along"))?;
        }
        let mut linked: Vec<&str> = PROGRAMS.iter().chain(LOADED_LIBRARIES).copied().collect();
        let providers = providers(root.path())?;
        linked.extend(providers.iter().map(String::as_str));
        for library in libraries(&root.chroot(), &linked)? {
            copier.copy(Path::new(&library))?;
        }
        for folder in FOLDERS {
            fs::create_dir_all(stage.join(folder))?;
        }
        for (name, to) in LINKS {
            let link = stage.join(name);
            if link.symlink_metadata().is_err() {
                fs::create_dir_all(link.parent().unwrap_or(&stage))?;
                symlink(to, &link)?;
            }
        }
        for applet in root.chroot().script("busybox --list", &[])?.lines() {
            symlink(
                "/usr/bin/busybox",
                stage.join("usr/lib/busybox").join(applet),
            )?;
        }
        pack(&root.chroot(), &stage, &dir.join(LAYER))?;
        fs::remove_dir_all(&stage)?;
        step.done();
        Ok(())
    })
}

/// Packs the folder `stage` into the archive `out`; both lie below one folder.
///
/// # Errors
///
/// When `cpio` fails.
pub fn pack(chroot: &Chroot, stage: &Path, out: &Path) -> Result<()> {
    let parent = out.parent().context("an archive lies in a folder")?;
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    chroot
        .clone()
        .bind(stage, "stage")
        .bind(parent, "out")
        .script(
            "cd /mnt/stage; find . -mindepth 1 -print0 | LC_ALL=C sort -z | \
         cpio --null --create --format=newc --reproducible --owner=0:0 --quiet > \"/mnt/out/$1\"",
            &[&name],
        )?;
    Ok(())
}

/// Writes `content` to `stage/path` with the given mode, folders included.
///
/// # Errors
///
/// Those of the file system.
pub fn put(stage: &Path, path: &str, content: &[u8], mode: u32) -> Result<()> {
    let file = stage.join(path.trim_start_matches('/'));
    fs::create_dir_all(file.parent().unwrap_or(stage))?;
    fs::write(&file, content).with_context(|| format!("can't write {}", file.display()))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Lists the verbs providers, which libibverbs loads by name.
fn providers(root: &Path) -> Result<Vec<String>> {
    let dir = "usr/lib/x86_64-linux-gnu/libibverbs";
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(dir)).with_context(|| format!("no {dir} in the root"))? {
        found.push(format!("/{dir}/{}", entry?.file_name().to_string_lossy()));
    }
    found.sort();
    Ok(found)
}

/// Asks `ldd` for the libraries of many programs.
fn libraries(chroot: &Chroot, programs: &[&str]) -> Result<BTreeSet<String>> {
    // ldd says "not a dynamic executable" with status 1 for static ones.
    let text = chroot.script("ldd -- \"$@\" 2>&1 || true", programs)?;
    parse_ldd(&text)
}

fn parse_ldd(text: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some((library, target)) = line.split_once(" => ") {
            let target = target.split(" (").next().unwrap_or_default().trim();
            if target == "not found" {
                bail!("a library is missing in the root: {library}");
            }
            if target.starts_with('/') {
                found.insert(target.to_owned());
            }
        } else if line.starts_with('/') && line.contains(" (0x") {
            found.extend(line.split(" (").next().map(str::to_owned));
        }
    }
    Ok(found)
}

/// Copies files with the links that lead to them, on the merged-/usr layout.
struct Copier<'a> {
    root: &'a Path,
    stage: &'a Path,
    copied: BTreeSet<PathBuf>,
}

impl<'a> Copier<'a> {
    fn new(root: &'a Path, stage: &'a Path) -> Self {
        Self {
            root,
            stage,
            copied: BTreeSet::new(),
        }
    }

    fn copy(&mut self, path: &Path) -> Result<()> {
        let name = merged(path);
        if !self.copied.insert(name.clone()) {
            return Ok(());
        }
        let (from, to) = (self.root.join(&name), self.stage.join(&name));
        let kind = from
            .symlink_metadata()
            .with_context(|| format!("/{} is not in the root", name.display()))?
            .file_type();
        fs::create_dir_all(to.parent().unwrap_or(self.stage))?;
        if kind.is_symlink() {
            let target = fs::read_link(&from)?;
            symlink(&target, &to)?;
            let folder = Path::new("/").join(name.parent().unwrap_or(Path::new("")));
            return self.copy(&folder.join(target));
        }
        if kind.is_dir() {
            for entry in fs::read_dir(&from)? {
                self.copy(&name.join(entry?.file_name()))?;
            }
            return Ok(());
        }
        fs::copy(&from, &to).with_context(|| format!("can't copy {}", from.display()))?;
        Ok(())
    }
}

/// Returns a path inside a root without `/`, `..` and the links of a merged `/usr`.
fn merged(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let first = clean
        .components()
        .next()
        .map(|part| part.as_os_str().to_owned());
    match first.as_ref().and_then(|name| name.to_str()) {
        Some("bin" | "sbin" | "lib" | "lib64") => Path::new("usr").join(clean),
        _ => clean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_output_gives_paths() {
        let text = "/usr/bin/ip:\n\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibcap.so.2 => /lib/x86_64-linux-gnu/libcap.so.2 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
                    /usr/bin/busybox:\n\tnot a dynamic executable\n\tstatically linked\n";
        let found: Vec<String> = parse_ldd(text).unwrap().into_iter().collect();
        assert_eq!(
            found,
            [
                "/lib/x86_64-linux-gnu/libcap.so.2",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert!(parse_ldd("\tlibx.so.1 => not found\n").is_err());
    }

    #[test]
    fn paths_follow_the_merged_layout() {
        let same =
            |given: &str, wanted: &str| assert_eq!(merged(Path::new(given)), Path::new(wanted));
        same(
            "/lib64/ld-linux-x86-64.so.2",
            "usr/lib64/ld-linux-x86-64.so.2",
        );
        same("/usr/lib/a/../b.so", "usr/lib/b.so");
        same("/etc/passwd", "etc/passwd");
    }

    #[test]
    fn links_are_copied_with_what_they_name() {
        let dir = tempfile::tempdir().unwrap();
        let (root, stage) = (dir.path().join("root"), dir.path().join("stage"));
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        fs::write(root.join("usr/lib/libx.so.1.2"), "x").unwrap();
        symlink("libx.so.1.2", root.join("usr/lib/libx.so.1")).unwrap();
        Copier::new(&root, &stage)
            .copy(Path::new("/lib/libx.so.1"))
            .unwrap();
        assert_eq!(fs::read(stage.join("usr/lib/libx.so.1")).unwrap(), b"x");
        assert!(stage.join("usr/lib/libx.so.1").is_symlink());
        assert!(
            Copier::new(&root, &stage)
                .copy(Path::new("/lib/liby.so"))
                .is_err()
        );
    }
}
