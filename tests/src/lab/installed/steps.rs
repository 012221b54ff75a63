// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is typed in the machine, step by step.

/// Before the first boot: DKMS builds natively in seconds what would take minutes in a machine without
/// hardware help. The new driver is kept as an archive of binaries, DKMS's own way to carry them to
/// another host; the old one is built and stays. `state` writes down what the purge has to bring back.
pub(super) const INSTALL: &str = r#"
mkdir /root/old /root/new
mv /root/*_0.0.9*.deb /root/old
mv /root/*.deb /root/new
cat > /root/state <<'END'
find / -xdev | sort > "$1/files"
find /etc -xdev -type f -exec sha256sum {} + | sort -k 2 > "$1/etc"
getent passwd | sort > "$1/users"
getent group | sort > "$1/groups"
systemctl --root=/ list-unit-files --no-pager --no-legend | awk '{ print $1 }' | sort > "$1/units"
END
mkdir /root/before
bash -eux /root/state /root/before
apt-get install --yes --no-install-recommends /root/new/ipoib-batch-dkms_*.deb
version=$(dpkg-query --show --showformat '${Version}' ipoib-batch-dkms)
dkms mktarball -m ipoib-batch -v "$version" -k "$1" --binaries-only --archive "/root/new/ipoib-batch-$version.dkms.tar.gz"
apt-get purge --yes ipoib-batch-dkms
apt-get install --yes --no-install-recommends /root/old/ipoib-batch-dkms_*.deb
dkms status | tee /root/old/status
grep -c installed /root/old/status
"#;

/// What the pages of the guides declared goes.
pub(super) const TIDY: &str = "rm -f /etc/ibmgr/conf.d/50-present.toml /etc/ibmgr/conf.d/40-alias.toml; ibctl driver use batch; systemctl reload ibmgrd";

/// The unit runs as it is written: active, not root, two capabilities, its socket, and not in the way of others.
pub(super) const RUNNING: &str = r#"
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
pub(super) const ACCESS: &str = r#"
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
pub(super) const CHOOSE: &str = r#"
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
pub(super) const DECLARED: &str = r#"
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

pub(super) const DRIFT: &str = r#"
ip link set ib0 txqueuelen 100
for tenth in $(seq 100); do
    if [ "$(cat /sys/class/net/ib0/tx_queue_len)" = 600 ]; then break; fi
    sleep 0.1
done
test "$(cat /sys/class/net/ib0/tx_queue_len)" = 600
journalctl --boot --unit ibmgrd --quiet --grep txqueuelen | tail -3
"#;

/// New versions replace the daemon and the driver's source; the interfaces, their carriers and the files are
/// the same after it. The module that is loaded stays until somebody switches or reboots.
pub(super) const UPGRADE: &str = r#"
cd /root/new
same() {
    for link in ib0 ib1 ib0.8001 ib1.8001; do
        cat /sys/class/net/$link/{ifindex,address,carrier,carrier_changes,operstate,mtu,tx_queue_len}
    done
    sha256sum /etc/ibmgr/conf.d/* /etc/modprobe.d/ibmgr-driver.conf
}
same > /tmp/before
loaded=$(stat -c %i /sys/module/ipoib_batch)
old=$(systemctl show -P MainPID ibmgrd.service)
install -Dm644 --target-directory /usr/share/ipoib-batch-dkms ipoib-batch-*.dkms.tar.gz
ip monitor link > /tmp/events & monitor=$!
# Who asks meanwhile gets an answer: the socket is the same one, and keeps them until the new daemon is there.
entered=$(systemctl show -P ActiveEnterTimestampMonotonic ibmgrd.socket)
while sleep 0.2; do
    curl --silent --show-error --fail --max-time 60 --unix-socket /run/ibmgr/http.sock http://localhost/v1/status >/dev/null || echo "status $?"
done > /tmp/asked 2>&1 & asking=$!
apt-get install --yes ./ibmgr_*.deb ./ipoib-batch-dkms_*.deb
kill $monitor $asking
same > /tmp/after
diff /tmp/before /tmp/after
if grep -q 'state DOWN\|Deleted' /tmp/events; then cat /tmp/events; exit 1; fi
if grep . /tmp/asked; then exit 1; fi
test "$(systemctl show -P ActiveEnterTimestampMonotonic ibmgrd.socket)" = "$entered"
rm -r /usr/share/ipoib-batch-dkms
test "$(systemctl show -P MainPID ibmgrd.service)" != "$old"
test "$(stat -c %i /sys/module/ipoib_batch)" = "$loaded"
systemctl is-active ibmgrd.service ibmgrd.socket
curl --silent --show-error --fail --unix-socket /run/ibmgr/http.sock http://localhost/v1/status >/dev/null
version=$(dpkg-query --show --showformat '${Version}' ipoib-batch-dkms)
dkms status
dkms status | grep -F "ipoib-batch/$version" | grep ': installed'
if dkms status | grep -F 0.0.9; then exit 1; fi
ls /usr/src
if ls -d /usr/src/ipoib-batch-0.0.9*; then exit 1; fi
modinfo -F filename ipoib_batch
"#;

pub(super) const SWITCH: &str = r#"
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

/// udev loads the chosen driver for a port by itself, also where rdma-core does not.
pub(super) const HOTPLUG: &str = r#"
modprobe -r ipoib_batch
test ! -e /sys/class/net/ib0
udevadm trigger --settle --action=add --subsystem-match=infiniband
test -e /sys/class/net/ib0
"#;

/// A module that can't be loaded: whoever loads IPoIB gets the stock driver, and a switch goes back by itself.
pub(super) const FALLBACK: &str = r#"
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

pub(super) const PURGE: &str = r#"
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

/// Everything that is not as before the packages, without what any use of the machine leaves.
pub(super) const LEFT: &str = r#"
mkdir /tmp/now
bash -eu /root/state /tmp/now
cd /tmp/now
comm -13 /root/before/files files |
    grep -v -e '^/var/log/' -e '^/var/cache/' -e '^/var/lib/dpkg/' -e '^/var/lib/apt/' -e '^/var/lib/systemd/' -e '^/tmp' \
        -e '^/var/tmp' -e '^/run' -e '^/root/' -e '^/etc/.*-$' -e '^/var/backups' -e '^/var/lib/dbus' -e '^/boot/' \
        -e '^/etc/udev/hwdb.bin$' -e '^/dev/' -e '^/proc/' -e '^/var/lib/dkms/mok\.' -e '^/etc/machine-id' \
        -e '/\.updated$' -e '^/lost+found$' || true
comm -23 /root/before/files files | grep -v -e '^/tmp' -e '^/run' -e '^/dev/' -e '^/proc/' -e '^/var/cache/' -e '^/root/.install$' \
    -e '^/var/lib/apt/' -e '^/var/lib/dpkg/' || true
diff <(grep -v -e '-$' /root/before/etc) <(grep -v -e '-$' etc) | grep '^[<>]' | grep -v -e '/etc/machine-id' -e '\.updated$' -e 'resolv.conf$' || true
diff /root/before/users users || true
diff /root/before/groups groups || true
diff /root/before/units units || true
grep -rl ibmgr /var/lib/systemd/deb-systemd-helper-enabled /etc/systemd 2>/dev/null || true
ls -d /run/ibmgr /var/lib/ibmgr 2>/dev/null || true
"#;
