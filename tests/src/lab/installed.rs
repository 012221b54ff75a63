// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packages in a Debian machine: installed, declared, rebooted, upgraded, switched, purged.

use anyhow::{Context, Result, ensure};

use super::booted::Disks;
use super::dist::{Kinds, Version};
use super::jobs::Room;

/// What is installed before the first boot: DKMS builds natively in seconds what would take minutes in a
/// machine without hardware help. What it leaves is compared after the purge.
const INSTALL: &str = "\
find / -xdev | sort > /var/log/lab-before
apt-get install --yes --no-install-recommends /root/ipoib-batch-dkms_*.deb
dkms status
";

/// Pages whose `sh` blocks run, one after the other, as root.
const PAGES: [(&str, &str); 3] = [
    (
        "docs/administration.md",
        include_str!("../../../docs/administration.md"),
    ),
    ("docs/driver.md", include_str!("../../../docs/driver.md")),
    (
        "docs/orchestration.md",
        include_str!("../../../docs/orchestration.md"),
    ),
];

const TIDY: &str =
    "rm -f /etc/ibmgr/conf.d/50-present.toml; ibctl driver use batch; systemctl reload ibmgrd";

/// Leads the whole life of the packages.
///
/// # Errors
///
/// The step that went wrong, with what it printed.
pub fn life(room: &Room) -> Result<()> {
    let new = Version::of_commit()?;
    let old = Version {
        text: format!("0.0.9~lab+{}", new.epoch),
        ..new.clone()
    };
    let before = room.pack(&old, Kinds::Deb, "old")?;
    let now = room.pack(&new, Kinds::Deb, "new")?;
    let deb = |packages: &super::dist::Packages, start: &str| {
        let name = packages
            .names
            .iter()
            .find(|name| name.starts_with(start) && name.ends_with(".deb"));
        name.map(|name| packages.dir.join(name))
            .context("a package is missing")
    };
    let files = [
        deb(&before, "ibmgr_")?,
        deb(&now, "ibmgr_")?,
        deb(&now, "ipoib-batch-dkms_")?,
    ];
    let disks = Disks::make(
        &room.cache,
        &room.workshop,
        &room.dir.join("vm"),
        &files,
        INSTALL,
    )?;
    let mut vm = disks.boot()?;

    // One command to install, one to see: three are allowed.
    vm.must(
        "apt install",
        "cd /root; apt-get install --yes ./ibmgr_0.0.9*.deb",
    )?;
    let shown = vm.must("ibctl show", "ibctl show")?;
    ensure!(
        shown
            .lines()
            .any(|line| line.starts_with("ib0 ") && line.contains("ib_ipoib")),
        "ib0 with the stock driver was to be shown:\n{shown}"
    );
    vm.must("the daemon as installed", RUNNING)?;
    vm.must("who may do what", ACCESS)?;
    vm.must("choosing the driver", CHOOSE)?;
    vm.reboot()?;
    vm.must("as declared, by our driver", DECLARED)?;
    vm.must("drift is put right", DRIFT)?;
    vm.must("apt upgrade", UPGRADE)?;
    vm.must("still as declared", DECLARED)?;
    for (path, page) in PAGES {
        vm.must(path, &format!("cd /root/new\n{}", blocks(page)))?;
    }
    vm.must("what pages declared goes", TIDY)?;
    vm.must("to stock and back", SWITCH)?;
    vm.must("as declared once more", DECLARED)?;
    vm.must("a driver that is missing does no harm", FALLBACK)?;
    vm.must("apt purge", PURGE)?;
    let left = vm.must("what is left", LEFT)?;
    ensure!(
        left.trim().is_empty(),
        "after the purge there is still:\n{left}"
    );
    Ok(())
}

/// Returns the `sh` blocks of a page, each command with an echo of itself.
fn blocks(page: &str) -> String {
    let mut is_inside = false;
    let mut script = String::from("set -x\n");
    for line in page.lines() {
        if line.starts_with("```") {
            is_inside = line == "```sh";
        } else if is_inside {
            script.push_str(line);
            script.push('\n');
        }
    }
    script
}

/// The unit runs as it is written: active, not root, two capabilities, its socket, and not in the way of others.
const RUNNING: &str = r#"
systemctl is-active ibmgrd.service ibmgrd.socket
systemctl is-enabled ibmgrd.service ibmgrd.socket
pid=$(systemctl show -P MainPID ibmgrd.service)
grep "^Uid:" /proc/$pid/status
test "$(stat -c %U /proc/$pid)" = ibmgr
# CAP_DAC_OVERRIDE is 1, CAP_NET_ADMIN is 12 (capability.h).
grep -x 'CapEff:.0000000000001002' /proc/$pid/status
grep -x 'CapBnd:.0000000000001002' /proc/$pid/status
test "$(stat -c '%a %U %G' /run/ibmgr/http.sock)" = '660 root ibmgr'
systemctl show -P Listen ibmgrd.socket
curl --silent --show-error --fail --unix-socket /run/ibmgr/http.sock http://localhost/v1/status | jq -e . >/dev/null
systemd-analyze security --no-pager ibmgrd.service | tail -1
level=$(systemd-analyze security --no-pager ibmgrd.service | sed -n 's/.*exposure level for ibmgrd.service: \([0-9.]*\) .*/\1/p')
jq -en "$level <= 2.0"
if journalctl --boot --unit ibmgrd --priority warning --quiet | grep .; then exit 1; fi
man --where ibctl ibctl-set ibmgrd ibmgr.conf
man ibctl-set | grep -q EXAMPLES
pkaction --action-id org.ibmgr1.change
for action in observe change change-boot-config; do pkaction --action-id org.ibmgr1.$action | grep .; done
"#;

/// Denied are those who are in no group, and changes by those who are.
const ACCESS: &str = r#"
ask() { curl --silent --output /dev/null --write-out '%{http_code}' --unix-socket /run/ibmgr/http.sock "$@" || true; }
test "$(ask http://localhost/v1/status)" = 200
test "$(ask --request POST http://localhost/v1/reload)" = 200
export -f ask
test "$(runuser -u alice -- bash -c 'ask http://localhost/v1/status')" = 000
test "$(runuser -u alice -g ibmgr -- bash -c 'ask http://localhost/v1/status')" = 200
test "$(runuser -u alice -g ibmgr -- bash -c 'ask --request POST http://localhost/v1/reload')" = 403
runuser -u alice -- ibctl show ib0 >/dev/null
status=0; runuser -u alice -- ibctl set ib0 txqueuelen=300 || status=$?
test $status = 9
"#;

/// The choice for the next boot, and what shall be then.
const CHOOSE: &str = r#"
ibctl driver status
ibctl driver use batch --dry-run
test ! -e /etc/modprobe.d/ibmgr-driver.conf
ibctl driver use batch
ibctl driver status | tee /tmp/status
grep -q 'loaded before batch was chosen' /tmp/status
mkdir -p /etc/ibmgr/conf.d
cat > /etc/ibmgr/conf.d/50-ib.toml <<'END'
[[link]]
match = { driver = "ipoib_batch", child = false }
state = "up"
batching = "adaptive"
batch-limit = 32
txqueuelen = 600

[[link.child]]
pkey = 0x8001
state = "up"
txqueuelen = 700
END
ibctl check
"#;

/// Both ports and their children are as declared, and were before the network was said to be online.
const DECLARED: &str = r#"
for second in $(seq 30); do
    if ethtool -i ib0 | grep -q '^driver: ipoib_batch' &&
        ip -d link show ib0.8001 2>/dev/null | grep -q 'qlen 700' && ip link show ib1.8001 2>/dev/null | grep -q 'qlen 700' &&
        ip link show ib0 | grep -q 'qlen 600' && ip link show ib1 | grep -q 'qlen 600'; then break; fi
    sleep 1
done
ibctl show
ethtool -i ib0 | grep '^driver: ipoib_batch'
ethtool --show-priv-flags ib0
for link in ib0 ib1; do
    test "$(cat /sys/class/net/$link/ipoib/batching)" = adaptive
    test "$(cat /sys/class/net/$link/ipoib/batch_limit)" = 32
    test "$(cat /sys/class/net/$link/tx_queue_len)" = 600
    test "$(cat /sys/class/net/$link.8001/tx_queue_len)" = 700
done
ibctl driver status | tee /tmp/status
test "$(grep -c 'chosen in /etc/modprobe.d/ibmgr-driver.conf' /tmp/status)" = 2
ibctl status
ready=$(systemctl show -P ActiveEnterTimestampMonotonic ibmgrd.service)
begun=$(systemctl show -P InactiveExitTimestampMonotonic ibmgrd.service)
online=$(systemctl show -P ActiveEnterTimestampMonotonic network-online.target)
echo "ibmgrd: $((ready - begun)) us to ready, at $ready us; online at $online us"
if [ ! -e /run/lab-checked ]; then test $ready -lt $online; touch /run/lab-checked; fi
if journalctl --boot --dmesg --quiet --grep 'BUG:|WARNING:|Oops'; then exit 1; fi
"#;

const DRIFT: &str = r#"
ip link set ib0 txqueuelen 100
for tenth in $(seq 100); do
    if [ "$(cat /sys/class/net/ib0/tx_queue_len)" = 600 ]; then break; fi
    sleep 0.1
done
test "$(cat /sys/class/net/ib0/tx_queue_len)" = 600
journalctl --boot --unit ibmgrd --quiet --grep txqueuelen | tail -3
"#;

/// A new version replaces the daemon; the interfaces, their carriers and the files are the same after it.
const UPGRADE: &str = r#"
cd /root/new
same() {
    for link in ib0 ib1 ib0.8001 ib1.8001; do
        cat /sys/class/net/$link/{ifindex,carrier,carrier_changes,operstate}
    done
    sha256sum /etc/ibmgr/conf.d/* /etc/modprobe.d/ibmgr-driver.conf
}
same > /tmp/before
old=$(systemctl show -P MainPID ibmgrd.service)
ip monitor link > /tmp/events & monitor=$!
apt-get install --yes ./ibmgr_*.deb
kill $monitor
same > /tmp/after
diff /tmp/before /tmp/after
if grep -q 'state DOWN\|Deleted' /tmp/events; then cat /tmp/events; exit 1; fi
test "$(systemctl show -P MainPID ibmgrd.service)" != "$old"
systemctl is-active ibmgrd.service ibmgrd.socket
curl --silent --show-error --fail --unix-socket /run/ibmgr/http.sock http://localhost/v1/status >/dev/null
"#;

const SWITCH: &str = r#"
ip address add 10.9.0.1/24 dev ib0
ibctl driver use stock --now --dry-run | tee /tmp/plan
grep -q 'ib0 (10.9.0.1' /tmp/plan
grep -q 'ib1.8001' /tmp/plan
grep -q 'the way back: ibctl driver use batch --now' /tmp/plan
ethtool -i ib0 | grep '^driver: ipoib_batch'
ibctl driver use stock --now
ethtool -i ib0 | grep '^driver: ib_ipoib'
ibctl driver status
test ! -e /sys/module/ipoib_batch
ibctl driver use batch --now
ethtool -i ib0 | grep '^driver: ipoib_batch'
"#;

/// A module that can't be loaded: whoever loads IPoIB gets the stock driver, and a switch goes back by itself.
const FALLBACK: &str = r#"
module=$(modinfo -F filename ipoib_batch)
modprobe -r ipoib_batch
mv "$module" /root/hidden
echo broken > "$module"
modprobe ib_ipoib
ethtool -i ib0 | grep '^driver: ib_ipoib'
status=0; ibctl driver use batch --now 2>/tmp/said || status=$?
cat /tmp/said
test $status = 7
grep -q 'ib_ipoib is back' /tmp/said
ethtool -i ib0 | grep '^driver: ib_ipoib'
mv --force /root/hidden "$module"
ibctl driver use batch --now
ethtool -i ib0 | grep '^driver: ipoib_batch'
"#;

const PURGE: &str = r#"
ip -brief link show | grep -c '^ib' > /tmp/count
apt-get purge --yes ibmgr ipoib-batch-dkms
# The interfaces outlive the packages.
ip -brief link show | grep -c '^ib' | diff - /tmp/count
if systemctl is-active ibmgrd.service; then exit 1; fi
if getent passwd ibmgr || getent group ibmgr; then exit 1; fi
rmmod ipoib_batch
modprobe ib_ipoib
ethtool -i ib0 | grep '^driver: ib_ipoib'
"#;

/// All files that were not there before the packages, without what any use of the machine leaves.
const LEFT: &str = r#"
find / -xdev | sort > /tmp/after
comm -13 /var/log/lab-before /tmp/after |
    grep -v -e '^/var/log/' -e '^/var/cache/' -e '^/var/lib/dpkg/' -e '^/var/lib/apt/' -e '^/var/lib/systemd/' -e '^/tmp' \
        -e '^/var/tmp' -e '^/run' -e '^/root/' -e '^/etc/.*-$' -e '^/var/backups' -e '^/var/lib/dbus' -e '^/boot/' \
        -e '^/etc/udev/hwdb.bin$' -e '^/dev/' -e '^/proc/' -e '^/var/lib/dkms/mok\.' -e '^/etc/machine-id' \
        -e '/\.updated$' -e '^/lost+found$' || true
grep -rl ibmgr /var/lib/systemd/deb-systemd-helper-enabled /etc/systemd 2>/dev/null || true
ls -d /run/ibmgr 2>/dev/null || true
"#;

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn blocks_of_pages_are_scripts() {
        assert_eq!(blocks("a\n```sh\nb\n```\n```text\nc\n```\n"), "set -x\nb\n");
        for (path, page) in PAGES {
            assert!(
                blocks(page).lines().count() > 3,
                "{path} has no commands to run"
            );
        }
    }
}
