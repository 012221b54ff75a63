// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Debian machine as administrators have it: systemd, D-Bus, polkit, a disk that survives a reboot.
//!
//! Its disk is the workshop root, shared and read-only, below what was installed and changed. An agent in
//! it runs scripts that come over the second serial port and answers with their status and output.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::cache::{Cache, Item};
use super::chroot::{self, tail};
use super::initramfs;
use super::key::KeyMaker;
use super::modules::OWN;
use super::progress::{Step, say};
use super::roots::{self, Root};

/// How long a boot may take until the agent speaks.
const BOOT: Duration = Duration::from_secs(240);

/// How long a step may take; dpkg and apt take minutes on a busy host.
const STEP: Duration = Duration::from_secs(400);

/// What a machine is made of, ready to boot.
pub struct Disks {
    tools: Root,
    kernel: PathBuf,
    base: Item,
    dir: PathBuf,
}

/// A running machine. It is killed when this value goes.
pub struct Booted {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    dir: PathBuf,
    transcript: File,
    count: u32,
}

/// What a script did.
#[derive(Debug)]
pub struct Answer {
    /// Its exit status; 124 when its time was over.
    pub status: i32,
    /// What it printed, on either output.
    pub text: String,
}

impl Disks {
    /// Makes the disks of a machine in `dir`, with `files` from the host in `/root`. `install` runs as root inside, natively and before
    /// the first boot; it has no running services.
    ///
    /// # Errors
    ///
    /// When something can't be made; with what the tool said.
    pub fn make(
        cache: &Cache,
        workshop: &Root,
        dir: &Path,
        files: &[PathBuf],
        install: &str,
    ) -> Result<Self> {
        let base = base(cache, workshop)?;
        let vhca = OWN.iter().find(|module| module.name == "vhca");
        let vhca = vhca
            .context("no vhca among our modules")?
            .ensure(cache, workshop)?;
        let step = Step::begin("preparing a Debian machine (DKMS builds the driver)");
        let inside = dir.join("inside");
        initramfs::put(
            &inside,
            "vhca.ko",
            &fs::read(vhca.path().join("vhca.ko"))?,
            0o644,
        )?;
        initramfs::put(&inside, "agent", AGENT.as_bytes(), 0o755)?;
        initramfs::put(&inside, "agent.service", AGENT_UNIT.as_bytes(), 0o644)?;
        initramfs::put(&inside, "install", install.as_bytes(), 0o755)?;
        for file in files {
            let name = file.file_name().unwrap_or_default();
            fs::create_dir_all(inside.join("files"))?;
            fs::copy(file, inside.join("files").join(name))?;
        }
        let mut prepare = chroot::isolated("sh");
        prepare.args(["-euc", PREPARE, "lab-prepare"]);
        prepare.arg(workshop.path()).arg(dir).arg(workshop.kernel());
        let said = chroot::run(prepare, "preparing the machine's disk")?;
        fs::write(dir.join("prepare.txt"), said)?;
        let pack = workshop.chroot().bind(dir, "vm");
        pack.script(PACK, &[workshop.kernel()])?;
        for name in ["upper", "work", "merged", "inside", "initrd"] {
            fs::remove_dir_all(dir.join(name))?;
        }
        step.done();
        Ok(Self {
            tools: roots::TRIXIE.ensure(cache)?,
            kernel: workshop.vmlinuz(),
            base,
            dir: dir.to_owned(),
        })
    }

    /// Boots them and waits for the agent.
    ///
    /// # Errors
    ///
    /// When QEMU can't be started, or the machine does not come up; with the end of its console.
    pub fn boot(&self) -> Result<Booted> {
        let kernel = self
            .kernel
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let boot = self.kernel.parent().context("a kernel lies in a folder")?;
        let mut command = self
            .tools
            .chroot()
            .bind(&self.dir, "vm")
            .bind(boot, "boot")
            .bind(self.base.path(), "base")
            .command("/usr/bin/qemu-system-x86_64");
        command.args([
            "-machine",
            "q35",
            "-cpu",
            "max",
            "-accel",
            "tcg,thread=multi",
        ]);
        command.args([
            "-smp", "2", "-m", "2048", "-nic", "none", "-display", "none",
        ]);
        command.args([
            "-kernel",
            &format!("/mnt/boot/{kernel}"),
            "-initrd",
            "/mnt/vm/initrd.img",
        ]);
        command.args([
            "-append",
            "console=ttyS0 quiet loglevel=5 oops=panic panic=5 random.trust_cpu=on mitigations=off \
             net.ifnames=0 no_timer_check systemd.show_status=0 printk.devkmsg=on",
        ]);
        command.args([
            "-drive",
            "if=virtio,format=raw,readonly=on,file=/mnt/base/base.img",
        ]);
        command.args([
            "-drive",
            "if=virtio,format=raw,cache=unsafe,file=/mnt/vm/top.img",
        ]);
        command.args([
            "-monitor",
            "none",
            "-serial",
            "file:/mnt/vm/console.log",
            "-serial",
            "stdio",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(self.dir.join("qemu.log"))?);
        let mut child = command.spawn().context("can't start QEMU")?;
        let input = child.stdin.take().context("QEMU has no input")?;
        let output = child.stdout.take().context("QEMU has no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || listen(output, &sender));
        let mut booted = Booted {
            child,
            input,
            lines,
            dir: self.dir.clone(),
            transcript: File::create(self.dir.join("transcript.txt"))?,
            count: 0,
        };
        booted.wait_for_agent()?;
        Ok(booted)
    }
}

/// Returns the disk that all machines share.
fn base(cache: &Cache, workshop: &Root) -> Result<Item> {
    let key = KeyMaker::new()
        .add("format", "1")
        .add("root", workshop.key().to_string())
        .finish();
    cache.item("disk", "workshop", &key, |dir| {
        let step = Step::begin("making the disk of Debian machines");
        let chroot = workshop
            .chroot()
            .bind(workshop.path(), "root")
            .bind(dir, "out");
        chroot.script(
            "mke2fs -q -t ext4 -O ^has_journal -m 0 -d /mnt/root /mnt/out/base.img 5G",
            &[],
        )?;
        step.done();
        Ok(())
    })
}

impl Booted {
    /// Waits until the agent says that the machine is up; after a reboot, too.
    ///
    /// # Errors
    ///
    /// When it does not in time.
    pub fn wait_for_agent(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            let line = self.line(BOOT.saturating_sub(started.elapsed()))?;
            if line.starts_with("HELLO ") {
                say(&format!(
                    "    the machine is up after {:.0} s",
                    started.elapsed().as_secs_f64()
                ));
                return Ok(());
            }
        }
    }

    fn send(&mut self, script: &str, limit: Duration) -> Result<()> {
        self.count += 1;
        writeln!(self.transcript, "=== {}\n{script}", self.count)?;
        let seconds = limit.as_secs();
        writeln!(
            self.input,
            "{} {seconds} {}",
            self.count,
            STANDARD.encode(script)
        )?;
        self.input.flush()?;
        Ok(())
    }

    /// Runs a bash script in the machine.
    ///
    /// # Errors
    ///
    /// When no answer comes.
    pub fn ask(&mut self, script: &str, limit: Duration) -> Result<Answer> {
        self.send(script, limit)?;
        // The agent keeps the time; this one is for a machine that hangs.
        let end = Instant::now() + limit + Duration::from_secs(60);
        loop {
            let line = self.line(end.saturating_duration_since(Instant::now()))?;
            let words: Vec<&str> = line.trim().splitn(4, ' ').collect();
            let ["DONE", id, status, rest @ ..] = words.as_slice() else {
                continue;
            };
            ensure!(
                *id == self.count.to_string(),
                "the agent answered out of turn: {line}"
            );
            let bytes = STANDARD.decode(rest.first().unwrap_or(&""));
            let text =
                String::from_utf8_lossy(&bytes.context("the agent sent no base64")?).into_owned();
            let status = status.parse().context("the agent sent no status")?;
            writeln!(self.transcript, "{text}=== ended with {status}\n")?;
            return Ok(Answer { status, text });
        }
    }

    /// Runs a bash script that must succeed; each of its commands must.
    ///
    /// # Errors
    ///
    /// When it fails; with all that it printed.
    pub fn must(&mut self, what: &str, script: &str) -> Result<String> {
        let started = Instant::now();
        let answer = self.ask(&format!("set -euo pipefail\n{script}"), STEP)?;
        say(&format!(
            "    {what}: {:.0} s",
            started.elapsed().as_secs_f64()
        ));
        if answer.status != 0 {
            bail!(
                "{what}: status {}\n{}",
                answer.status,
                tail(&answer.text, 60)
            );
        }
        Ok(answer.text)
    }

    /// Reboots it, the way that an administrator does.
    ///
    /// # Errors
    ///
    /// When it does not come up again.
    pub fn reboot(&mut self) -> Result<()> {
        // Its answer may come or not: the agent is ended, too. Whichever it is, the next word is that of the next boot.
        self.send("systemctl --no-block reboot", STEP)?;
        self.wait_for_agent()
    }

    fn line(&self, limit: Duration) -> Result<String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(error) => {
                let what = match error {
                    RecvTimeoutError::Timeout => "the machine said nothing in time",
                    RecvTimeoutError::Disconnected => "the machine went away",
                };
                let console = fs::read(self.dir.join("console.log")).unwrap_or_default();
                let console = String::from_utf8_lossy(&console).replace('\r', "");
                bail!("{what}; end of its console:\n{}", tail(&console, 40))
            }
        }
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        // Killing unshare kills QEMU with it; both may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for name in ["initrd.img", "top.img"] {
            let _ = fs::remove_file(self.dir.join(name));
        }
    }
}

fn listen(output: ChildStdout, sender: &mpsc::Sender<String>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { break };
        if sender
            .send(String::from_utf8_lossy(&line).into_owned())
            .is_err()
        {
            break;
        }
    }
}

/// Runs in the machine: a line is a number, a time limit and a script; the answer is a line, too.
const AGENT: &str = r#"#!/bin/bash
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo HELLO $(cat /proc/sys/kernel/random/boot_id) >&3
while read -r id limit script <&3; do
    base64 -d <<<"$script" >/run/lab-script
    timeout --kill-after=5 "$limit" bash /run/lab-script >/run/lab-output 2>&1 </dev/null
    echo DONE "$id" $? "$(base64 -w0 /run/lab-output)" >&3
done
"#;

/// Started when the network is said to be online, so that this is a part of each boot.
const AGENT_UNIT: &str = "\
[Unit]
Description=Agent of the lab
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/sbin/lab-agent
Restart=no

[Install]
WantedBy=multi-user.target
";

/// Makes the changed part of the root in DIR/upper. Arguments: root, DIR, kernel.
const PREPARE: &str = r#"
root=$1 dir=$2 kernel=$3
cd "$dir"
mkdir upper work merged
mount -t overlay overlay -o "lowerdir=$root,upperdir=upper,workdir=work" merged
cp inside/agent merged/usr/local/sbin/lab-agent
cp inside/agent.service merged/etc/systemd/system/lab-agent.service
[ ! -d inside/files ] || cp -R inside/files/. merged/root/
install -Dm644 inside/vhca.ko "merged/lib/modules/$kernel/updates/vhca.ko"
echo vhca > merged/etc/modules-load.d/vhca.conf
# As rdma-core's own rules say of the HCAs that it knows: then it loads what InfiniBand ports want.
echo 'SUBSYSTEM=="infiniband", ENV{ID_RDMA_INFINIBAND}="1"' > merged/etc/udev/rules.d/76-vhca.rules
echo lab > merged/etc/hostname
: > merged/etc/fstab
# Manual pages are for those who read them here.
rm -f merged/etc/dpkg/dpkg.cfg.d/99mmdebstrap
cp inside/install merged/root/.install
mount --rbind /dev merged/dev
mount -t proc proc merged/proc
mount -t tmpfs tmpfs merged/run
mount -t tmpfs tmpfs merged/tmp
chroot merged /bin/sh -euxc '
    depmod "$1"
    systemd-machine-id-setup
    useradd --create-home alice
    systemctl enable lab-agent.service
    systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer man-db.timer fstrim.timer e2scrub_all.timer
    bash -eux /root/.install "$1"
    rm /root/.install
' prepare "$kernel" 2>&1 || { echo "the machine could not be prepared" >&2; exit 1; }
"#;

/// Makes the disk of changes, and the initramfs that joins both disks. Argument: kernel.
const PACK: &str = r#"
cd /mnt/vm
mkdir -p disk initrd/mod
mv upper disk/upper
mkdir disk/work
mke2fs -q -t ext4 -O ^has_journal -m 0 -d disk top.img 2G
mv disk/upper upper
rm -r disk
number=100
for module in virtio_pci virtio_blk ext4 overlay; do
    modprobe --set-version "$1" --show-depends "$module" | while read -r verb path _; do
        [ "$verb" = insmod ] || continue
        name=${path##*/}
        name=${name%%.ko*}
        ! ls initrd/mod | grep -q -- "-$name.ko$" || continue
        number=$((100 + $(ls initrd/mod | wc -l)))
        case $path in
            *.xz) xz -dc "$path" > "initrd/mod/$number-$name.ko" ;;
            *.zst) zstd -qdc "$path" > "initrd/mod/$number-$name.ko" ;;
            *) cp "$path" "initrd/mod/$number-$name.ko" ;;
        esac
    done
done
cp /usr/bin/busybox initrd/busybox
cat > initrd/init <<'END'
#!/busybox sh
b=/busybox
$b mkdir -p /proc /dev /base /top /new
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for module in /mod/*; do $b insmod $module; done
$b mount -t ext4 -o ro /dev/vda /base
$b mount -t ext4 /dev/vdb /top
$b mount -t overlay -o lowerdir=/base,upperdir=/top/upper,workdir=/top/work overlay /new
$b umount /proc
$b mount -o move /dev /new/dev
exec $b switch_root /new /lib/systemd/systemd
END
chmod 755 initrd/init
cd initrd
find . -mindepth 1 -print0 | cpio --null --create --format=newc --quiet | zstd -q -1 > ../initrd.img
"#;
