// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `driver`: which IPoIB driver owns each port and why, and switching, with a plan and a way back.

mod switch;

use std::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ibmgr_api::{DriverChoice, DriverModule, Drivers, Link, ModuleSignature, PortOwner};
use ibmgrd_engine::{Host, Query};
use ibmgrd_hw::ports::{self, Port};

use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain};
use crate::write_json;

pub(crate) use switch::{Wish, choose};

/// The file that makes a choice, and all that it says.
const FILE: &str = "etc/modprobe.d/ibmgr-driver.conf";
const BATCH: &str = include_str!("../../../packaging/modprobe.d/batch.conf");

/// Prints the ports with their drivers, and what is chosen.
pub(crate) fn status<P: Host>(
    host: &mut P,
    root: &Path,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let drivers = look(&links(host)?, root);
    if format == Format::Json {
        return write_json(out, &drivers);
    }
    let mut table = Table::default();
    if drivers.ports.is_empty() {
        table.line("no InfiniBand port");
    } else {
        table.row(["PORT", "STATE", "LINK", "DRIVER", "WHY"].map(Cow::from));
    }
    for port in &drivers.ports {
        let link = port.link.as_deref().map_or("-".into(), plain);
        let driver = port.driver.as_deref().unwrap_or("-");
        table.row([
            format!("{}/{}", plain(&port.hca), port.port).into(),
            port.state.as_str().into(),
            link,
            driver.into(),
            port.why.as_str().into(),
        ]);
    }
    table.write(out)?;
    let mut facts = Table::default();
    facts.line("");
    let file = drivers.choice_file.as_deref();
    let by = file.map_or("no file says otherwise".to_owned(), |file| {
        format!("by {file}")
    });
    facts.row(["chosen".into(), format!("{}, {by}", drivers.choice).into()]);
    for module in &drivers.modules {
        facts.row([
            module.name.into(),
            described(module, &drivers.kernel).into(),
        ]);
    }
    facts.row(["signature".into(), drivers.signature.verdict.clone().into()]);
    Ok(facts.write(out)?)
}

fn described(module: &DriverModule, kernel: &str) -> String {
    let installed = if module.is_installed {
        format!("installed for {kernel}")
    } else {
        format!("not installed for {kernel}")
    };
    let loaded = if module.is_loaded {
        "loaded"
    } else {
        "not loaded"
    };
    format!("{installed}, {loaded}")
}

/// Returns all interfaces, without knobs.
fn links<P: Host>(host: &mut P) -> Result<Vec<Link>, Error> {
    Ok(host.observe_all(&Query::named(Vec::new()))?)
}

/// Finds everything out.
fn look(links: &[Link], root: &Path) -> Drivers {
    let modules = DriverChoice::ALL.map(|driver| ports::module(root, driver));
    let text = fs::read_to_string(root.join(FILE)).ok();
    // Somebody may have written it by hand: what counts is what modprobe makes of it.
    let chooses = |text: &String| {
        let lines = text.lines().map(str::trim_start);
        lines
            .into_iter()
            .any(|line| line.starts_with("install ib_ipoib") && line.contains("ipoib_batch"))
    };
    let choice = match text.as_ref().map(chooses) {
        Some(true) => DriverChoice::Batch,
        Some(false) | None => DriverChoice::Stock,
    };
    let signature = signature(root, &modules);
    let context = Context {
        choice,
        modules: &modules,
        signature: &signature,
        hcas: ports::parameter(root, DriverChoice::Batch.module(), "hcas"),
    };
    let ports = ports::ports(root);
    let ports = ports
        .iter()
        .map(|port| owner(port, links, &context))
        .collect();
    Drivers {
        choice,
        choice_file: text.map(|_| format!("/{FILE}")),
        kernel: ports::kernel_release(root),
        modules: modules.to_vec(),
        signature,
        ports,
    }
}

struct Context<'a> {
    choice: DriverChoice,
    modules: &'a [DriverModule; 2],
    signature: &'a ModuleSignature,
    hcas: Option<String>,
}

fn owner(port: &Port, links: &[Link], context: &Context<'_>) -> PortOwner {
    let is_here = |link: &&Link| link.is_ipoib() && port.guid.is_some() && link.guid() == port.guid;
    let ours: Vec<&Link> = links.iter().filter(is_here).collect();
    // A bond has the address of the interface below it, and another driver.
    let of_driver = |link: &&&Link| link.parent.is_none() && link.device_path.is_some();
    let link = ours
        .iter()
        .find(of_driver)
        .or(ours.iter().find(|link| link.parent.is_none()));
    let children = ours.iter().filter(|link| link.is_child());
    let driver = link.and_then(|link| link.driver.clone());
    let why = why(driver.as_deref(), context);
    PortOwner {
        hca: port.hca.clone(),
        port: port.number,
        state: port.state.clone(),
        link: link.map(|link| link.name.to_string()),
        children: children.map(|link| link.name.to_string()).collect(),
        driver,
        why,
    }
}

/// Says why a port has the driver that it has.
fn why(driver: Option<&str>, context: &Context<'_>) -> String {
    let [stock, batch] = context.modules;
    let (is_stock, is_batch) = driver.map_or((false, false), |driver| {
        (driver.contains("ib_ipoib"), driver == batch.name)
    });
    match (context.choice, is_stock, is_batch) {
        (DriverChoice::Batch, _, true) => format!("chosen in /{FILE}"),
        (DriverChoice::Stock, true, _) => "the kernel's own; nothing else is chosen".to_owned(),
        (DriverChoice::Stock, _, true) => {
            "loaded by name, or before stock was chosen; the next boot brings ib_ipoib".to_owned()
        }
        (DriverChoice::Batch, true, _) if batch.is_loaded => match &context.hcas {
            Some(hcas) if !hcas.is_empty() => {
                format!("ipoib_batch was told to take others only: hcas={hcas}")
            }
            _ => "ib_ipoib was there first; 'ibctl driver use batch --now' switches".to_owned(),
        },
        (DriverChoice::Batch, true, _) if !batch.is_installed => {
            "batch is chosen, but not built for this kernel: see 'dkms status'".to_owned()
        }
        (DriverChoice::Batch, true, _) if context.signature.is_refused() => {
            "batch is chosen, but this kernel refuses its signature".to_owned()
        }
        (DriverChoice::Batch, true, _) => {
            "loaded before batch was chosen; the next boot brings ipoib_batch".to_owned()
        }
        (_, false, false) if driver.is_some() => "a driver that ibmgr does not know".to_owned(),
        (_, false, false) if !stock.is_loaded && !batch.is_loaded => {
            "no IPoIB driver is loaded: modprobe ib_ipoib".to_owned()
        }
        (_, false, false) => "the driver has not taken this port: see the kernel log".to_owned(),
    }
}

trait Refused {
    fn is_refused(&self) -> bool;
}

impl Refused for ModuleSignature {
    /// Says whether the kernel is known to refuse the batching driver.
    fn is_refused(&self) -> bool {
        self.is_required && (self.signer.is_none() || self.is_known == Some(false))
    }
}

fn signature(root: &Path, modules: &[DriverModule; 2]) -> ModuleSignature {
    let secure_boot = ports::secure_boot(root);
    let is_required = ports::needs_signature(root);
    let [_, batch] = modules;
    let signer = batch.is_installed.then(signer).flatten();
    let is_known = signer
        .as_ref()
        .and_then(|signer| ports::knows_key(root, signer));
    let boot = match secure_boot {
        Some(true) => "Secure Boot is on",
        Some(false) => "Secure Boot is off",
        None => "no Secure Boot",
    };
    let verdict = match (is_required, &signer, is_known) {
        (false, _, _) => format!("not needed ({boot})"),
        (true, None, _) if !batch.is_installed => {
            format!("needed ({boot}); DKMS signs ipoib_batch when it builds it")
        }
        (true, None, _) => format!(
            "needed ({boot}), and ipoib_batch has none: have DKMS sign it (mok_signing_key in \
             /etc/dkms/framework.conf), then 'dkms install --force'"
        ),
        (true, Some(signer), Some(true)) => {
            format!("needed ({boot}), and there: '{signer}', a key that the kernel knows")
        }
        (true, Some(signer), Some(false)) => format!(
            "needed ({boot}), and '{signer}' is not a key that the kernel knows: \
             'mokutil --import /var/lib/dkms/mok.pub', reboot, and enrol it in the firmware's menu"
        ),
        (true, Some(signer), None) => {
            format!(
                "needed ({boot}); signed by '{signer}'; root sees whether the kernel knows that key"
            )
        }
    };
    ModuleSignature {
        secure_boot,
        is_required,
        signer,
        is_known,
        verdict,
    }
}

/// Asks modinfo(8) who signed the batching driver.
fn signer() -> Option<String> {
    let mut modinfo = Command::new("/sbin/modinfo");
    modinfo.args(["--field", "signer", DriverChoice::Batch.module()]);
    let output = modinfo
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
