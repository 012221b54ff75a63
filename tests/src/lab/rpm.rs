// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `.rpm` files, led through installing, verifying, upgrading and removing by rpm itself.
//!
//! The lab has no RPM distribution, so this happens in a copy of a Debian root: rpm runs the scripts of the
//! packages there, with systemd's and DKMS's programs; only the names of what they depend on are not asked for.

use std::fs;

use anyhow::Result;

use super::dist::{Kinds, Version};
use super::jobs::Room;

/// Leads the packages through their life.
///
/// # Errors
///
/// The command that failed, with what it printed.
pub fn life(room: &Room) -> Result<()> {
    let new = Version::of_commit()?;
    let before = room.pack(&new.older(), Kinds::Rpm, "old")?;
    let now = room.pack(&new, Kinds::Rpm, "new")?;
    let chroot = room.workshop.chroot();
    let chroot = chroot.bind(&before.dir, "old").bind(&now.dir, "new");
    let text = chroot.script(COPY, &[LIFE, room.workshop.kernel()])?;
    fs::write(room.dir.join("life.txt"), text)?;
    Ok(())
}

/// Enters a copy of the root that can be written to. Arguments: the script, kernel.
const COPY: &str = r#"
mkdir /tmp/upper /tmp/work /tmp/copy
mount -t overlay overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work /tmp/copy
mount --rbind /dev /tmp/copy/dev
mount -t proc proc /tmp/copy/proc
mount --rbind /mnt /tmp/copy/mnt
exec chroot /tmp/copy bash -euxo pipefail -c "$1" life "$2" 2>&1
"#;

const LIFE: &str = r#"
kernel=$1
state() {
    find / -xdev -not -path '/tmp/*' -not -path '/var/lib/rpm*' -not -path '/var/lib/dkms*' | sort > /tmp/$1
    systemctl --root=/ list-unit-files --no-pager --no-legend | sort >> /tmp/$1
}
# The first call makes the database.
rpm --query --all
state before
rpm --install --nodeps /mnt/old/*.rpm
rpm --query --all
rpm --verify --nodeps ibmgr ipoib-batch-dkms
getent passwd ibmgr
getent group ibmgr
test "$(systemctl --root=/ is-enabled ibmgrd.service ibmgrd.socket | sort -u)" = enabled
test "$(stat -c '%U %a' /run/ibmgr)" = 'ibmgr 755'
ibctl --version
ibctl show lo | grep ^lo
ibmgrd --version
printf '[[link]]\nmatch = { name = "ib0" }\nmtu = 2044\n' > /etc/ibmgr/conf.d/50-ib.toml
ibctl check
test "$(dkms status | grep -c '^ipoib-batch/0\.0\.9')" = 1

# The new version takes the place of the old one; what the administrator wrote and chose stays.
systemctl --root=/ disable ibmgrd.service
echo '# chosen' > /etc/modprobe.d/ibmgr-driver.conf
rpm --upgrade --nodeps /mnt/new/*.rpm
rpm --verify --nodeps ibmgr ipoib-batch-dkms
test "$(rpm --query --all | grep -c -e ^ibmgr -e ^ipoib)" = 2
test "$(systemctl --root=/ is-enabled ibmgrd.service || true)" = disabled
systemctl --root=/ enable ibmgrd.service
ibctl check
grep -q 'mtu = 2044' /etc/ibmgr/conf.d/50-ib.toml
test -e /etc/modprobe.d/ibmgr-driver.conf
dkms status
test "$(dkms status | grep -c '^ipoib-batch/')" = 1
test "$(ls -d /usr/src/ipoib-batch-* | wc -l)" = 1
# The scripts build for the kernel that runs, which is the host's here: build for one that is installed.
version=$(dkms status | sed -n 's,^ipoib-batch/\([^:, ]*\).*,\1,p')
dkms install -m ipoib-batch -v "$version" -k "$kernel"
modinfo -k "$kernel" ipoib_batch | grep "^vermagic: *$kernel "

rpm --erase --nodeps ibmgr ipoib-batch-dkms
test -s /etc/ibmgr/conf.d/50-ib.toml
rm -r /etc/ibmgr
test -z "$(dkms status)"
# Users stay, as in all packages of RPM: nobody else gets the number of one who may own files.
getent passwd ibmgr
state after
# Folders of every distribution that this root is without, and copies of the user database.
comm -3 /tmp/before /tmp/after | grep -v -e '/etc/[a-z]*-$' -e '/\.pwd\.lock$' -e '/usr/share/licenses$' -e '/usr/share/man/man[158]$' > /tmp/left || true
if grep . /tmp/left; then echo 'this is left'; exit 1; fi
"#;
