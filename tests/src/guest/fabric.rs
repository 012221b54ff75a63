// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Brings a fabric up: virtual HCAs, and a subnet manager when one is wanted.

use std::fs;
use std::time::Duration;

use anyhow::Context;

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

/// The default partition: every port a full member, IPoIB with a 4096-byte MTU.
const DEFAULT_PARTITION: &str = "Default=0x7fff, ipoib, mtu=5 : ALL=full, SELF=full ;\n";

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
            start_opensm("")?;
        }
    }
    for index in 0..hcas {
        let hca = Vhca::new(index);
        let what = format!("ACTIVE port on {}", hca.name());
        guest.wait_for(&what, ACTIVE_LIMIT, || {
            let state = hca.port_state()?;
            anyhow::ensure!(state == "4: ACTIVE", "{} is {state}", hca.name());
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
    fs::write(PARTITIONS, format!("{DEFAULT_PARTITION}{partitions}"))?;
    let settings = "force_log_flush TRUE\nsweep_interval 10\n";
    fs::write(SETTINGS, settings)?;
    let line = format!("opensm -B -F {SETTINGS} -P {PARTITIONS} -f {OPENSM_LOG}");
    let output = process::run(&line, Duration::from_secs(20))?;
    output.success().context("opensm doesn't start")?;
    Ok(())
}
