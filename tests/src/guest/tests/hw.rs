// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibmgrd-hw` on the stock ib_ipoib: what it reads and writes, against ip(8), ethtool(8) and sysfs.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use ibmgr_api::{Assignment, Channel, Key, Link, LinkName, Outcome, Reading, ReportLine, Support};
use ibmgrd_engine::{Keys, Port, PortError, Query, Target, keys_to_observe, plan, run};
use ibmgrd_hw::port::KernelPort;

use crate::capture::Recorder;
use crate::guest::fabric::BASE_PARTITIONS;
use crate::guest::task::Fabric;
use crate::guest::{Guest, Result, Task};

/// Tests of the kernel port, and the records of the messages that it is tested with.
pub const TESTS: &[Task] = &[
    task("hw.identity", "ib0 is what ip and sysfs show", identity),
    task("hw.mode", "the mode changes through each channel", mode),
    task("hw.umcast", "umcast changes through each channel", umcast),
    task("hw.mtu", "each mode has its limits of the MTU", mtu),
    Task::new(
        "hw.group_mtu",
        "a datagram MTU over the broadcast group's is noticed",
        group_mtu,
    ),
    task(
        "hw.coalescing",
        "interrupt moderation is that of ethtool",
        coalescing,
    ),
    task(
        "hw.no_effect",
        "what ib_ipoib stores without using is told",
        no_effect,
    ),
    task("hw.absent", "what ib_ipoib lacks has a reason", absent),
    task("hw.children", "P_Key children of both kinds", children),
    task(
        "hw.put_back",
        "a refusal puts mode, MTU and the rest back",
        put_back,
    ),
    task(
        "hw.unload",
        "an unloaded driver is a gone interface",
        unload,
    ),
    task(
        "hw.capture",
        "records the messages of the stock driver",
        capture,
    ),
];

const fn task(name: &'static str, about: &'static str, run: fn(&mut Guest) -> Result) -> Task {
    Task::new(name, about, run).fabric(Fabric::Managed, 2)
}

/// The port under test, with ib0 and ib1 up and joined.
struct Ipoib {
    port: KernelPort,
}

impl Ipoib {
    fn start(guest: &Guest) -> Result<Self> {
        guest.load("ib_ipoib")?;
        for link in ["ib0", "ib1"] {
            guest.run(&format!("ip link set {link} up"))?;
            await_carrier(guest, link)?;
        }
        Ok(Self {
            port: KernelPort::new(),
        })
    }

    fn observe(&mut self, link: &str, keys: Keys, via: Option<Channel>) -> Result<Link> {
        let query = Query { keys, via };
        Ok(self.port.observe(&name(link)?, &query)?)
    }

    fn reading(&mut self, link: &str, key: &str, via: Option<Channel>) -> Result<Reading> {
        let key: Key = key.parse()?;
        let mut observed = self.observe(link, Keys::Named(vec![key.clone()]), via)?;
        observed.readings.remove(&key).context("no reading")
    }

    fn value(&mut self, link: &str, key: &str, via: Option<Channel>) -> Result<String> {
        let domain = key.parse::<Key>()?.knob().domain;
        let reading = self.reading(link, key, via)?;
        let value = reading
            .value
            .with_context(|| format!("{key}: {:?}", reading.support))?;
        Ok(value.show(&domain))
    }

    /// Takes values through the engine, as ibctl does.
    fn set(
        &mut self,
        link: &str,
        wants: &[(&str, &str)],
        via: Option<Channel>,
    ) -> Result<Vec<ReportLine>> {
        let mut assignments = Vec::new();
        for (key, value) in wants {
            let key: Key = key.parse()?;
            let value = key.knob().domain.parse(value)?;
            assignments.push(Assignment { key, value });
        }
        let keys = keys_to_observe(&assignments, via)?;
        let before = self.observe(link, Keys::Named(keys), via)?;
        let plan = plan(&before, &assignments)?;
        Ok(run(&mut self.port, &plan, &before).lines)
    }

    /// Sets one knob, which must change and nothing else fail.
    fn change(&mut self, link: &str, key: &str, value: &str, via: Option<Channel>) -> Result {
        let lines = self.set(link, &[(key, value)], via)?;
        let line = lines.iter().find(|line| line.key.to_string() == key);
        let outcome = &line.with_context(|| format!("no line of {key}"))?.outcome;
        ensure!(*outcome == Outcome::Changed, "{key}={value}: {lines:?}");
        Ok(())
    }
}

fn name(link: &str) -> Result<LinkName> {
    Ok(link.parse()?)
}

fn await_carrier(guest: &Guest, link: &str) -> Result {
    let path = format!("/sys/class/net/{link}/operstate");
    let limit = Duration::from_secs(20);
    guest.wait_for(&format!("carrier on {link}"), limit, || {
        Ok((guest.read(&path)? == "up").then_some(()))
    })
}

fn sysfs(guest: &Guest, link: &str, file: &str) -> Result<String> {
    guest.read(format!("/sys/class/net/{link}/{file}"))
}

/// Returns what `ip -j -d link show LINK` says.
fn ip(guest: &Guest, link: &str) -> Result<serde_json::Value> {
    let text = guest.run(&format!("ip -j -d link show dev {link}"))?;
    let all: serde_json::Value = serde_json::from_str(&text)?;
    Ok(all[0].clone())
}

fn identity(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    let ours = ipoib.observe("ib0", Keys::Identity, None)?;
    let theirs = ip(guest, "ib0")?;
    guest.same("driver", ours.driver.as_deref(), Some("ib_ipoib"))?;
    guest.same(
        "kind",
        ours.kind.as_deref(),
        theirs["linkinfo"]["info_kind"].as_str(),
    )?;
    guest.same(
        "address",
        ours.address_text().as_deref(),
        theirs["address"].as_str(),
    )?;
    guest.same("address bytes", ours.address.len(), 20)?;
    guest.same(
        "hardware type",
        sysfs(guest, "ib0", "type")?,
        ours.arphrd.to_string(),
    )?;
    let pkey = theirs["linkinfo"]["info_data"]["key"].as_str();
    guest.same(
        "pkey",
        ours.pkey.map(|pkey| pkey.to_string()).as_deref(),
        pkey,
    )?;
    // The GID of the port ends with the port's GUID.
    let gid = guest.read("/sys/class/infiniband/vhca0/ports/1/gids/0")?;
    let guid = ours.guid().context("no GUID")?.to_string();
    ensure!(gid.ends_with(&guid), "GUID {guid}, GID {gid}");
    ensure!(ours.is_up && ours.has_carrier, "{ours:?}");

    let query = Query {
        keys: Keys::All,
        via: None,
    };
    let all = ipoib.port.observe_all(&query)?;
    for link in &all {
        let single = ipoib.port.observe(&link.name, &query)?;
        for (key, reading) in &link.readings {
            let other = single.readings.get(key).context("a reading less")?;
            let what = format!("{} of {}", key, link.name);
            guest.same(&what, &reading.value, &other.value)?;
            guest.same(&what, reading.support.name(), other.support.name())?;
        }
    }
    guest.same("interfaces", all.len(), 3)
}

fn mode(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    for via in [Channel::Rtnetlink, Channel::Sysfs] {
        for mode in ["connected", "datagram"] {
            ipoib.change("ib0", "mode", mode, Some(via))?;
            guest.same("sysfs", sysfs(guest, "ib0", "mode")?.as_str(), mode)?;
            let theirs = ip(guest, "ib0")?;
            let shown = theirs["linkinfo"]["info_data"]["mode"].as_str();
            guest.same("ip", shown, Some(mode))?;
            let mtu = theirs["mtu"].to_string();
            guest.same("mtu", ipoib.value("ib0", "mtu", None)?, mtu)?;
        }
    }
    guest.run("ip link set ib0 type ipoib mode connected")?;
    guest.same(
        "mode",
        ipoib.value("ib0", "mode", None)?.as_str(),
        "connected",
    )?;
    // Both knobs of one command: mode first, and the MTU that the new mode allows.
    let lines = ipoib.set("ib1", &[("mtu", "65520"), ("mode", "connected")], None)?;
    ensure!(
        lines.iter().all(|line| line.outcome == Outcome::Changed),
        "{lines:?}"
    );
    guest.same("mtu", ip(guest, "ib1")?["mtu"].as_u64(), Some(65520))
}

fn umcast(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    for via in [Channel::Rtnetlink, Channel::Sysfs] {
        for (value, raw) in [("ignore", "1"), ("honour", "0")] {
            ipoib.change("ib0", "umcast", value, Some(via))?;
            guest.same("sysfs", sysfs(guest, "ib0", "umcast")?.as_str(), raw)?;
        }
    }
    guest.run("ip link set ib0 type ipoib umcast 1")?;
    guest.same(
        "umcast",
        ipoib.value("ib0", "umcast", None)?.as_str(),
        "ignore",
    )
}

fn mtu(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    ipoib.change("ib0", "mtu", "2000", None)?;
    guest.same("ip", ip(guest, "ib0")?["mtu"].as_u64(), Some(2000))?;
    let lines = ipoib.set("ib0", &[("mtu", "60000")], None)?;
    let why = lines
        .first()
        .and_then(|line| line.outcome.why())
        .unwrap_or_default();
    guest.contains("the refusal", why, "datagram mode takes at most")?;
    guest.same("ip", ip(guest, "ib0")?["mtu"].as_u64(), Some(2000))?;
    let lines = ipoib.set("ib0", &[("mode", "connected"), ("mtu", "60000")], None)?;
    ensure!(
        lines.iter().all(|line| line.outcome == Outcome::Changed),
        "{lines:?}"
    );
    guest.same("ip", ip(guest, "ib0")?["mtu"].as_u64(), Some(60000))
}

/// A partition whose broadcast group has a smaller MTU than the port: the kernel says yes to more, and
/// uses the group's.
fn group_mtu(guest: &mut Guest) -> Result {
    guest.load("vhca hcas=2 managed=0 mtu=4096")?;
    guest.load("ib_umad")?;
    // The lab's partitions have an MTU of 2048, whatever the port could carry.
    guest.start_opensm(BASE_PARTITIONS)?;
    let mut ipoib = Ipoib::start(guest)?;
    let mtu = || -> Result<Option<u64>> { Ok(ip(guest, "ib0")?["mtu"].as_u64()) };
    guest.same("the group's", mtu()?, Some(2044))?;
    ipoib.change("ib0", "mtu", "1500", None)?;
    let lines = ipoib.set("ib0", &[("mtu", "4092")], None)?;
    let outcome = lines.first().map(|line| line.outcome.name());
    guest.same("more than the group's", outcome, Some("not-verified"))?;
    guest.same("ip", mtu()?, Some(1500))
}

fn coalescing(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    ipoib.change("ib0", "rx-usecs", "16us", None)?;
    ipoib.change("ib0", "rx-frames", "8", None)?;
    let theirs: serde_json::Value = serde_json::from_str(&guest.run("ethtool -j -c ib0")?)?;
    guest.same("rx-usecs", theirs[0]["rx-usecs"].as_u64(), Some(16))?;
    guest.same("rx-frames", theirs[0]["rx-frames"].as_u64(), Some(8))?;
    guest.run("ethtool -C ib0 rx-usecs 3")?;
    guest.same(
        "rx-usecs",
        ipoib.value("ib0", "rx-usecs", None)?.as_str(),
        "3us",
    )?;
    let limits = ipoib.reading("ib0", "rx-frames", None)?.limits;
    guest.same("limit", limits.map(|limits| limits.max), Some(65535))?;
    let Err(error) = ipoib.set("ib0", &[("rx-frames", "65536")], None) else {
        bail!("65536 frames were planned");
    };
    guest.contains("the error", &error.to_string(), "0 to 65535")
}

fn no_effect(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    for (key, value, file, raw) in [
        ("gro-flush-timeout", "20us", "gro_flush_timeout", "20000"),
        ("napi-defer-hard-irqs", "2", "napi_defer_hard_irqs", "2"),
    ] {
        let lines = ipoib.set("ib0", &[(key, value)], None)?;
        let outcome = &lines.first().context("no line")?.outcome;
        guest.same(key, outcome.name(), "no-effect")?;
        guest.contains("the reason", outcome.why().unwrap_or_default(), "ib_ipoib")?;
        guest.same(file, sysfs(guest, "ib0", file)?.as_str(), raw)?;
    }
    let plain = ipoib.reading("ib0", "gro-max-size", None)?.support;
    guest.same("gro-max-size in datagram mode", plain.name(), "settable")?;
    ipoib.change("ib0", "mode", "connected", None)?;
    let support = ipoib.reading("ib0", "gro-max-size", None)?.support;
    guest.same(
        "gro-max-size in connected mode",
        support.name(),
        "stored-no-effect",
    )
}

fn absent(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    for (key, part) in [
        ("batching", "only the ipoib_batch driver"),
        ("batch-limit", "only the ipoib_batch driver"),
        ("cm-copybreak", "fixed threshold of 256 bytes"),
        ("ring.rx", "module parameters"),
        ("channels.rx", "driver ib_ipoib has no channels"),
        ("tx-usecs", "driver ib_ipoib has no such coalescing"),
        (
            "private-flag.tx-batching",
            "driver ib_ipoib has no private flags",
        ),
        ("irq-suspend-timeout", "needs Linux 6.13"),
    ] {
        let support = ipoib.reading("ib0", key, None)?.support;
        ensure!(
            matches!(support, Support::Unsupported(_)),
            "{key}: {support:?}"
        );
        guest.contains(key, support.why().unwrap_or_default(), part)?;
    }
    // Who asks all the same reads the kernel's own words.
    let error = guest.attempt("ethtool -C ib0 tx-usecs 3")?.refused()?;
    guest.contains("ethtool", &error, "unsupported parameter")
}

fn children(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    guest.run("ip link add link ib0 name rtnl0 type ipoib pkey 0xffff")?;
    guest.write("/sys/class/net/ib1/create_child", "0x8001")?;
    for (child, parent, pkey, has_files) in [
        ("rtnl0", "ib0", 0xffff, false),
        ("ib1.8001", "ib1", 0x8001, true),
    ] {
        let link = ipoib.observe(child, Keys::Identity, None)?;
        guest.same("driver", link.driver.as_deref(), Some("ib_ipoib"))?;
        let name = link.parent_name.as_ref().map(LinkName::as_str);
        guest.same("parent", name, Some(parent))?;
        guest.same("pkey", link.pkey.map(|pkey| pkey.raw()), Some(pkey))?;
        for mode in ["connected", "datagram"] {
            ipoib.change(child, "mode", mode, None)?;
            let shown = ip(guest, child)?["linkinfo"]["info_data"]["mode"].clone();
            guest.same("ip", shown.as_str(), Some(mode))?;
        }
        ipoib.change(child, "umcast", "ignore", None)?;
        let file = ipoib.reading(child, "mode", Some(Channel::Sysfs))?;
        guest.same("mode in sysfs", file.value.is_some(), has_files)?;
        if !has_files {
            let why = file.support.why().unwrap_or_default();
            guest.contains("the reason", why, "P_Key children made through rtnetlink")?;
        }
    }
    guest.run("ip link del rtnl0")?;
    Ok(())
}

fn put_back(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    let lines = ipoib.set("ib0", &[("mode", "connected"), ("mtu", "60000")], None)?;
    ensure!(
        lines.iter().all(|line| line.outcome == Outcome::Changed),
        "{lines:?}"
    );
    let before = ip(guest, "ib0")?;
    // Datagram mode comes first and takes the MTU down; then the kernel refuses the MTU.
    let wants = [("mode", "datagram"), ("mtu", "4000"), ("alias", "rail 0")];
    let lines = ipoib.set("ib0", &wants, None)?;
    let outcome = |key: &str| {
        let line = lines.iter().find(|line| line.key.to_string() == key);
        line.map(|line| line.outcome.name())
    };
    guest.same("mode", outcome("mode"), Some("put-back"))?;
    guest.same("mtu", outcome("mtu"), Some("refused"))?;
    guest.same("alias", outcome("alias"), Some("not-tried"))?;
    let after = ip(guest, "ib0")?;
    for field in ["mtu", "ifalias", "flags", "linkinfo"] {
        guest.same(field, &after[field], &before[field])?;
    }
    guest.same("mtu", after["mtu"].as_u64(), Some(60000))
}

fn unload(guest: &mut Guest) -> Result {
    let mut ipoib = Ipoib::start(guest)?;
    let link = ipoib.observe("ib0", Keys::Identity, None)?;
    let target = Target {
        name: link.name,
        index: link.index,
    };
    guest.unload("ib_ipoib")?;
    for (key, value) in [("mtu", "2000"), ("mode", "connected"), ("rx-usecs", "3us")] {
        let key: Key = key.parse()?;
        let value = key.knob().domain.parse(value)?;
        let carrier = *key.knob().carriers.first().context("no carrier")?;
        let result = ipoib.port.write(&target, &key, &value, carrier);
        ensure!(
            matches!(result, Err(PortError::Gone { .. })),
            "{key}: {result:?}"
        );
    }
    let result = ipoib.port.observe(&target.name, &Query::named(Vec::new()));
    ensure!(
        matches!(result, Err(PortError::NoSuchLink { .. })),
        "{result:?}"
    );
    Ok(())
}

/// Leaves what `ibmgrd/hw/tests/captures/linux-6.12-ipoib` is made of with the logs of the run.
fn capture(guest: &mut Guest) -> Result {
    Ipoib::start(guest)?;
    guest.run("ip link add link ib0 name ib0.rtnl type ipoib pkey 0xffff")?;
    guest.write("/sys/class/net/ib1/create_child", "0x8001")?;
    let mut kept = 0;
    let mut keep = |name: &str, text: &str| {
        guest.keep(&format!("{name}.hex"), text.as_bytes());
        kept += 1;
    };
    let mut recorder = Recorder::new(&mut keep);
    recorder.links("datagram-links");
    recorder.everything();
    for link in ["ib0", "ib0.rtnl", "ib1.8001"] {
        recorder.link(link)?;
    }
    for link in ["ib0", "ib0.rtnl", "ib1.8001"] {
        recorder.mode(link, 1, &format!("{link}-set-connected"))?;
    }
    recorder.links("connected-links");
    ensure!(kept > 50, "{kept} records");
    Ok(())
}
