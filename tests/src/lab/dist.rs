// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `cargo lab dist`: packages, built by debhelper and rpmbuild in the lab's root.
//!
//! What goes in is the programs and the files that git knows; what comes out depends on nothing else,
//! so that two builds of a commit give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::cache::Cache;
use super::chroot::{Chroot, run};
use super::place::{self, RunDir};
use super::progress::{Step, say};
use super::report::line;
use super::roots::{self, Root};
use super::{host, initramfs};

/// Version and time of what is packed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Version {
    /// Debian's and RPM's form, such as `0.1.0~dev.212+g0a1b2c3`.
    pub text: String,
    /// The commit's time in seconds: the time of everything in the packages.
    pub epoch: u64,
}

/// Which kinds of packages are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kinds {
    /// `.deb` and `.rpm`.
    All,
    /// `.deb`.
    Deb,
    /// `.rpm`.
    Rpm,
}

impl Kinds {
    const fn last_word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }

    const fn count(self) -> usize {
        match self {
            Self::All => 4,
            Self::Deb | Self::Rpm => 2,
        }
    }
}

/// Packages by kind, and where they lie.
#[derive(Debug)]
pub struct Packages {
    /// Folder of all of them.
    pub dir: PathBuf,
    /// File names, in order.
    pub names: Vec<String>,
}

impl Version {
    /// Asks git for the version of the commit that is checked out: the workspace's, once its tag is
    /// there, and before that one that sorts below it and grows with each commit.
    ///
    /// # Errors
    ///
    /// When this is no clone.
    pub fn of_commit() -> Result<Self> {
        let base = env!("CARGO_PKG_VERSION");
        let epoch = git(&["log", "-1", "--format=%ct"])?;
        let epoch = epoch.parse().context("git gave no time")?;
        let tags = git(&["tag", "--points-at", "HEAD"])?;
        let text = if tags.lines().any(|tag| tag == format!("v{base}")) {
            base.to_owned()
        } else {
            let count = git(&["rev-list", "--count", "HEAD"])?;
            let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
            format!("{base}~dev.{count}+g{commit}")
        };
        Ok(Self { text, epoch })
    }

    /// Returns a version of the same tree that sorts below every real one: what an upgrade starts from.
    #[must_use]
    pub fn older(&self) -> Self {
        Self {
            text: format!("0.0.9~lab+{}", self.epoch),
            epoch: self.epoch,
        }
    }
}

/// Builds release packages into `TARGET/dist` and checks them. Returns whether all is well.
///
/// # Errors
///
/// When something can't be built.
pub fn run_dist() -> Result<bool> {
    host::check_powers()?;
    let cache = Cache::open()?;
    let root = roots::WORKSHOP.ensure(&cache)?;
    root.check_glibc()?;
    let version = Version::of_commit()?;
    if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        say("note: there are changes that are not committed; the version does not tell them");
    }
    let programs = release_programs()?;
    let run_dir = RunDir::create()?;
    let packages = build(
        &root,
        &programs,
        &version,
        Kinds::All,
        &run_dir.path().join("dist"),
    )?;
    let findings = lint(&root, &packages)?;
    let out = place::target()?.join("dist");
    fs::create_dir_all(&out)?;
    for name in &packages.names {
        fs::copy(packages.dir.join(name), out.join(name))?;
        line(&out.join(name).display().to_string());
    }
    for finding in &findings {
        line(&format!("lint: {finding}"));
    }
    Ok(findings.is_empty())
}

/// Builds `ibctl` and `ibmgrd` as they are released: the paths of this machine are left out of them.
///
/// # Errors
///
/// When Cargo refuses; its messages went to standard error.
pub fn release_programs() -> Result<Vec<PathBuf>> {
    let step = Step::begin("building ibctl and ibmgrd for release");
    let target = place::target()?.join("dist-build");
    let home = std::env::var("CARGO_HOME").map_or_else(
        |_| PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    let flags = format!(
        "--remap-path-prefix={}=/usr/src/ibmgr --remap-path-prefix={}=/usr/src/cargo",
        place::repo().display(),
        home.display()
    );
    let mut command = place::cargo();
    command.args(["build", "--quiet", "--release", "--locked"]);
    command.args(["--package", "ibctl", "--package", "ibmgrd"]);
    command
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", flags);
    let status = command.status().context("can't run cargo")?;
    ensure!(status.success(), "the programs don't build; see above");
    step.done();
    let programs = ["ibctl", "ibmgrd"].map(|name| target.join("release").join(name));
    Ok(programs.into())
}

/// Packs programs into files of `kinds` in `dir`.
///
/// # Errors
///
/// When a tool refuses; the error carries the end of what it said.
pub fn build(
    root: &Root,
    programs: &[PathBuf],
    version: &Version,
    kinds: Kinds,
    dir: &Path,
) -> Result<Packages> {
    let step = Step::begin(format!("packing version {}", version.text));
    let stage = dir.join("stage").join("ibmgr");
    stage_files(&stage, programs, version)?;
    let out = dir.join("out");
    fs::create_dir_all(&out)?;
    let chroot = root.chroot().bind(&dir.join("stage"), "stage");
    let chroot = chroot.bind(&out, "out");
    let (epoch, last) = (version.epoch.to_string(), kinds.last_word());
    chroot.script(PACK, &[&version.text, &epoch, last])?;
    fs::remove_dir_all(dir.join("stage"))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&out)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    ensure!(
        names.len() == kinds.count(),
        "two packages of each kind were to be made, and these were: {names:?}"
    );
    step.done();
    Ok(Packages { dir: out, names })
}

/// Arguments: version, time, kinds. Parallel compressors give other bytes with other numbers of processors,
/// so there is one thread.
const PACK: &str = r#"
export SOURCE_DATE_EPOCH=$2 DEB_BUILD_OPTIONS='noautodbgsym parallel=1' XZ_DEFAULTS=-T1
cd /mnt/stage/ibmgr
strip bin/*
chmod -R u=rwX,go=rX .
if [ "$3" != rpm ]; then
    dpkg-buildpackage --no-sign --build=binary --no-check-builddeps >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
    cp ../*.deb /mnt/out/
fi
[ "$3" != deb ] || exit 0
rpmbuild -bb --define "stage $PWD" --define "package_version $1" \
    --define "package_date $(LC_ALL=C date --utc --date "@$2" '+%a %b %d %Y')" --define "_topdir /tmp/rpm" \
    --define '_tmppath /tmp' --define '_dbpath /tmp/rpmdb' \
    --define '_buildhost lab' --define 'use_source_date_epoch_as_buildtime 1' \
    --define 'clamp_mtime_to_source_date_epoch 1' --define '_binary_payload w15.zstdio' \
    packaging/rpm/ibmgr.spec >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
find /tmp/rpm/RPMS -name '*.rpm' -exec cp {} /mnt/out/ \;
"#;

/// Runs lintian and rpmlint; returns what they find that is not explained in `packaging/`.
///
/// # Errors
///
/// When they can't be run.
pub fn lint(root: &Root, packages: &Packages) -> Result<Vec<String>> {
    let step = Step::begin("checking the packages with lintian and rpmlint");
    let rules = place::repo().join("packaging");
    let chroot = root
        .chroot()
        .bind(&packages.dir, "out")
        .bind(&rules, "packaging");
    let text = chroot.script(LINT, &[])?;
    fs::write(packages.dir.with_file_name("lint.txt"), &text)?;
    step.done();
    ensure!(
        text.contains("lintian ran") && text.contains("packages and"),
        "a checker did not run to its end:\n{text}"
    );
    let finds = |line: &&str| {
        [": W: ", ": E: "].iter().any(|mark| line.contains(mark))
            || ["W: ", "E: "].iter().any(|mark| line.starts_with(mark))
    };
    Ok(text.lines().filter(finds).map(str::to_owned).collect())
}

const LINT: &str = r#"
cd /mnt/out
lintian --allow-root --fail-on none *.deb
echo lintian ran
rpmlint --config /mnt/packaging/rpm/rpmlint.toml *.rpm || true
"#;

/// Lays out what the packing tools see.
fn stage_files(stage: &Path, programs: &[PathBuf], version: &Version) -> Result<()> {
    for program in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let content =
            fs::read(program).with_context(|| format!("can't read {}", program.display()))?;
        initramfs::put(stage, &format!("bin/{name}"), &content, 0o755)?;
    }
    let repo = place::repo();
    let listed = git(&[
        "ls-files",
        "driver",
        "packaging",
        "docs/LICENSES",
        "README.md",
    ])?;
    let mut count = 0;
    for name in listed.lines().filter(|name| is_packed(name)) {
        let content = fs::read(repo.join(name)).with_context(|| format!("can't read {name}"))?;
        let place = match name.strip_prefix("packaging/debian/") {
            Some("copyright.txt") => "debian/copyright".to_owned(),
            Some(rest) => format!("debian/{rest}"),
            None => name.replacen("docs/LICENSES", "LICENSES", 1),
        };
        let mode = if name.ends_with("debian/rules") {
            0o755
        } else {
            0o644
        };
        initramfs::put(stage, &place, &content, mode)?;
        count += 1;
    }
    ensure!(count > 60, "git lists only {count} files to pack");
    initramfs::put(stage, "debian/source/format", b"3.0 (native)\n", 0o644)?;
    let date = date_of(version.epoch)?;
    let changelog = format!(
        "ibmgr ({}) unstable; urgency=medium\n\n  * See CHANGELOG of the sources.\n\n \
         -- ibmgr developers <ibmgr@ibmgr.invalid>  {date}\n",
        version.text
    );
    initramfs::put(stage, "debian/changelog", changelog.as_bytes(), 0o644)
}

/// Says whether a file of the repo is a part of packages, or of packing them.
fn is_packed(name: &str) -> bool {
    let is_test = name.starts_with("driver/core/tests/");
    let is_cargo = name.ends_with("Cargo.toml") || name.ends_with(".gitignore");
    !is_test && !is_cargo
}

/// Returns a time as changelogs write it (RFC 5322).
fn date_of(epoch: u64) -> Result<String> {
    let mut command = Command::new("date");
    command.args(["--utc", "--rfc-email", "--date", &format!("@{epoch}")]);
    command.env("LC_ALL", "C");
    Ok(run(command, "date")?.trim().to_owned())
}

/// Runs git in the repo and returns what it prints.
fn git(args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let repo = place::repo();
    // A clone of somebody else is as good as one of root.
    command
        .arg("-c")
        .arg(format!("safe.directory={}", repo.display()));
    command.arg("-C").arg(&repo).args(args);
    let output = command.output().context("can't run git")?;
    if !output.status.success() {
        bail!(
            "packages have the version of a commit, and git says: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Unpacks the driver's sources out of a package, as an administrator would get them.
///
/// # Errors
///
/// When dpkg-deb can't read the package.
pub fn driver_sources(chroot: &Chroot, packages: &Packages, to: &Path) -> Result<PathBuf> {
    let chroot = chroot.clone().bind(&packages.dir, "out").bind(to, "to");
    chroot.script("dpkg-deb -x /mnt/out/ipoib-batch-dkms_*.deb /mnt/to", &[])?;
    let sources = to.join("usr/src");
    let entry = fs::read_dir(&sources)?.next();
    let entry = entry.context("the package has no sources")??;
    Ok(entry.path())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn dates_are_those_of_changelogs() {
        assert_eq!(date_of(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 +0000");
    }

    #[test]
    fn only_sources_are_packed() {
        assert!(is_packed("driver/core/src/lib.rs"));
        assert!(!is_packed("driver/core/tests/loom.rs"));
        assert!(!is_packed("driver/core/Cargo.toml"));
    }
}
