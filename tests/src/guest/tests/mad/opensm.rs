// SPDX-License-Identifier: Apache-2.0 OR MIT
//! opensm manages the fabric: it finds it, keeps it, and has nothing to complain about.

use std::time::Duration;

use anyhow::ensure;

use super::port_hex;
use crate::guest::fabric::BASE_PARTITIONS;
use crate::guest::fabric::OPENSM_LOG;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "mad.opensm_finds_16",
        "opensm brings 16 HCAs up without an error",
        finds_16,
    )
    .fabric(Fabric::OpenSm, 16),
    Task::new(
        "mad.opensm_hears_traps",
        "a port that lost its link is ACTIVE again long before the next sweep",
        hears_traps,
    )
    .fabric(Fabric::OpenSm, 3),
    Task::new(
        "mad.opensm_restart",
        "a killed opensm finds its fabric again, and nothing goes down",
        restart,
    )
    .fabric(Fabric::OpenSm, 2),
    Task::new(
        "mad.opensm_partitions",
        "P_Key tables are those of the partitions file",
        partitions,
    )
    .fabric(Fabric::None, 2),
];

/// opensm sweeps each 10 s by itself: what happens sooner, a trap has caused.
const BY_TRAP: Duration = Duration::from_secs(5);

/// Fails when opensm logged an error.
fn log_is_clean(guest: &Guest) -> Result {
    let log = guest.read(OPENSM_LOG)?;
    guest.keep("opensm.log", log.as_bytes());
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERR ")).collect();
    ensure!(
        errors.is_empty(),
        "opensm has errors:\n{}",
        errors.join("\n")
    );
    guest.contains("opensm's log", &log, "Entering MASTER state")
}

fn wait_active(guest: &Guest, hcas: u32, limit: Duration) -> Result {
    for hca in 0..hcas {
        guest.wait_for("ACTIVE port", limit, || {
            let state = guest.vhca(hca).port_state()?;
            ensure!(state == "4: ACTIVE", "vhca{hca} is {state}");
            Ok(Some(()))
        })?;
    }
    Ok(())
}

fn finds_16(guest: &mut Guest) -> Result {
    let net = guest.run("ibnetdiscover")?;
    guest.same("HCAs found", net.matches("\nCa\t1 ").count(), 16)?;
    let mut lids = (0..16)
        .map(|hca| port_hex(guest, hca, "lid"))
        .collect::<Result<Vec<_>>>()?;
    lids.sort_unstable();
    lids.dedup();
    guest.same("different LIDs", lids.len(), 16)?;
    log_is_clean(guest)
}

fn hears_traps(guest: &mut Guest) -> Result {
    let hca = guest.vhca(2);
    wait_idle(guest)?;
    for _ in 0..3 {
        hca.fault("port", "down")?;
        guest.same("without a link", hca.port_state()?.as_str(), "1: DOWN")?;
        hca.fault("port", "up")?;
        wait_active(guest, 3, BY_TRAP)?;
        wait_idle(guest)?;
    }
    log_is_clean(guest)
}

/// Waits until opensm is done with its sweeps. It complains, and rightly, when a link that it is
/// about to activate goes down again.
fn wait_idle(guest: &Guest) -> Result {
    let mut before = String::new();
    guest.wait_for("idle opensm", Duration::from_secs(20), || {
        let log = guest.read(OPENSM_LOG)?;
        let idle = log == before;
        before = log;
        std::thread::sleep(Duration::from_secs(1));
        Ok(idle.then_some(()))
    })
}

fn restart(guest: &mut Guest) -> Result {
    let lids = [port_hex(guest, 0, "lid")?, port_hex(guest, 1, "lid")?];
    let downs = "/sys/class/infiniband/vhca1/ports/1/counters/link_downed";
    let before = guest.read(downs)?;
    for signal in ["-TERM", "-KILL"] {
        guest.run(&format!("killall {signal} opensm"))?;
        guest.wait_for("end of opensm", Duration::from_secs(20), || {
            let gone = guest.attempt("pidof opensm")?.success().is_err();
            Ok(gone.then_some(()))
        })?;
        for hca in [0, 1] {
            let state = guest.vhca(hca).port_state()?;
            guest.same("state without opensm", state.as_str(), "4: ACTIVE")?;
        }
        guest.attempt(&format!("rm -f {OPENSM_LOG}"))?.success()?;
        guest.start_opensm(BASE_PARTITIONS)?;
        guest.wait_for("the new master", Duration::from_secs(20), || {
            let text = guest.run("sminfo")?;
            Ok(text.contains("SMINFO_MASTER").then_some(()))
        })?;
        wait_active(guest, 2, BY_TRAP)?;
        log_is_clean(guest)?;
    }
    let now = [port_hex(guest, 0, "lid")?, port_hex(guest, 1, "lid")?];
    guest.same("LIDs", now, lids)?;
    guest.same("links that went down", guest.read(downs)?, before)
}

fn partitions(guest: &mut Guest) -> Result {
    guest.load("vhca hcas=3 managed=0")?;
    guest.load("ib_umad")?;
    let guid = |hca: u32| -> Result<String> {
        let gid = guest.read(format!("/sys/class/infiniband/vhca{hca}/ports/1/gids/0"))?;
        let octets = gid.parse::<std::net::Ipv6Addr>()?.octets();
        let digits: Vec<String> = octets[8..].iter().map(|o| format!("{o:02x}")).collect();
        Ok(format!("0x{}", digits.concat()))
    };
    let second = format!(
        "Default=0x7fff, ipoib, mtu=4 : ALL=full, SELF=full ;\n\
         Second=0x0005, ipoib, mtu=4 : {}=full, {}=limited ;\n",
        guid(0)?,
        guid(1)?
    );
    guest.start_opensm(&second)?;
    wait_active(guest, 3, Duration::from_secs(20))?;
    for (hca, wanted) in [(0, Some(0x8005)), (1, Some(0x0005)), (2, None)] {
        guest.wait_for("P_Key table", BY_TRAP, || {
            let table = (0..8)
                .map(|index| port_hex(guest, hca, &format!("pkeys/{index}")))
                .collect::<Result<Vec<_>>>()?;
            let found = table.iter().copied().find(|pkey| pkey & 0x7fff == 5);
            ensure!(
                table[0] == 0xffff && found == wanted,
                "vhca{hca} has {table:#06x?}, wanted {wanted:#06x?}"
            );
            Ok(Some(()))
        })?;
    }
    // opensm shows a group to members of its partition, once it has heard that their tables are set.
    // Without `-C`, the tool asks from the first port that sysfs lists, in an order that changes with
    // each boot: that of hashes of names and of the address of the network namespace.
    guest.wait_for("group of the partition", BY_TRAP, || {
        let groups = guest.run("saquery -C vhca0 -g")?;
        guest.contains("the groups", &groups, "ff12:401b:8005::ffff:ffff")?;
        Ok(Some(()))
    })?;
    log_is_clean(guest)
}
