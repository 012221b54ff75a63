// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records what this crate and the running kernel say to each other, for `tests/captures`.
//!
//! `capture DIRECTORY LINK...` writes one file per exchange. It changes nothing: what it sets is what
//! the kernel is known to refuse, or is what is there already.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use ibmgrd_hw::ethtool::{Answer, Ask, Device, Group};
use ibmgrd_hw::genl::{Genl, Name};
use ibmgrd_hw::nl::{Direction, trace};
use ibmgrd_hw::rtnl::{IpoibChange, Link, LinkChange, Rtnl};
use ibmgrd_hw::uapi;

static LOG: Mutex<String> = Mutex::new(String::new());

fn record(direction: Direction, datagram: &[u8]) {
    let Ok(mut log) = LOG.lock() else { return };
    let mark = match direction {
        Direction::Sent => '>',
        Direction::Received => '<',
    };
    // Lines of 32 bytes; the mark starts a datagram, a blank continues it.
    for (at, line) in datagram.chunks(32).enumerate() {
        log.push(if at == 0 { mark } else { ' ' });
        for byte in line {
            let _ = write!(log, " {byte:02x}");
        }
        log.push('\n');
    }
}

struct Out<'a>(&'a Path);

impl Out<'_> {
    /// Writes what was recorded since the last call.
    fn save(&self, name: &str, outcome: Result<(), String>) -> std::io::Result<()> {
        let recorded = LOG
            .lock()
            .map(|mut log| std::mem::take(&mut *log))
            .unwrap_or_default();
        let outcome = outcome.err().unwrap_or_else(|| "ok".to_owned());
        let text = format!("# {outcome}\n{recorded}");
        std::fs::write(self.0.join(format!("{name}.hex")), text)
    }
}

fn said<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<(), String> {
    result.map(|_| ()).map_err(|error| error.to_string())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("usage: capture DIRECTORY LINK...")?;
    let out = Out(Path::new(&directory));
    std::fs::create_dir_all(out.0)?;
    trace(record);
    let (mut rtnl, mut genl) = (Rtnl::new(), Genl::new());

    out.save("links", said(rtnl.links()))?;
    out.save("link-none", said(rtnl.link_named("no-such-link0")))?;
    out.save("family-ethtool", said(genl.family(Name::Ethtool)))?;
    out.save("family-netdev", said(genl.family(Name::Netdev)))?;
    out.save("feature-names", said(genl.ethtool().feature_names()))?;
    for (name, ask) in [
        ("all-features", Ask::Features),
        ("all-channels", Ask::Params(Group::Channels)),
        ("all-coalesce", Ask::Params(Group::Coalesce)),
    ] {
        out.save(name, said(genl.ethtool().ask_all(ask)))?;
    }
    out.save("all-napis", said(genl.netdev().napis(None)))?;
    for name in args {
        let link = rtnl
            .link_named(&name)?
            .ok_or_else(|| format!("no link {name}"))?;
        out.save(&format!("{name}-link"), Ok(()))?;
        asks(&out, &mut genl, &link)?;
        refusals(&out, &mut rtnl, &mut genl, &link)?;
    }
    Ok(())
}

fn asks(out: &Out<'_>, genl: &mut Genl, link: &Link) -> Result<(), Box<dyn Error>> {
    let asks = [
        ("coalesce", Ask::Params(Group::Coalesce)),
        ("rings", Ask::Params(Group::Rings)),
        ("channels", Ask::Params(Group::Channels)),
        ("pause", Ask::Params(Group::Pause)),
        ("features", Ask::Features),
        ("private-flags", Ask::PrivateFlags),
    ];
    for (what, ask) in asks {
        let answer = genl.ethtool().ask(Device::at(link.index), &[ask])?.pop();
        let answer = answer.unwrap_or_else(|| Ok(Answer::PrivateFlags(Default::default())));
        out.save(&format!("{}-{what}", link.name), said(answer))?;
    }
    let napis = genl.netdev().napis(Some(link.index));
    out.save(&format!("{}-napis", link.name), said(napis))?;
    Ok(())
}

fn refusals(
    out: &Out<'_>,
    rtnl: &mut Rtnl,
    genl: &mut Genl,
    link: &Link,
) -> Result<(), Box<dyn Error>> {
    let name = |what: &str| format!("{}-{what}", link.name);
    let device = Device {
        index: link.index,
        name: Some(&link.name),
    };
    let values = [(uapi::ETHTOOL_A_COALESCE_STATS_BLOCK_USECS, 7)];
    let result = genl.ethtool().set_params(device, Group::Coalesce, &values);
    out.save(&name("set-coalesce-unsupported"), said(result))?;
    let result = genl
        .ethtool()
        .set_features(device, &[("no-such-feature", true)]);
    out.save(&name("set-feature-unknown"), said(result))?;
    let other = Device {
        index: link.index,
        name: Some("no-such-link0"),
    };
    let result = genl.ethtool().set_params(other, Group::Coalesce, &values);
    out.save(&name("set-other-name"), said(result))?;
    let result = rtnl.change(&LinkChange {
        mtu: Some(u32::MAX),
        ..LinkChange::of(link.index)
    });
    out.save(&name("set-mtu-refused"), said(result))?;
    let same = LinkChange {
        mtu: Some(link.mtu),
        ..LinkChange::of(link.index)
    };
    out.save(&name("set-mtu-same"), said(rtnl.change(&same)))?;
    if let Some(kind) = &link.kind {
        let mode = link.ipoib.as_ref().map_or(0, |_| 3);
        let change = IpoibChange {
            kind: kind.clone(),
            mode: Some(mode),
            ..Default::default()
        };
        let ipoib = LinkChange {
            ipoib: Some(change),
            ..LinkChange::of(link.index)
        };
        out.save(&name("set-mode-refused"), said(rtnl.change(&ipoib)))?;
    }
    Ok(())
}
