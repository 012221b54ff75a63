// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the daemon adds to the boot of a Debian machine, beside a unit that does nothing in its place.
//!
//! The same machine boots in turns without either, with a copy of the daemon's unit whose program is `true`, and with the
//! daemon, which finds two interfaces and declarations for them. systemd's own clock tells how long it took
//! (`systemd-analyze`, which waits for the last job).

use std::fs;

use anyhow::{Context, Result};

use crate::bench::{Bench, Case, Goal, median};
use crate::lab::booted::{Booted, Disks};
use crate::lab::dist::{self, Kinds, Version};
use crate::lab::jobs::Room;
use crate::lab::session::build_program;

/// The case.
pub(super) const CASE: Case = Case {
    name: "boot",
    about: "what the daemon adds to the boot of a Debian machine with systemd",
    run,
};

/// Boots of each kind.
const ROUNDS: usize = 5;

/// Before the first boot.
const INSTALL: &str = r#"
apt-get install --yes --no-install-recommends /root/ibmgr_*.deb
mkdir -p /etc/ibmgr/conf.d
cat > /etc/ibmgr/conf.d/50-ib.toml <<'END'
[[link]]
match = { name = "ib*" }
state = "up"
txqueuelen = 600
END
sed -e 's|^ExecStart=.*|ExecStart=/usr/bin/true|' -e 's|^Type=.*|Type=oneshot\nRemainAfterExit=yes|' \
    -e '/^Requires=/d' -e '/^WatchdogSec=/d' -e 's| ibmgrd.socket||' -e '/^Also=/d' -e '/^Alias=/d' \
    /usr/lib/systemd/system/ibmgrd.service > /etc/systemd/system/nothing.service
"#;

/// Prints milliseconds: of the boot, and of a unit from being started to being ready.
const FIGURES: &str = r#"
systemctl is-system-running --wait >/dev/null || true
stamp() { systemctl show --property="$1" --value ${2:-}; }
echo "boot $(($(stamp FinishTimestampMonotonic) / 1000))"
for unit in nothing.service ibmgrd.service; do
    if systemctl is-active --quiet $unit; then
        began=$(stamp InactiveExitTimestampMonotonic $unit)
        echo "unit $((($(stamp ActiveEnterTimestampMonotonic $unit) - began) / 1000))"
    fi
done
"#;

/// Kinds of boots: the units that are enabled.
const KINDS: [(&str, &str); 3] = [
    ("without", ""),
    ("nothing", "nothing.service"),
    ("daemon", "ibmgrd.service ibmgrd.socket"),
];

fn run(bench: &mut Bench) -> Result<()> {
    let room = Room::open(&bench.folder().join("boot"))?;
    let programs = [
        build_program("ibctl", true)?,
        build_program("ibmgrd", true)?,
    ];
    let (version, dir) = (Version::of_commit()?, room.dir.join("packages"));
    let packages = dist::build(&room.workshop, &programs, &version, Kinds::Deb, &dir)?;
    let name = packages
        .names
        .iter()
        .find(|name| name.starts_with("ibmgr_") && name.ends_with(".deb"));
    let file = packages.dir.join(name.context("no package of the daemon")?);
    let vm = room.dir.join("vm");
    fs::create_dir_all(&vm)?;
    let disks = Disks::make(&room.cache, &room.workshop, &vm, &[file], INSTALL)?;
    let mut vm = disks.boot()?;
    let mut boots = KINDS.map(|_| Vec::new());
    let mut units = KINDS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (at, (kind, enabled)) in KINDS.into_iter().enumerate() {
            let (boot, unit) = one(&mut vm, kind, enabled)?;
            boots.get_mut(at).context("a kind")?.push(boot);
            units.get_mut(at).context("a kind")?.extend(unit);
        }
    }
    let [without, nothing, daemon] = boots.map(|times| median(&times));
    let [_, nothing_unit, daemon_unit] = units.map(|times| median(&times));
    let without = without.context("no boot")?;
    let (nothing, daemon) = (nothing.context("no boot")?, daemon.context("no boot")?);
    let added = daemon - without;
    let peer = nothing - without;
    bench.bar(
        "boot.added_ms",
        added,
        Some(peer),
        Goal::AtMost(200.0),
        "ms",
    )?;
    let percent = |part: f64| part / without * 100.0;
    let (ours, theirs) = (percent(added), Some(percent(peer)));
    bench.bar("boot.added_pct", ours, theirs, Goal::Open, "%")?;
    bench.bar(
        "boot.ready_ms",
        daemon_unit.context("the daemon was not started")?,
        nothing_unit,
        Goal::Open,
        "ms",
    )?;
    bench.bar("boot.boot_ms", daemon, Some(without), Goal::Open, "ms")
}

/// Boots with those units; returns milliseconds of the boot, and those of the unit if there is one.
fn one(vm: &mut Booted, kind: &str, enabled: &str) -> Result<(f64, Option<f64>)> {
    let all = "nothing.service ibmgrd.service ibmgrd.socket";
    let mut script = format!("systemctl --quiet disable {all}\n");
    if !enabled.is_empty() {
        script.push_str(&format!("systemctl --quiet enable {enabled}\n"));
    }
    vm.must(kind, &script)?;
    vm.reboot()?;
    let text = vm.must("figures", FIGURES)?;
    let of = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    let boot = of("boot ").with_context(|| format!("no time of the boot:\n{text}"))?;
    Ok((boot, of("unit ")))
}
