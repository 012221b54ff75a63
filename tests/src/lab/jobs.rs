// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that the host leads, in the lab's roots: of packages, and of a machine that they are installed in.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::cache::Cache;
use super::dist::{self, Kinds, Packages, Version};
use super::installed;
use super::progress::Step;
use super::report::Verdict;
use super::roots::{self, Root};
use super::rpm;
use super::session::build_program;

/// One such test.
#[derive(Debug)]
pub struct Job {
    /// Full name, with a dot.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Whether it runs in long runs, and when it is named in full, only.
    pub long_only: bool,
    run: fn(&Room) -> Result<()>,
}

/// What a job works with.
pub struct Room {
    /// What is there already.
    pub cache: Cache,
    /// Debian with everything that packs, and that packages are installed in.
    pub workshop: Root,
    /// Folder for what it makes and leaves.
    pub dir: PathBuf,
}

/// All jobs, in the order in which they run.
pub const ALL: &[Job] = &[
    Job {
        name: "dist.packages",
        about: "packages are the same bytes twice, clean, and hold what they should",
        long_only: false,
        run: packages,
    },
    Job {
        name: "dist.driver_source",
        about: "the driver's package alone builds on both kernels, with the line of dkms.conf",
        long_only: false,
        run: driver_source,
    },
    Job {
        name: "dist.rpm",
        about: "the .rpm installs, verifies, upgrades with files kept, builds with DKMS, and goes",
        long_only: false,
        run: rpm::life,
    },
    Job {
        name: "installed.life",
        about: "a Debian machine: install, declare, reboot, upgrade, switch drivers, purge",
        long_only: true,
        run: installed::life,
    },
];

/// Exposure that the daemon's unit may have, in tenths (systemd-analyze(1), `security`).
const EXPOSURE: u32 = 20;

impl Job {
    /// Says whether a run with these names takes it.
    #[must_use]
    pub fn is_wanted(&self, names: &[String], long: bool) -> bool {
        long || !self.long_only || names.iter().any(|name| name == self.name)
    }

    /// Runs it; what it makes lies in a folder of its name below `logs`.
    #[must_use]
    pub fn verdict(&self, logs: &Path) -> Verdict {
        let started = Instant::now();
        let step = Step::begin(format!("running {}", self.name));
        let dir = logs.join(self.name);
        let result = Room::open(&dir).and_then(|room| (self.run)(&room));
        step.done();
        Verdict {
            name: self.name.to_owned(),
            time: started.elapsed(),
            failure: result.err().map(|error| format!("{error:#}")),
            logs: vec![dir],
        }
    }
}

impl Room {
    /// Makes what a job works with, its folder too.
    ///
    /// # Errors
    ///
    /// When the root that packs can't be made.
    pub fn open(dir: &Path) -> Result<Self> {
        super::host::check_powers()?;
        fs::create_dir_all(dir)?;
        let cache = Cache::open()?;
        let workshop = roots::WORKSHOP.ensure(&cache)?;
        workshop.check_glibc()?;
        Ok(Self {
            cache,
            workshop,
            dir: dir.to_owned(),
        })
    }

    /// Packs the programs as tests build them, at a version of `base`.
    ///
    /// # Errors
    ///
    /// When they don't build, or a tool refuses.
    pub fn pack(&self, version: &Version, kinds: Kinds, name: &str) -> Result<Packages> {
        let programs = [
            build_program("ibctl", false)?,
            build_program("ibmgrd", false)?,
        ];
        dist::build(
            &self.workshop,
            &programs,
            version,
            kinds,
            &self.dir.join(name),
        )
    }
}

fn packages(room: &Room) -> Result<()> {
    let version = Version::of_commit()?;
    let first = room.pack(&version, Kinds::All, "first")?;
    let second = room.pack(&version, Kinds::All, "second")?;
    ensure!(
        first.names == second.names,
        "{:?}, {:?}",
        first.names,
        second.names
    );
    for name in &first.names {
        let (one, two) = (
            fs::read(first.dir.join(name))?,
            fs::read(second.dir.join(name))?,
        );
        ensure!(one == two, "{name} is not the same twice");
    }
    let findings = dist::lint(&room.workshop, &first)?;
    ensure!(findings.is_empty(), "{}", findings.join("\n"));
    let text = room
        .workshop
        .chroot()
        .bind(&first.dir, "out")
        .script(INSPECT, &[])?;
    fs::write(room.dir.join("inspect.txt"), &text)?;
    let exposure = text
        .lines()
        .find_map(|line| line.split("exposure level for ibmgrd.service: ").nth(1))
        .and_then(|rest| rest.split(' ').next()?.replace('.', "").parse::<u32>().ok());
    let exposure = exposure.with_context(|| format!("no exposure was told:\n{text}"))?;
    ensure!(
        exposure <= EXPOSURE,
        "systemd-analyze security gives ibmgrd.service {exposure} tenths, {EXPOSURE} are allowed"
    );
    Ok(())
}

/// Unpacks, and lets the programs that read the files read them.
const INSPECT: &str = r#"
dpkg-deb -x /mnt/out/ibmgr_*.deb /tmp/x
systemd-analyze security --offline=true --no-pager --root=/tmp/x ibmgrd.service
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no /tmp/x/usr/lib/systemd/system/ibmgrd.socket >/tmp/v 2>&1 || true
if grep -v 'is not executable' /tmp/v; then echo 'systemd-analyze verify finds this'; exit 1; fi
systemd-sysusers --dry-run /tmp/x/usr/lib/sysusers.d/ibmgr.conf
systemd-tmpfiles --dry-run --create /tmp/x/usr/lib/tmpfiles.d/ibmgr.conf || test $? = 65
udevadm verify --no-summary /tmp/x/usr/lib/udev/rules.d/60-ibmgr.rules
bash -n /tmp/x/usr/share/bash-completion/completions/ibctl
zsh -n /tmp/x/usr/share/zsh/vendor-completions/_ibctl
fish -n /tmp/x/usr/share/fish/vendor_completions.d/ibctl.fish
for page in /tmp/x/usr/share/man/man?/*; do
    man --warnings=w --local-file "$page" 2>/tmp/w >/tmp/page
    if [ -s /tmp/w ]; then echo "$page:"; cat /tmp/w; exit 1; fi
    grep -q '^NAME' /tmp/page
done
ls /tmp/x/usr/share/man/man1 | wc -l
"#;

fn driver_source(room: &Room) -> Result<()> {
    let packages = room.pack(&Version::of_commit()?, Kinds::Deb, "packed")?;
    let sid = roots::SID.ensure(&room.cache)?;
    for root in [&room.workshop, &sid] {
        let step = Step::begin(format!(
            "building the packaged driver for Linux {}",
            root.kernel()
        ));
        let to = room.dir.join(root.kernel());
        fs::create_dir_all(&to)?;
        let sources = dist::driver_sources(&room.workshop.chroot(), &packages, &to)?;
        let text = root
            .chroot()
            .bind(&sources, "driver")
            .script(DKMS_LINE, &[root.kernel()])?;
        fs::write(to.join("build.txt"), &text)?;
        ensure!(
            sources.join("ipoib_batch.ko").exists(),
            "no ipoib_batch.ko was made for {}:\n{text}",
            root.kernel()
        );
        fs::remove_dir_all(to.join("usr"))?;
        step.done();
    }
    Ok(())
}

/// Does what DKMS does with dkms.conf: sources it as a shell file and runs its line.
const DKMS_LINE: &str = r#"
kernelver=$1 kernel_source_dir=/lib/modules/$1/build
cat > /tmp/build.sh <<'END'
. ./dkms.conf
case $PACKAGE_VERSION in '#'*) echo 'dkms.conf has no version'; exit 1;; esac
[ "$BUILT_MODULE_NAME" = ipoib_batch ]
eval "${MAKE[0]}"
END
cd /mnt/driver
export kernelver kernel_source_dir
bash -eu /tmp/build.sh 2>&1
modinfo ./ipoib_batch.ko | grep "^vermagic: *$1 "
"#;
