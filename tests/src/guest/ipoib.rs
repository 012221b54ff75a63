// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two IPoIB interfaces that talk to each other, each in a namespace of its own.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ibmgrd_hw::rtnl::{NewIpoib, Rtnl};
use serde_json::Value;

use super::netns::Netns;
use super::process::Output;
use super::vhca::Stats;
use super::{Guest, Result};

/// The only rtnetlink kind of IPoIB whose options `ip` knows.
const KNOWN_KIND: &str = "ipoib";

/// How long an interface may take to join its broadcast group.
const LINK_LIMIT: Duration = Duration::from_secs(20);

/// How long a first packet may take to find its way (path record, ARP or ND, CM).
const WAY_LIMIT: Duration = Duration::from_secs(20);

/// How long a ping with all its waiting may take.
const PING_LIMIT: Duration = Duration::from_secs(60);

/// How much later than ping waits for it a reply may come.
const LATE_LIMIT: Duration = Duration::from_secs(5);

/// How an IPoIB interface carries packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Unreliable datagrams (RFC 4391).
    Datagram,
    /// Reliable connections where the peer takes them (RFC 4755), MTU 65520.
    Connected,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Datagram => "datagram",
            Self::Connected => "connected",
        })
    }
}

/// One end: an interface in a namespace.
#[derive(Clone, Debug)]
pub struct End {
    /// The namespace.
    pub ns: Netns,
    /// Interface name.
    pub dev: String,
    /// Its IPv4 address.
    pub v4: String,
    /// Its IPv6 address.
    pub v6: String,
}

/// Two ends on one fabric.
#[derive(Debug)]
pub struct Pair {
    /// `ib0` on the first HCA, in namespace `a`.
    pub a: End,
    /// `ib1` on the second HCA, in namespace `b`.
    pub b: End,
}

impl Pair {
    /// Loads the stock driver and sets `ib0` and `ib1` up: in namespaces `a` and `b`, in the wanted
    /// mode at its largest MTU, with addresses, ready to talk.
    ///
    /// # Errors
    ///
    /// When the driver doesn't make its interfaces, or they don't come up.
    pub fn stock(guest: &Guest, mode: Mode) -> Result<Self> {
        guest.load("ib_ipoib")?;
        Self::of_loaded(guest, mode)
    }

    /// Like [`Self::stock`], with the driver loaded already.
    ///
    /// # Errors
    ///
    /// When `ib0` and `ib1` aren't there, or don't come up.
    pub fn of_loaded(guest: &Guest, mode: Mode) -> Result<Self> {
        Self::of_devices(guest, ["ib0", "ib1"], Some(mode))
    }

    /// Sets two interfaces up, of whatever driver, when they are there; no mode leaves theirs alone.
    ///
    /// # Errors
    ///
    /// When they aren't there in time, or don't come up.
    pub fn of_devices(guest: &Guest, devs: [&str; 2], mode: Option<Mode>) -> Result<Self> {
        for dev in devs {
            guest.wait_for(&format!("interface {dev}"), LINK_LIMIT, || {
                Ok(guest
                    .attempt(&format!("ip link show {dev}"))?
                    .status
                    .success()
                    .then_some(()))
            })?;
        }
        Self::adopt(guest, guest.netns("a")?, guest.netns("b")?, devs, mode)
    }

    /// Moves two interfaces of the first namespace to `a` and `b` and sets them up.
    ///
    /// # Errors
    ///
    /// When they don't come up.
    pub fn adopt(
        guest: &Guest,
        a: Netns,
        b: Netns,
        devs: [&str; 2],
        mode: Option<Mode>,
    ) -> Result<Self> {
        let [of_a, of_b] = devs;
        for (dev, ns) in [(of_a, &a), (of_b, &b)] {
            guest.run(&format!("ip link set {dev} netns {}", ns.name()))?;
        }
        let a = End::new(a, of_a, 9, 1);
        let b = End::new(b, of_b, 9, 2);
        for end in [&a, &b] {
            if let Some(mode) = mode {
                end.set_mode(mode)?;
            }
            end.bring_up()?;
        }
        let pair = Self { a, b };
        pair.wait_ready(guest)?;
        Ok(pair)
    }

    /// Makes a child interface on either side: P_Key `pkey`, names `NAME` on both.
    ///
    /// # Errors
    ///
    /// When they aren't made or don't come up.
    pub fn children(&self, guest: &Guest, name: &str, pkey: u16, subnet: u8) -> Result<Self> {
        let make = |end: &End, host| -> Result<End> {
            end.add_child(name, pkey)?;
            let child = End::new(end.ns.clone(), name, subnet, host);
            child.bring_up()?;
            Ok(child)
        };
        let pair = Self {
            a: make(&self.a, 1)?,
            b: make(&self.b, 2)?,
        };
        pair.wait_ready(guest)?;
        Ok(pair)
    }

    /// Waits until both ends have their link and reach each other.
    ///
    /// # Errors
    ///
    /// When they don't within their time.
    pub fn wait_ready(&self, guest: &Guest) -> Result {
        for end in [&self.a, &self.b] {
            end.wait_link(guest, true)?;
        }
        self.wait_reachable(guest)
    }

    /// Waits until a packet makes it there and back, from either end, over IPv4 and IPv6.
    ///
    /// # Errors
    ///
    /// When none does within 20 s.
    pub fn wait_reachable(&self, guest: &Guest) -> Result {
        for (from, to) in [(&self.a, &self.b), (&self.b, &self.a)] {
            for address in [&to.v4, &to.v6] {
                let what = format!("answer from {address} to {}", from.dev);
                guest
                    .wait_for(&what, WAY_LIMIT, || {
                        let line = format!("ping -n -c 1 -W 1 {address}");
                        let output = from.ns.attempt(&line, WAY_LIMIT)?;
                        Ok(output.status.success().then_some(()))
                    })
                    .map_err(|error| error.context(from.view(to)))?;
            }
        }
        Ok(())
    }

    /// Pings both ways over IPv4 and IPv6, `size` bytes of payload each; no packet may be lost.
    ///
    /// # Errors
    ///
    /// With ping's words, when one is.
    pub fn ping(&self, count: u32, size: u32) -> Result {
        for (from, to) in [(&self.a, &self.b), (&self.b, &self.a)] {
            for address in [&to.v4, &to.v6] {
                from.ping(to, address, count, size)?;
            }
        }
        Ok(())
    }

    /// Runs iperf3 from one end to the other and returns its end report (JSON).
    ///
    /// # Errors
    ///
    /// When it fails.
    pub fn iperf(from: &End, to: &End, guest: &Guest, options: &str) -> Result<Value> {
        let server = to.ns.start("iperf3 --server --one-off --port 5301")?;
        guest.wait_for("iperf3 server", WAY_LIMIT, || {
            let sockets = to.ns.run("ss -Hltn sport = :5301")?;
            Ok((!sockets.is_empty()).then_some(()))
        })?;
        let line = format!("iperf3 --client {} --port 5301 --json {options}", to.v4);
        let output = from.ns.attempt(&line, Duration::from_secs(120))?;
        let report: Value = serde_json::from_str(&output.stdout)
            .with_context(|| format!("iperf3 printed no JSON:\n{output}"))?;
        if let Some(error) = report.get("error") {
            bail!(
                "iperf3 from {} to {}: {error}\n{}",
                from.dev,
                to.dev,
                server.printed()
            );
        }
        Ok(report.get("end").cloned().unwrap_or_default())
    }
}

impl End {
    fn new(ns: Netns, dev: &str, subnet: u8, host: u8) -> Self {
        let (v4, v6) = (
            format!("10.{subnet}.0.{host}"),
            format!("fd00:{subnet}::{host}"),
        );
        Self {
            ns,
            dev: dev.to_owned(),
            v4,
            v6,
        }
    }

    /// Makes a child interface of a partition.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn add_child(&self, name: &str, pkey: u16) -> Result {
        let kind = self.kind()?;
        if kind == KNOWN_KIND {
            let line = format!(
                "ip link add link {} name {name} type {kind} pkey {pkey:#06x}",
                self.dev
            );
            return self.ns.run(&line).map(|_| ());
        }
        self.ns.enter(|| {
            let mut rtnl = Rtnl::new();
            let parent = rtnl.link_named(&self.dev)?.context("no parent")?.index;
            let name = name.to_owned();
            rtnl.create(&NewIpoib {
                name,
                parent,
                kind,
                pkey,
            })?;
            Ok(())
        })?
    }

    /// Takes the interface down, sets its mode and the largest MTU of that mode, leaves it down.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn set_mode(&self, mode: Mode) -> Result {
        self.ns.run(&format!("ip link set {} down", self.dev))?;
        if self.kind()? == KNOWN_KIND {
            let line = format!("ip link set {} type {KNOWN_KIND} mode {mode}", self.dev);
            self.ns.run(&line)?;
        } else {
            self.write("mode", &mode.to_string())?;
        }
        if mode == Mode::Connected {
            self.ns
                .run(&format!("ip link set {} mtu 65520", self.dev))?;
        }
        Ok(())
    }

    /// Returns what it knows of its neighbours, and what the other end is: to explain that one doesn't
    /// reach the other.
    fn view(&self, other: &Self) -> String {
        let told = [
            (self, format!("ip neigh show dev {}", self.dev)),
            (other, format!("ip -s link show {}", other.dev)),
        ];
        let mut text = String::new();
        for (end, line) in told {
            let output = end.ns.attempt(&line, WAY_LIMIT);
            text.push_str(
                &output.map_or_else(|error| error.to_string(), |output| output.to_string()),
            );
        }
        text
    }

    /// Returns its P_Key as the driver shows it, e.g. `0x8001`.
    ///
    /// # Errors
    ///
    /// When the driver shows none.
    pub fn pkey(&self) -> Result<String> {
        // The in-tree driver has no file of it for children made by rtnetlink.
        if self.kind()? == KNOWN_KIND {
            self.detail("linkinfo/info_data/key")
        } else {
            self.file("pkey")
        }
    }

    /// Reads one of its files in sysfs, e.g. `mode`, without the newline at the end.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub fn file(&self, name: &str) -> Result<String> {
        let text = self
            .ns
            .run(&format!("cat /sys/class/net/{}/{name}", self.dev))?;
        Ok(text.trim_end().to_owned())
    }

    /// Writes to one of its files in sysfs.
    ///
    /// # Errors
    ///
    /// When there is no such file, or the driver refuses.
    pub fn write(&self, name: &str, text: &str) -> Result {
        self.try_write(name, text)?.success().map(|_| ())
    }

    /// Writes to one of its files in sysfs, whatever comes of it.
    ///
    /// # Errors
    ///
    /// When no shell can be started.
    pub fn try_write(&self, name: &str, text: &str) -> Result<Output> {
        // Only a process of the namespace's own sees its sysfs.
        let script = std::env::temp_dir().join(format!("write-{}.sh", self.dev));
        let line = format!("echo '{text}' > /sys/class/net/{}/{name}\n", self.dev);
        std::fs::write(&script, line)?;
        self.ns
            .attempt(&format!("sh {}", script.display()), WAY_LIMIT)
    }

    /// Gives it its addresses and takes it up.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn bring_up(&self) -> Result {
        self.ns.run(&format!("ip link set {} up", self.dev))?;
        self.ns
            .run(&format!("ip addr replace {}/24 dev {}", self.v4, self.dev))?;
        // Duplicate detection takes a second, and same-P_Key children share their GID.
        self.ns
            .run(&format!(
                "ip addr replace {}/64 dev {} nodad",
                self.v6, self.dev
            ))
            .map(|_| ())
    }

    /// Says whether it is administratively up (`IFF_UP`).
    ///
    /// # Errors
    ///
    /// When it isn't there.
    pub fn is_up(&self) -> Result<bool> {
        let text = self.ns.run(&format!("ip -j link show {}", self.dev))?;
        let links: Value = serde_json::from_str(&text)?;
        let flags = links.pointer("/0/flags").and_then(Value::as_array);
        let flags = flags.with_context(|| format!("ip shows no flags of {}:\n{text}", self.dev))?;
        Ok(flags.iter().any(|flag| flag == "UP"))
    }

    /// Waits until the link is there (operational state UP), or gone.
    ///
    /// # Errors
    ///
    /// When it isn't within 20 s.
    pub fn wait_link(&self, guest: &Guest, up: bool) -> Result {
        let what = format!(
            "{} of {}",
            if up { "link" } else { "loss of link" },
            self.dev
        );
        guest.wait_for(&what, LINK_LIMIT, || {
            Ok(((self.detail("operstate")? == "UP") == up).then_some(()))
        })
    }

    /// Returns one field of `ip -d -j link show`, e.g. `mtu` or `linkinfo/info_data/mode`, as text.
    ///
    /// # Errors
    ///
    /// When there is no such field.
    pub fn detail(&self, path: &str) -> Result<String> {
        let text = self.ns.run(&format!("ip -d -j link show {}", self.dev))?;
        let links: Value = serde_json::from_str(&text)?;
        let value = links.pointer(&format!("/0/{path}"));
        let value =
            value.with_context(|| format!("ip shows no {path} of {}:\n{text}", self.dev))?;
        Ok(value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned))
    }

    /// Returns the rtnetlink kind under which its driver is registered.
    ///
    /// # Errors
    ///
    /// When it is none of a kind.
    pub fn kind(&self) -> Result<String> {
        self.detail("linkinfo/info_kind")
    }

    /// Returns one of the counters of `ip -s link`, e.g. `tx/dropped`.
    ///
    /// # Errors
    ///
    /// When there is no such counter.
    pub fn statistic(&self, path: &str) -> Result<u64> {
        let text = self.ns.run(&format!("ip -s -j link show {}", self.dev))?;
        let links: Value = serde_json::from_str(&text)?;
        let value = links.pointer(&format!("/0/stats64/{path}"));
        value
            .and_then(Value::as_u64)
            .with_context(|| format!("ip counts no {path} of {}:\n{text}", self.dev))
    }

    /// Reads the driver's counters, by their names in `ethtool -S`.
    ///
    /// # Errors
    ///
    /// When it has none.
    pub fn counters(&self) -> Result<Stats> {
        let text = self.ns.run(&format!("ethtool -S {}", self.dev))?;
        let lines: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.replace(':', " "))
            .collect();
        Stats::parse(&lines.join("\n"))
    }

    /// Returns its 20-byte link-layer address (RFC 4391, 9.1.1).
    ///
    /// # Errors
    ///
    /// When it has none of that length.
    pub fn address(&self) -> Result<[u8; 20]> {
        let text = self.detail("address")?;
        let bytes: Vec<u8> = text
            .split(':')
            .map(|word| u8::from_str_radix(word, 16))
            .collect::<std::result::Result<_, _>>()?;
        let bytes = bytes.try_into();
        bytes.map_err(|_| anyhow::anyhow!("{} has the address {text}", self.dev))
    }

    /// Returns the echo replies that came to its namespace, for whomever.
    fn echo_replies(&self) -> Result<u64> {
        let text = self.ns.run("cat /proc/net/snmp /proc/net/snmp6")?;
        replies(&text).with_context(|| format!("no counts of echo replies:\n{text}"))
    }

    /// Pings one address of another end; no packet may be lost.
    ///
    /// With one exception, and once: what a driver drops while it asks for a path, and counts as dropped. An event of
    /// the port flushes the paths (drivers/infiniband/ulp/ipoib/ipoib_ib.c, `ipoib_ib_dev_flush_light`), maybe long
    /// after the link is up; until the path is back the stock driver keeps three packets per neighbour
    /// (`IPOIB_MAX_PATH_REC_QUEUE`) and drops the rest, such as an 8000-byte ping's fourth fragment. A loss that
    /// neither end counts is a failure at once.
    ///
    /// # Errors
    ///
    /// With ping's words, when a packet is lost.
    pub fn ping(&self, to: &Self, address: &str, count: u32, size: u32) -> Result {
        let line = format!("ping -n -c {count} -i 0.05 -W 5 -s {size} {address}");
        let dropped =
            || -> Result<u64> { Ok(self.statistic("tx/dropped")? + to.statistic("tx/dropped")?) };
        let before = dropped()?;
        let heard = self.echo_replies()?;
        let output = self.ns.attempt(&line, PING_LIMIT)?;
        let Some(lost) = lost(&output.stdout, count) else {
            bail!("ping from {} reports no count:\n{output}", self.dev);
        };
        // Once one reply came, ping waits for the others no longer than its interval: on a busy host they may be late.
        let all = heard + u64::from(count);
        let end = Instant::now() + LATE_LIMIT;
        let mut came = lost == 0;
        while !came && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
            came = self.echo_replies()? >= all;
        }
        if came {
            return Ok(());
        }
        let counted = dropped()? - before;
        if counted < u64::from(lost) {
            let counters = self.view(to);
            bail!(
                "{} lost {lost} of {count} packets, and the drivers count {counted} as dropped:\n{output}{counters}",
                self.dev
            );
        }
        let again = self.ns.attempt(&line, PING_LIMIT)?;
        if self::lost(&again.stdout, count) != Some(0) {
            let counters = self.view(to);
            bail!(
                "{} lost packets twice:\n{output}{again}{counters}",
                self.dev
            );
        }
        Ok(())
    }
}

/// Adds the echo replies of ICMP and ICMPv6 up, as /proc/net/snmp and /proc/net/snmp6 show them.
fn replies(text: &str) -> Option<u64> {
    let mut v4 = text.lines().filter(|line| line.starts_with("Icmp: "));
    let (names, values) = (v4.next()?, v4.next()?);
    let place = names.split(' ').position(|name| name == "InEchoReps")?;
    let v4: u64 = values.split(' ').nth(place)?.parse().ok()?;
    let v6 = text
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| {
            let named = words.next() == Some("Icmp6InEchoReplies");
            named.then(|| words.next()?.parse::<u64>().ok()).flatten()
        })?;
    Some(v4 + v6)
}

/// Reads from ping's summary how many packets were lost.
fn lost(summary: &str, count: u32) -> Option<u32> {
    let (head, _) = summary.split_once(" received")?;
    let received: u32 = head.rsplit(' ').next()?.parse().ok()?;
    count.checked_sub(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_replies_of_both_families_add_up() {
        let text = "Ip: Forwarding\nIp: 2\nIcmp: InMsgs InEchos InEchoReps\nIcmp: 9 1 8\n\
            Ip6InReceives \t30\nIcmp6InEchoReplies              \t4\n";
        assert_eq!(replies(text), Some(12));
        assert_eq!(replies("Icmp: InMsgs\n"), None);
    }

    #[test]
    fn losses_are_read() {
        let summary = |received| {
            format!(
                "--- 10.9.0.2 ping statistics ---\n3 packets transmitted, {received} received, 0% packet loss"
            )
        };
        assert_eq!(lost(&summary(3), 3), Some(0));
        assert_eq!(lost(&summary(1), 3), Some(2));
        assert_eq!(lost("ping: connect: Network is unreachable", 3), None);
    }
}
