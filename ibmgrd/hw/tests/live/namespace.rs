// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network namespace for the calling thread, with its own /sys.

use std::process::Command;

use ibmgr_api::{Carrier, Channel, Key, Link, LinkName, Reading, Value};
use ibmgrd_engine::{Keys, Port, PortError, Query, Target};
use ibmgrd_hw::port::KernelPort;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value as Json;

/// The thread's namespace, gone with the thread.
pub(crate) struct Namespace {
    pub(crate) port: KernelPort,
}

impl Namespace {
    /// Moves the thread into new network and mount namespaces and mounts sysfs there.
    #[track_caller]
    pub(crate) fn enter() -> Self {
        Self::enter_without_sysfs();
        mount(
            Some("sysfs"),
            "/sys",
            Some("sysfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .unwrap_or_else(|error| panic!("mounting sysfs: {error}; run the tests as root"));
        Self {
            port: KernelPort::new(),
        }
    }

    /// Moves the thread alone: /sys still shows the namespace that it came from.
    #[track_caller]
    pub(crate) fn enter_without_sysfs() -> Self {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap_or_else(|error| {
            panic!("a new network namespace: {error}; run the tests as root, with CAP_SYS_ADMIN")
        });
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).unwrap();
        Self {
            port: KernelPort::new(),
        }
    }

    pub(crate) fn with_veth() -> Self {
        let namespace = Self::enter();
        run("ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1");
        namespace
    }

    pub(crate) fn observe(&mut self, link: &str, keys: &[&str]) -> Link {
        self.query(link, keys, None).unwrap()
    }

    pub(crate) fn query(
        &mut self,
        link: &str,
        keys: &[&str],
        via: Option<Channel>,
    ) -> Result<Link, PortError> {
        let keys = keys.iter().map(|key| key.parse().unwrap()).collect();
        let query = Query {
            keys: Keys::Named(keys),
            via,
        };
        self.port.observe(&name(link), &query)
    }

    pub(crate) fn reading(&mut self, link: &str, key: &str) -> Reading {
        self.observe(link, &[key])
            .readings
            .remove(&key.parse().unwrap())
            .unwrap()
    }

    pub(crate) fn reading_via(&mut self, link: &str, key: &str, via: Channel) -> Reading {
        let mut observed = self.query(link, &[key], Some(via)).unwrap();
        observed.readings.remove(&key.parse().unwrap()).unwrap()
    }

    /// Returns a value as people read it; empty for none.
    pub(crate) fn get(&mut self, link: &str, key: &str) -> String {
        let domain = key.parse::<Key>().unwrap().knob().domain;
        let value = self.reading(link, key).value;
        value.map_or_else(String::new, |value| value.show(&domain))
    }

    pub(crate) fn target(&mut self, link: &str) -> Target {
        let index = self.observe(link, &[]).index;
        Target {
            name: name(link),
            index,
        }
    }

    /// Writes a value through the carrier that it reads from, or through that of `via`.
    pub(crate) fn set(
        &mut self,
        link: &str,
        key: &str,
        value: &str,
        via: Option<Channel>,
    ) -> Result<(), PortError> {
        let observed = self.query(link, &[key], via)?;
        let (key, reading) = observed.readings.into_iter().next().unwrap();
        let channel = reading
            .via
            .or(via)
            .unwrap_or_else(|| panic!("{key}: {reading:?}"));
        let target = Target {
            name: observed.name,
            index: observed.index,
        };
        let (value, carrier) = parts(&key, value, channel);
        self.port.write(&target, &key, &value, carrier)
    }
}

pub(crate) fn name(link: &str) -> LinkName {
    link.parse().unwrap()
}

pub(crate) fn parts(key: &Key, value: &str, channel: Channel) -> (Value, Carrier) {
    let carriers = key.knob().carriers;
    let carrier = carriers
        .iter()
        .find(|carrier| carrier.channel() == channel)
        .unwrap();
    (key.knob().domain.parse(value).unwrap(), *carrier)
}

/// Runs a command, split at blanks, and returns what it printed.
#[track_caller]
pub(crate) fn run(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap();
    let output = Command::new(program).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; it must be installed"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what `ip -j -d link show LINK` says.
#[track_caller]
pub(crate) fn ip(link: &str) -> Json {
    let text = run(&format!("ip -j -d link show dev {link}"));
    serde_json::from_str::<Json>(&text).unwrap()[0].clone()
}

/// Returns the value behind `label:` in the output of ethtool(8); of the last such line.
#[track_caller]
pub(crate) fn ethtool(arguments: &str, label: &str) -> String {
    let text = run(&format!("ethtool {arguments}"));
    let mut values = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(label)?.strip_prefix(':'));
    let value = values
        .next_back()
        .unwrap_or_else(|| panic!("{label} is not in:\n{text}"));
    value.trim().to_owned()
}

#[track_caller]
pub(crate) fn sysfs(link: &str, file: &str) -> String {
    std::fs::read_to_string(format!("/sys/class/net/{link}/{file}"))
        .unwrap()
        .trim()
        .to_owned()
}
