// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choosing a driver: what is done, in which order, what drops, and how it is taken back.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ibmgr_api::{DriverChoice, Drivers, ErrorCode, Link};
use ibmgrd_engine::Host;
use nix::ifaddrs::getifaddrs;
use serde::Serialize;

use super::{BATCH, FILE, Refused as _, links, look};
use crate::cli::Format;
use crate::error::Error;
use crate::write_json;

/// How long interfaces may take to come anew.
const LIMIT: Duration = Duration::from_secs(20);

/// What was asked for.
pub(crate) struct Wish {
    pub(crate) choice: DriverChoice,
    pub(crate) now: bool,
    pub(crate) dry_run: bool,
}

/// What will be done, or was.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Switch {
    pub(super) driver: DriverChoice,
    pub(super) steps: Vec<String>,
    /// Interfaces that go away, each with its addresses and what stands on it.
    pub(super) drops: Vec<String>,
    pub(super) way_back: String,
    pub(super) is_done: bool,
}

/// Chooses a driver, and switches when that is asked for.
pub(crate) fn choose<P: Host>(
    host: &mut P,
    root: &Path,
    wish: &Wish,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let links = links(host)?;
    let drivers = look(&links, root);
    possible(&drivers, wish)?;
    let mut switch = plan(&drivers, &links, root, wish);
    let is_needed = !switch.steps.is_empty();
    if !wish.dry_run && is_needed {
        if format == Format::Table {
            // What drops is told before it does.
            print(&switch, true, out)?;
            out.flush()?;
        }
        perform(host, &drivers, root, wish)?;
        switch.is_done = true;
    }
    if format == Format::Json {
        return write_json(out, &switch);
    }
    if !is_needed {
        return Ok(writeln!(
            out,
            "{} is chosen, and nothing is to be done",
            wish.choice
        )?);
    }
    if wish.dry_run {
        return Ok(print(&switch, false, out)?);
    }
    Ok(writeln!(out, "done; the way back: {}", switch.way_back)?)
}

/// Refuses what cannot end well, before anything is changed.
fn possible(drivers: &Drivers, wish: &Wish) -> Result<(), Error> {
    let wanted = wish.choice.module();
    let is_installed = drivers
        .modules
        .iter()
        .any(|module| module.name == wanted && module.is_installed);
    let refuse = |message: String, hint: &str| Error::Files {
        message,
        hint: Some(hint.to_owned()),
        code: ErrorCode::Unsupported,
        source: None,
    };
    if !is_installed {
        return Err(refuse(
            format!(
                "{wanted} is not installed for the kernel {}; nothing was changed",
                drivers.kernel
            ),
            "install ipoib-batch-dkms, or see in 'dkms status' why it was not built",
        ));
    }
    if wish.choice == DriverChoice::Batch && drivers.signature.is_refused() {
        return Err(refuse(
            format!(
                "this kernel would refuse {wanted}; nothing was changed: {}",
                drivers.signature.verdict
            ),
            "'ibctl driver status' tells it again",
        ));
    }
    Ok(())
}

pub(super) fn plan(drivers: &Drivers, links: &[Link], root: &Path, wish: &Wish) -> Switch {
    let (to, from) = (wish.choice, wish.choice.other());
    let mut steps = Vec::new();
    if drivers.choice != to {
        steps.push(match to {
            DriverChoice::Batch => {
                format!("write /{FILE}: the next load of ib_ipoib brings ipoib_batch")
            }
            DriverChoice::Stock => format!("remove /{FILE}: the next load of ib_ipoib brings it"),
        });
    }
    let is_loaded = |driver: DriverChoice| {
        drivers
            .modules
            .iter()
            .any(|module| module.name == driver.module() && module.is_loaded)
    };
    let mut drops = Vec::new();
    if wish.now && (is_loaded(from) || !is_loaded(to)) {
        if is_loaded(from) {
            steps.push(format!("unload {}", from.module()));
            drops = dropping(drivers, links, root, from);
        }
        steps.push(format!("load {}", to.module()));
        steps.push("wait for the interfaces to come anew".to_owned());
    }
    let now = if wish.now { " --now" } else { "" };
    Switch {
        driver: to,
        steps,
        drops,
        way_back: format!("ibctl driver use {from}{now}"),
        is_done: false,
    }
}

/// Names what goes away with a driver: its interfaces and their children, with what is on them.
fn dropping(drivers: &Drivers, links: &[Link], root: &Path, from: DriverChoice) -> Vec<String> {
    let owned = drivers.ports.iter().filter(|port| {
        port.driver
            .as_deref()
            .is_some_and(|driver| driver.contains(from.module()))
    });
    let mut names: Vec<&str> = owned
        .flat_map(|port| port.link.iter().chain(&port.children))
        .map(String::as_str)
        .collect();
    // Each child that the kernel shows, though its port is not known.
    names.extend(
        links
            .iter()
            .filter(|link| link.is_child() && link.driver.as_deref() == Some(from.module()))
            .map(|link| link.name.as_str()),
    );
    let names: BTreeSet<&str> = names.into_iter().collect();
    names
        .into_iter()
        .map(|name| {
            let mut on_it = addresses(name);
            on_it.extend(
                uppers(root, name)
                    .into_iter()
                    .map(|upper| format!("below {upper}")),
            );
            if on_it.is_empty() {
                name.to_owned()
            } else {
                format!("{name} ({})", on_it.join(", "))
            }
        })
        .collect()
}

/// Returns the IP addresses of an interface.
fn addresses(name: &str) -> Vec<String> {
    let Ok(all) = getifaddrs() else {
        return Vec::new();
    };
    let ours = all.filter(|entry| entry.interface_name == name);
    ours.filter_map(|entry| {
        let address = entry.address?;
        let v4 = address
            .as_sockaddr_in()
            .map(|address| address.ip().to_string());
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|address| address.ip().to_string())
        })
    })
    .collect()
}

/// Returns the bonds, VLANs and the like above an interface.
fn uppers(root: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("sys/class/net").join(name)) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter_map(|name| name.strip_prefix("upper_").map(str::to_owned))
        .collect()
}

fn print(switch: &Switch, is_begun: bool, out: &mut dyn Write) -> io::Result<()> {
    for (at, step) in switch.steps.iter().enumerate() {
        writeln!(out, "{}. {step}", at + 1)?;
    }
    if !switch.drops.is_empty() {
        let word = if is_begun {
            "goes away"
        } else {
            "would go away"
        };
        writeln!(out, "{word}, with its addresses, routes and connections:")?;
        for name in &switch.drops {
            writeln!(out, "  {name}")?;
        }
        writeln!(
            out,
            "What ibmgr declares is set anew; addresses and routes are for whoever set them."
        )?;
    }
    if !is_begun {
        writeln!(out, "the way back: {}", switch.way_back)?;
    }
    Ok(())
}

fn perform<P: Host>(
    host: &mut P,
    drivers: &Drivers,
    root: &Path,
    wish: &Wish,
) -> Result<(), Error> {
    let file = root.join(FILE);
    let before = fs::read(&file).ok();
    write_choice(&file, wish.choice)?;
    if !wish.now {
        return Ok(());
    }
    let (to, from) = (wish.choice.module(), wish.choice.other().module());
    let was_loaded = drivers
        .modules
        .iter()
        .any(|module| module.name == from && module.is_loaded);
    let switched = (|| {
        if was_loaded {
            modprobe(&["--remove", from])?;
        }
        modprobe(&["--ignore-install", to])?;
        wait(host, drivers, root, to)
    })();
    let Err(why) = switched else { return Ok(()) };
    // The way back: the file as it was, and the driver that was there.
    let restored = match before {
        Some(content) => fs::write(&file, content),
        None => fs::remove_file(&file).or_else(missing_is_fine),
    };
    let restored = restored.map_err(|error| error.to_string()).and_then(|()| {
        if was_loaded {
            // It may be there still; then removing and loading do nothing.
            let _ = modprobe(&["--remove", to]);
            modprobe(&["--ignore-install", from])?;
        }
        Ok(())
    });
    Err(match restored {
        Ok(()) => Error::Files {
            message: format!("switching to {to} failed, and {from} is back: {why}"),
            hint: Some("the kernel log tells more: dmesg".to_owned()),
            code: ErrorCode::Refused,
            source: None,
        },
        Err(error) => Error::Files {
            message: format!(
                "switching to {to} failed: {why}; and going back failed, too: {error}"
            ),
            hint: Some(format!("by hand: rm /{FILE}; modprobe ib_ipoib")),
            code: ErrorCode::NotPutBack,
            source: None,
        },
    })
}

/// Writes or removes the file, whole or not at all.
fn write_choice(file: &Path, choice: DriverChoice) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Files {
        message: format!(
            "the choice of the driver could not be written to {}",
            file.display()
        ),
        hint: None,
        code: match source.kind() {
            io::ErrorKind::PermissionDenied => ErrorCode::Permission,
            _ => ErrorCode::Journal,
        },
        source: Some(source),
    };
    match choice {
        DriverChoice::Stock => fs::remove_file(file)
            .or_else(missing_is_fine)
            .map_err(failed),
        DriverChoice::Batch => {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder).map_err(failed)?;
            }
            let new = file.with_extension("new");
            fs::write(&new, BATCH)
                .and_then(|()| fs::rename(&new, file))
                .map_err(failed)
        }
    }
}

fn missing_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

/// Runs modprobe(8); an error is what it said.
fn modprobe(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("/sbin/modprobe");
    let output = command.args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("modprobe could not be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("modprobe {}: {said}", args.join(" ")))
}

/// Waits until each port that had an interface has one of the new driver.
fn wait<P: Host>(host: &mut P, before: &Drivers, root: &Path, module: &str) -> Result<(), String> {
    let had: Vec<(&str, u32)> = before
        .ports
        .iter()
        .filter(|port| port.link.is_some())
        .map(|port| (port.hca.as_str(), port.port))
        .collect();
    let end = Instant::now() + LIMIT;
    loop {
        let links = links(host).map_err(|error| error.to_string())?;
        let now = look(&links, root);
        let has = |(hca, number): &(&str, u32)| {
            now.ports.iter().any(|port| {
                let is_new = port
                    .driver
                    .as_deref()
                    .is_some_and(|driver| driver.contains(module));
                port.hca == *hca && port.port == *number && is_new
            })
        };
        let missing: Vec<String> = had
            .iter()
            .filter(|port| !has(port))
            .map(|(hca, number)| format!("{hca}/{number}"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!(
                "no interface came for {} within {LIMIT:?}",
                missing.join(", ")
            ));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
