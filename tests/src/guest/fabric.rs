// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Brings a fabric up: virtual HCAs, and a subnet manager when one is wanted.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::process;
use super::vhca::Vhca;
use super::{Fabric, Guest, Result};

/// How long ports may take to become ACTIVE.
const ACTIVE_LIMIT: Duration = Duration::from_secs(30);

/// Where opensm finds its partitions.
const PARTITIONS: &str = "/etc/opensm/partitions.conf";

/// Where opensm finds its settings.
const SETTINGS: &str = "/etc/opensm/opensm.conf";

/// Where opensm logs.
pub const OPENSM_LOG: &str = "/var/log/opensm.log";

/// Partitions that every port is a full member of: the default one, and the three that vhca's
/// managed mode has, too. MTU 4 is 2048 bytes, what the ports have.
pub const BASE_PARTITIONS: &str = "\
Default=0x7fff, ipoib, mtu=4 : ALL=full, SELF=full ;
one=0x0001, ipoib, mtu=4 : ALL=full ;
two=0x0002, ipoib, mtu=4 : ALL=full ;
three=0x0003, ipoib, mtu=4 : ALL=full ;
";

/// Brings up what a task asked for and waits until every port is ACTIVE.
///
/// # Errors
///
/// When a module or opensm doesn't start, or a port doesn't come up.
pub fn start(guest: &Guest, fabric: Fabric, hcas: u32) -> Result {
    match fabric {
        Fabric::None => return Ok(()),
        Fabric::Managed => guest.load(&format!("vhca hcas={hcas} managed=1"))?,
        Fabric::OpenSm => {
            guest.load(&format!("vhca hcas={hcas} managed=0"))?;
            // Subnet management goes through user-space MADs.
            guest.load("ib_umad")?;
            start_opensm(BASE_PARTITIONS)?;
        }
    }
    for index in 0..hcas {
        let hca = Vhca::new(index);
        let what = format!("ACTIVE port on {}", hca.name());
        guest.wait_for(&what, ACTIVE_LIMIT, || {
            let state = hca.port_state()?;
            ensure!(state == "4: ACTIVE", "{} is {state}", hca.name());
            Ok(Some(()))
        })?;
    }
    Ok(())
}

/// Starts opensm as a daemon on the first HCA.
///
/// # Errors
///
/// When it can't be started.
pub fn start_opensm(partitions: &str) -> Result {
    fs::create_dir_all("/etc/opensm")?;
    fs::write(PARTITIONS, partitions)?;
    let settings = "force_log_flush TRUE\nsweep_interval 10\n";
    fs::write(SETTINGS, settings)?;
    let line = format!("opensm -B -F {SETTINGS} -P {PARTITIONS} -f {OPENSM_LOG}");
    let output = process::run(&line, Duration::from_secs(20))?;
    output.success().context("opensm doesn't start")?;
    Ok(())
}

/// Kills every opensm, which gets no chance to say goodbye.
///
/// # Errors
///
/// When none runs, or one can't be killed.
pub fn kill_opensm() -> Result {
    let mut killed = 0;
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let id = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        // A process that is gone has no name any more.
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if let (Some(id), "opensm") = (id, name.trim()) {
            kill(Pid::from_raw(id), Signal::SIGKILL)?;
            killed += 1;
        }
    }
    ensure!(killed > 0, "no opensm runs");
    Ok(())
}
