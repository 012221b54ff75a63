// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records what `ibmgrd-hw` and the running kernel say to each other, for `ibmgrd/hw/tests/captures`.

use std::fmt::Write as _;
use std::sync::Mutex;

use anyhow::{Context, Result};
use ibmgrd_hw::ethtool::{Ask, Device, Group};
use ibmgrd_hw::genl::{Genl, Name};
use ibmgrd_hw::nl::{Direction, trace};
use ibmgrd_hw::rtnl::{IpoibChange, Link, LinkChange, Rtnl};
use ibmgrd_hw::uapi;

static LOG: Mutex<String> = Mutex::new(String::new());

fn note(direction: Direction, datagram: &[u8]) {
    let Ok(mut log) = LOG.lock() else { return };
    let mark = match direction {
        Direction::Sent => '>',
        Direction::Received => '<',
    };
    // Lines of 32 bytes; the mark starts a datagram, a blank continues it.
    for (at, line) in datagram.chunks(32).enumerate() {
        log.push(if at == 0 { mark } else { ' ' });
        for byte in line {
            // Writing to a string cannot fail.
            let _ = write!(log, " {byte:02x}");
        }
        log.push('\n');
    }
}

/// Connections whose exchanges are recorded, and where the records go.
pub struct Recorder<'a> {
    rtnl: Rtnl,
    genl: Genl,
    keep: &'a mut dyn FnMut(&str, &str),
}

impl<'a> Recorder<'a> {
    /// Starts to record; `keep` takes the name and the text of each exchange.
    pub fn new(keep: &'a mut dyn FnMut(&str, &str)) -> Self {
        trace(note);
        Self {
            rtnl: Rtnl::new(),
            genl: Genl::new(),
            keep,
        }
    }

    /// Forgets what was said since the last record.
    fn discard(&self) {
        if let Ok(mut log) = LOG.lock() {
            log.clear();
        }
    }

    /// Hands over what was said since the last call.
    fn save<T, E: std::fmt::Display>(&mut self, name: &str, result: Result<T, E>) {
        let said = LOG.lock().map(|mut log| std::mem::take(&mut *log));
        let outcome = result.map_or_else(|error| error.to_string(), |_| "ok".to_owned());
        let text = format!("# {outcome}\n{}", said.unwrap_or_default());
        (self.keep)(name, &text);
    }

    /// Records the list of interfaces.
    pub fn links(&mut self, name: &str) {
        let result = self.rtnl.links();
        self.save(name, result);
    }

    /// Records what is asked of the kernel and of all devices.
    pub fn everything(&mut self) {
        let result = self.rtnl.link_named("no-such-link0");
        self.save("link-none", result);
        for (name, family) in [
            ("family-ethtool", Name::Ethtool),
            ("family-netdev", Name::Netdev),
        ] {
            let result = self.genl.family(family);
            self.save(name, result);
        }
        let result = self.genl.ethtool().feature_names();
        self.save("feature-names", result);
        for (name, ask) in [
            ("all-features", Ask::Features),
            ("all-channels", Ask::Params(Group::Channels)),
            ("all-coalesce", Ask::Params(Group::Coalesce)),
        ] {
            let result = self.genl.ethtool().ask_all(ask);
            self.save(name, result);
        }
        let result = self.genl.netdev().napis(None);
        self.save("all-napis", result);
    }

    /// Records what is asked of one interface, and what the kernel is known to refuse of it. Nothing
    /// changes: what is set besides is what is there.
    ///
    /// # Errors
    ///
    /// When there is no such interface.
    pub fn link(&mut self, name: &str) -> Result<()> {
        let link = self.rtnl.link_named(name)?;
        let link = link.with_context(|| format!("no interface {name}"))?;
        self.save(&format!("{name}-link"), anyhow::Ok(()));
        for (what, ask) in [
            ("coalesce", Ask::Params(Group::Coalesce)),
            ("rings", Ask::Params(Group::Rings)),
            ("channels", Ask::Params(Group::Channels)),
            ("pause", Ask::Params(Group::Pause)),
            ("features", Ask::Features),
            ("private-flags", Ask::PrivateFlags),
        ] {
            let answers = self.genl.ethtool().ask(Device::at(link.index), &[ask])?;
            for answer in answers {
                self.save(&format!("{name}-{what}"), answer);
            }
        }
        let result = self.genl.netdev().napis(Some(link.index));
        self.save(&format!("{name}-napis"), result);
        self.refusals(&link);
        Ok(())
    }

    fn refusals(&mut self, link: &Link) {
        let device = Device {
            index: link.index,
            name: Some(&link.name),
        };
        let stranger = Device {
            index: link.index,
            name: Some("no-such-link0"),
        };
        let block = [(uapi::ETHTOOL_A_COALESCE_STATS_BLOCK_USECS, 7)];
        let large = [(uapi::ETHTOOL_A_COALESCE_RX_USECS, 70_000)];
        for (what, device, values) in [
            ("set-coalesce-unsupported", device, block),
            ("set-coalesce-large", device, large),
            ("set-other-name", stranger, block),
        ] {
            let mut ethtool = self.genl.ethtool();
            let result = ethtool.set_params(device, Group::Coalesce, &values);
            self.save(&format!("{}-{what}", link.name), result);
        }
        let mut ethtool = self.genl.ethtool();
        let result = ethtool.set_features(device, &[("no-such-feature", true)]);
        self.save(&format!("{}-set-feature-unknown", link.name), result);
        let mut changes = vec![
            (
                "set-mtu-refused",
                LinkChange {
                    mtu: Some(u32::MAX),
                    ..LinkChange::of(link.index)
                },
            ),
            (
                "set-mtu-same",
                LinkChange {
                    mtu: Some(link.mtu),
                    ..LinkChange::of(link.index)
                },
            ),
        ];
        if let Some(kind) = &link.kind {
            let mode = link.ipoib.as_ref().map_or(0, |_| 3);
            changes.push(("set-mode-refused", with_mode(link.index, kind, mode)));
        }
        for (what, change) in changes {
            let result = self.rtnl.change(&change);
            self.save(&format!("{}-{what}", link.name), result);
        }
    }

    /// Records a change of mode, which is made.
    ///
    /// # Errors
    ///
    /// When there is no such interface, or it has no kind.
    pub fn mode(&mut self, name: &str, mode: u16, record: &str) -> Result<()> {
        let link = self.rtnl.link_named(name)?;
        let link = link.with_context(|| format!("no interface {name}"))?;
        self.discard();
        let kind = link.kind.with_context(|| format!("{name} has no kind"))?;
        let result = self.rtnl.change(&with_mode(link.index, &kind, mode));
        self.save(record, result);
        Ok(())
    }
}

fn with_mode(index: u32, kind: &str, mode: u16) -> LinkChange {
    let change = IpoibChange {
        kind: kind.to_owned(),
        mode: Some(mode),
        ..IpoibChange::default()
    };
    LinkChange {
        ipoib: Some(change),
        ..LinkChange::of(index)
    }
}
