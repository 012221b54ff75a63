// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `cargo lab demo` and `cargo lab shell` run in the machine.

use std::process::Command;
use std::time::Duration;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::netns::Netns;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The demo and the shell.
pub const TASKS: &[Task] = &[
    Task::new(
        "demo",
        "two HCAs, two namespaces, ibctl on a real ib0",
        demo,
    )
    .fabric(Fabric::Managed, 2),
    Task::new("shell", "an interactive shell", shell).fabric(Fabric::Managed, 2),
];

/// Time limit of one command of the demo.
const LIMIT: Duration = Duration::from_secs(30);

/// Shows commands with what they print, and fails when one does what it shouldn't.
struct Show<'a> {
    guest: &'a Guest,
    ns: Netns,
}

impl Show<'_> {
    fn title(&self, text: &str) {
        self.guest.say(format!("\n# {text}"));
    }

    /// Runs a command that must succeed and print `wanted`.
    fn run(&self, line: &str, wanted: &str) -> Result {
        let output = self.ns.attempt(line, LIMIT)?;
        self.guest
            .say(self.shown(line, &output.stdout, &output.stderr));
        let text = output.success()?;
        self.guest.contains(line, &text, wanted)
    }

    /// Runs a command that must be refused with a message that has `wanted` in it.
    fn refused(&self, line: &str, wanted: &str) -> Result {
        let output = self.ns.attempt(line, LIMIT)?;
        let code = output.status.code().unwrap_or_default();
        let shown = self.shown(line, &output.stdout, &output.stderr);
        self.guest.say(format!("{shown}\n(exit code {code})"));
        let text = output.refused()?;
        self.guest.contains(line, &text, wanted)
    }

    fn shown(&self, line: &str, stdout: &str, stderr: &str) -> String {
        format!("{}:~# {line}\n{stdout}{stderr}", self.ns.name())
            .trim_end()
            .to_owned()
    }
}

fn demo(guest: &mut Guest) -> Result {
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let a = Show {
        guest,
        ns: pair.a.ns.clone(),
    };
    let b = Show {
        guest,
        ns: pair.b.ns.clone(),
    };
    a.title("Two software HCAs on a virtual switch, seen by the stock tools");
    a.run("ibv_devinfo -d vhca0", "PORT_ACTIVE")?;
    a.title("ib0 on the first, in namespace a; ib1 on the second, in namespace b");
    a.run("ibctl show", "ib0")?;
    b.run("ibctl show", "ib1")?;
    a.run(
        "ibctl get ib0 state mode mtu umcast txqueuelen alias",
        "datagram",
    )?;
    a.title("Change several knobs at once: planned, applied, read back");
    a.run(
        "ibctl set ib0 mtu=65520 mode=connected txqueuelen=512",
        "changed",
    )?;
    b.run("ibctl set ib1 mtu=65520 mode=connected", "changed")?;
    a.run("ibctl set ib0 mode=connected", "already")?;
    a.title("The kernel's own tools agree");
    a.run("ip -d link show ib0", "mtu 65520")?;
    pair.wait_ready(guest)?;
    a.run("ping -n -c 3 -i 0.2 -s 60000 10.9.0.2", "3 received")?;
    a.title("A bad value is refused, and nothing changes");
    a.refused("ibctl set ib0 txqueuelen=256 mtu=99999999", "mtu")?;
    a.refused("ibctl set ib0 mode=fast", "mode")?;
    a.refused("ibctl set ib7 mtu=2044", "ib7")?;
    a.run("ibctl get ib0 mode mtu txqueuelen", "512")?;
    a.title("What a knob is, and whether this device takes it");
    a.run("ibctl explain gro-flush-timeout ib0", "gro-flush-timeout")
}

fn shell(guest: &mut Guest) -> Result {
    for module in ["ib_umad", "ib_uverbs"] {
        guest.load(module)?;
    }
    let pair = Pair::stock(guest, Mode::Datagram)?;
    let note = format!(
        "\nTwo HCAs, vhca0 and vhca1; ib0 is in namespace a ({}), ib1 in b ({}).\n\
         Try: ip netns exec a ibctl show ib0 · ip netns exec a ping {} · ibstat · \
         ls /sys/kernel/debug/vhca/vhca0\n",
        pair.a.v4, pair.b.v4, pair.b.v4
    );
    guest.write("/dev/ttyS0", &note)?;
    let mut command = Command::new("/usr/bin/bash");
    command
        .args(["--norc", "-i"])
        .env("PS1", "lab:\\w# ")
        .status()?;
    Ok(())
}
