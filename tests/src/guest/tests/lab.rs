// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab proves itself: what a test relies on works, and failures are found.

use std::time::Duration;

use anyhow::ensure;

use crate::guest::dmesg::{self, Log};
use crate::guest::{Guest, Result, Task};
use crate::lab::machine::Shape;

/// The lab's own tests.
pub const TESTS: &[Task] = &[
    Task::new(
        "lab.netns_ping",
        "two namespaces talk over veth",
        netns_ping,
    ),
    Task::new(
        "lab.modules",
        "modules load with parameters and unload",
        modules,
    ),
    Task::new("lab.tools", "every tool of the machine starts", tools),
    Task::new("lab.kernel_log", "what is logged can be read", kernel_log),
    Task::new(
        "lab.checked_slabs",
        "the checked machine checks its slabs",
        checked_slabs,
    )
    .shape(Shape::CHECKED),
    Task::new("lab.panic_fails", "a panicking test fails", panic).must_fail("panicked"),
    Task::new("lab.hang_fails", "a hanging test is killed and fails", hang)
        .must_fail("not done after")
        .limit(3),
    Task::new(
        "lab.alarm_fails",
        "an alarm in the kernel log fails a test",
        alarm,
    )
    .must_fail("restrack: 3 objects leaked"),
    Task::new(
        "lab.crash_fails",
        "a kernel crash fails only the test that ran",
        crash,
    )
    .must_fail("sysrq triggered crash"),
];

fn netns_ping(guest: &mut Guest) -> Result {
    let (a, b) = (guest.netns("a")?, guest.netns("b")?);
    guest.run("ip link add va netns a type veth peer name vb netns b")?;
    for (ns, device, address) in [(&a, "va", "10.0.0.1/24"), (&b, "vb", "10.0.0.2/24")] {
        ns.run(&format!("ip addr add {address} dev {device}"))?;
        ns.run(&format!("ip link set {device} up"))?;
    }
    let text = a.run("ping -c 3 -i 0.1 -W 2 10.0.0.2")?;
    guest.contains("ping's summary", &text, "3 received")?;
    let refused = a
        .attempt("ping -c 1 -W 1 10.0.0.3", Duration::from_secs(10))?
        .refused()?;
    guest.contains("ping to nobody", &refused, "0 received")
}

fn modules(guest: &mut Guest) -> Result {
    ensure!(
        !guest.is_loaded("dummy")?,
        "dummy was loaded before the test"
    );
    guest.load("dummy numdummies=3")?;
    let links = guest.run("ip -br link show type dummy")?;
    guest.same("dummy links", links.lines().count(), 3)?;
    guest.unload("dummy")?;
    ensure!(!guest.is_loaded("dummy")?, "dummy is still loaded");
    guest.attempt("modprobe no_such_module")?.refused()?;
    guest.load("rdma_rxe")?;
    guest.load("ib_ipoib")
}

fn tools(guest: &mut Guest) -> Result {
    for line in [
        "ip -V",
        "ethtool --version",
        "ping -V",
        "iperf3 --version",
        "netperf -V",
        "tcpdump --version",
        "saquery --version",
        "ibstat --version",
        "tc -V",
        "ss -V",
        "bash --version",
        "zstd --version",
        "rdma -V",
        "ibv_devices",
        "awk BEGIN{}",
    ] {
        guest.run(line)?;
    }
    // opensm calls it an error to be asked for help.
    let help = guest.attempt("opensm --help")?.stdout;
    guest.contains("opensm's help", &help, "OpenSM")
}

fn kernel_log(guest: &mut Guest) -> Result {
    let mut log = Log::from_now()?;
    guest.write("/dev/kmsg", "lab: an ordinary line\n")?;
    guest.write("/dev/kmsg", "lab: another one\n")?;
    let records = log.read()?;
    let found: Vec<&str> = records.iter().map(|record| record.text.as_str()).collect();
    guest.same(
        "what was logged",
        found,
        vec!["lab: an ordinary line", "lab: another one"],
    )?;
    guest.same("alarms", dmesg::alarms(&records, &[]).len(), 0)
}

fn checked_slabs(guest: &mut Guest) -> Result {
    for slab in ["kmalloc-64", "kmalloc-4k", "skbuff_head_cache"] {
        for check in ["sanity_checks", "red_zone", "poison"] {
            let set = guest.read(format!("/sys/kernel/slab/{slab}/{check}"))?;
            guest.same(&format!("{check} of {slab}"), set.as_str(), "1")?;
        }
    }
    Ok(())
}

fn alarm(guest: &mut Guest) -> Result {
    guest.write("/dev/kmsg", "lab: restrack: 3 objects leaked\n")
}

fn hang(_: &mut Guest) -> Result {
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

fn crash(guest: &mut Guest) -> Result {
    guest.write("/proc/sysrq-trigger", "c")?;
    Ok(())
}

fn panic(_: &mut Guest) -> Result {
    let nothing: Option<u32> = None;
    #[expect(
        clippy::unwrap_used,
        reason = "this test shows that a panic is a failure"
    )]
    nothing.map(drop).unwrap();
    Ok(())
}
