// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bad input: refused by each interface of the kernel, with a reason where it has a place for one, and
//! without a change.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use ibmgrd_hw::nl::NlError;
use ibmgrd_hw::rtnl::{IpoibChange, LinkChange, Rtnl};

use super::ours;
use crate::guest::ipoib::End;
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result};

const LIMIT: Duration = Duration::from_secs(20);

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.refused_rtnetlink",
        "rtnetlink refuses bad values and unknown attributes, and says why",
        rtnetlink,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.refused_ethtool",
        "ethtool's netlink refuses bad values, and says why",
        ethtool,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new("batch.refused_sysfs", "sysfs refuses bad values", sysfs).fabric(Fabric::Managed, 2),
    Task::new(
        "batch.refused_ibctl",
        "ibctl refuses bad values through each channel",
        ibctl,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.refused_unprivileged",
        "who is not root changes nothing",
        unprivileged,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.refused_parameters",
        "the module refuses bad parameters, or loads with what they allow",
        parameters,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
];

/// What a knob of the driver can change: read once before all cases, and at their end.
struct State<'a> {
    guest: &'a Guest,
    end: &'a End,
    files: String,
    all: String,
}

impl<'a> State<'a> {
    fn before(guest: &'a Guest, end: &'a End) -> Result<Self> {
        Ok(Self {
            guest,
            end,
            files: files(end)?,
            all: all(end)?,
        })
    }

    /// Does something that is refused; the files show no change.
    fn kept(&self, what: &str, body: impl FnOnce() -> Result) -> Result {
        body().with_context(|| what.to_owned())?;
        let now = files(self.end)?;
        self.guest
            .same(&format!("state after {what}"), &now, &self.files)
    }

    /// Compares all that the tools show.
    fn after(self) -> Result {
        self.guest
            .same("state at the end", all(self.end)?, self.all)
    }
}

/// Reads the files of an interface, in its namespace but without a process for each.
fn files(end: &End) -> Result<String> {
    let names = [
        "ipoib/batching",
        "ipoib/batch_limit",
        "mode",
        "umcast",
        "pkey",
        "mtu",
        "address",
        "flags",
    ];
    let mut line = String::from("cat");
    for name in names {
        line.push_str(&format!(" /sys/class/net/{}/{name}", end.dev));
    }
    end.ns.run(&line)
}

fn all(end: &End) -> Result<String> {
    let mut all = files(end)?;
    for line in ["ethtool --show-priv-flags", "ethtool -c", "ethtool -g"] {
        all.push_str(&end.ns.run(&format!("{line} {}", end.dev))?);
    }
    all.push_str(&end.detail("linkinfo")?);
    all.push_str(&end.ns.run("ip -br link")?);
    Ok(all)
}

/// Sends `RTM_NEWLINK` with attributes that the kernel must refuse; returns errno and reason.
fn change(end: &End, ipoib: IpoibChange) -> Result<(i32, String)> {
    let answer = end.ns.enter(|| -> Result<_> {
        let mut rtnl = Rtnl::new();
        let link = rtnl.link_named(&end.dev)?.context("no such link")?;
        let change = LinkChange {
            ipoib: Some(ipoib),
            ..LinkChange::of(link.index)
        };
        Ok(rtnl.change(&change))
    })??;
    match answer {
        Ok(ack) => bail!("it was taken: {ack:?}"),
        Err(NlError::Refused(refusal)) => {
            let words = [&refusal.message, &refusal.bad_attr];
            let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
            Ok((refusal.errno, words.join(", ")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Numbers of attributes: in-tree's 1 to 3, ours from 32 (`driver/core/src/abi.rs`).
const BATCHING: u16 = 32;
const BATCH_LIMIT: u16 = 33;
const GRO_TIMEOUT: u16 = 35;
const NAPI_DEFER: u16 = 36;

const EINVAL: i32 = 22;
const ERANGE: i32 = 34;
const EOPNOTSUPP: i32 = 95;

fn rtnetlink(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let state = State::before(guest, end)?;
    let kind = end.kind()?;
    let own = |attributes: &[(u16, u32)]| IpoibChange {
        kind: kind.clone(),
        own: attributes.to_vec(),
        ..IpoibChange::default()
    };
    let cases: &[(&str, IpoibChange, i32, &str)] = &[
        (
            "batching 3",
            own(&[(BATCHING, 3)]),
            EINVAL,
            "batching must be",
        ),
        (
            "batching 2^32-1",
            own(&[(BATCHING, u32::MAX)]),
            EINVAL,
            "batching must be",
        ),
        ("limit 0", own(&[(BATCH_LIMIT, 0)]), ERANGE, "1 to 64"),
        ("limit 65", own(&[(BATCH_LIMIT, 65)]), ERANGE, "1 to 64"),
        (
            "limit 2^32-1",
            own(&[(BATCH_LIMIT, u32::MAX)]),
            ERANGE,
            "1 to 64",
        ),
        (
            "deferral 2^31",
            own(&[(NAPI_DEFER, 1 << 31)]),
            ERANGE,
            "napi-defer-hard-irqs must be",
        ),
        (
            "a timeout, then bad",
            own(&[(GRO_TIMEOUT, 20_000), (BATCH_LIMIT, 65)]),
            ERANGE,
            "1 to 64",
        ),
        // The good one of the two is not taken, whichever comes first.
        (
            "good, then bad",
            own(&[(BATCHING, 0), (BATCH_LIMIT, 65)]),
            ERANGE,
            "1 to 64",
        ),
        (
            "bad, then good",
            own(&[(BATCH_LIMIT, 7), (BATCHING, 9)]),
            EINVAL,
            "batching must be",
        ),
        (
            "umcast 2",
            IpoibChange {
                umcast: Some(2),
                ..own(&[(BATCHING, 0)])
            },
            EINVAL,
            "umcast must be",
        ),
        (
            "mode 2",
            IpoibChange {
                mode: Some(2),
                ..own(&[(BATCHING, 0)])
            },
            EINVAL,
            "mode must be",
        ),
        ("another P_Key", own(&[(1, 0x8001)]), EOPNOTSUPP, "P_Key"),
    ];
    for (name, request, errno, reason) in cases {
        state.kept(name, || {
            let (found, words) = change(end, request.clone())?;
            guest.same("errno", found, *errno)?;
            guest.contains("the reason", &words, reason)
        })?;
    }
    // The core hands out numbers up to 49; what nobody defined is not silently ignored.
    for number in [4, 5, 31, 37, 40, 49] {
        let name = format!("unknown attribute {number}");
        state.kept(&name, || {
            let (errno, _) = change(end, own(&[(number, 1), (BATCHING, 0)]))?;
            guest.same("errno", errno, EINVAL)
        })?;
    }
    for line in [
        "ip link set ib0 mtu 67",
        "ip link set ib0 mtu 2045",
        "ip link add link ib0 name x type ipoib pkey 0x8000",
        "ip link add link ib0 name x type ipoib pkey 0",
        "ip link set ib0 address 00:11:22:33:44:55",
    ] {
        state.kept(line, || end.ns.attempt(line, LIMIT)?.refused().map(|_| ()))?;
    }
    state.after()?;
    pair.ping(2, 56)
}

fn ethtool(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let state = State::before(guest, end)?;
    for (line, reason) in [
        ("ethtool -C ib0 tx-frames 0", "1 to 64"),
        ("ethtool -C ib0 tx-frames 65", "1 to 64"),
        ("ethtool -C ib0 rx-usecs 65536", "0 to 65535"),
        ("ethtool -C ib0 rx-frames 65536", "0 to 65535"),
        ("ethtool -C ib0 tx-frames 7 rx-usecs 65536", "0 to 65535"),
        ("ethtool -C ib0 tx-usecs 5", "unsupported"),
        ("ethtool -C ib0 adaptive-rx on", "unsupported"),
        ("ethtool -G ib0 rx 63", "64 to 8192"),
        ("ethtool -G ib0 rx 0", ""),
        ("ethtool -G ib0 rx 8193", ""),
        ("ethtool -G ib0 rx 1000", "powers of two"),
        ("ethtool -G ib0 tx 127", "128 to 8192"),
        ("ethtool -G ib0 tx 8193", ""),
        ("ethtool -G ib0 tx 256 rx 65", "powers of two"),
        ("ethtool -G ib0 rx-mini 64", ""),
        ("ethtool --set-priv-flags ib0 tx-nothing on", ""),
        ("ethtool --set-tunable ib0 rx-copybreak 2049", ""),
        ("ethtool --set-tunable ib0 tx-copybreak 1", ""),
    ] {
        state.kept(line, || {
            let words = end.ns.attempt(line, LIMIT)?.refused()?;
            guest.contains("the reason", &words, reason)
        })?;
    }
    state.after()?;
    pair.ping(2, 56)
}

fn sysfs(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let state = State::before(guest, end)?;
    for (file, text) in [
        ("ipoib/batching", "maybe"),
        ("ipoib/batching", ""),
        ("ipoib/batching", "ON"),
        ("ipoib/batching", "1"),
        ("ipoib/batching", "on off"),
        ("ipoib/batch_limit", "0"),
        ("ipoib/batch_limit", "65"),
        ("ipoib/batch_limit", "-1"),
        ("ipoib/batch_limit", "4294967297"),
        ("ipoib/batch_limit", "x"),
        ("ipoib/batch_limit", ""),
        ("ipoib/batch_limit", "7 frames"),
        ("umcast", "2"),
        ("umcast", "yes"),
        ("umcast", ""),
        ("mode", "both"),
        ("mode", ""),
        ("mode", "Connected"),
        ("ipoib/cm_copybreak", "2049"),
        ("ipoib/cm_copybreak", "-1"),
        ("ipoib/cm_copybreak", ""),
        ("create_child", "0"),
        ("create_child", "0x8000"),
        ("create_child", "0x18001"),
        ("create_child", "0xffff"),
        ("delete_child", "0x8001"),
        ("delete_child", "child"),
        ("pkey", "0x8001"),
    ] {
        state.kept(&format!("{text:?} in {file}"), || {
            end.try_write(file, text)?.refused().map(|_| ())
        })?;
    }
    state.after()?;
    pair.ping(2, 56)
}

fn ibctl(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let state = State::before(guest, end)?;
    for via in ["rtnetlink", "ethtool", "sysfs"] {
        for setting in [
            "batching=maybe",
            "batch-limit=0",
            "batch-limit=65",
            "cm-copybreak=2049",
        ] {
            let line = format!("ibctl set ib0 {setting} --via {via}");
            state.kept(&line, || {
                end.ns.attempt(&line, LIMIT)?.refused().map(|_| ())
            })?;
        }
    }
    state.after()
}

fn unprivileged(guest: &mut Guest) -> Result {
    let pair = ours(guest)?;
    let end = &pair.a;
    let state = State::before(guest, end)?;
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all";
    for line in [
        "ibctl set ib0 batching=off --via rtnetlink",
        "ibctl set ib0 batching=off --via ethtool",
        "ibctl set ib0 batching=off --via sysfs",
        "ethtool --set-priv-flags ib0 tx-batching off",
        "ethtool -C ib0 tx-frames 9",
        "ethtool -G ib0 rx 128",
        "ip link set ib0 type ipoib umcast 1",
        "ip link set ib0 down",
        "ip link del ib0",
    ] {
        state.kept(line, || {
            let output = end.ns.attempt(&format!("{nobody} {line}"), LIMIT)?;
            let words = output.refused()?;
            let why = ["ermitted", "ermission", "EPERM", "EACCES"];
            ensure!(
                why.iter().any(|part| words.contains(part)),
                "refused for another reason:\n{words}"
            );
            Ok(())
        })?;
    }
    for file in [
        "ipoib/batching",
        "ipoib/batch_limit",
        "umcast",
        "mode",
        "create_child",
    ] {
        state.kept(file, || {
            let script = format!("echo 1 > /sys/class/net/{}/{file}\n", end.dev);
            guest.write("/tmp/write.sh", &script)?;
            let output = end
                .ns
                .attempt(&format!("{nobody} sh /tmp/write.sh"), LIMIT)?;
            let words = output.refused()?;
            guest.contains("the reason", &words, "ermission")
        })?;
    }
    state.after()?;
    // Reading is everybody's.
    end.ns.run(&format!("{nobody} ibctl show ib0"))?;
    end.ns.run(&format!("{nobody} ethtool -S ib0")).map(|_| ())
}

fn parameters(guest: &mut Guest) -> Result {
    for line in ["ipoib_batch hcas=vhca0:2", "ipoib_batch hcas=nobody"] {
        // Nothing of that name is there: it loads, and takes nothing.
        guest.load(line)?;
        let links = guest.run("ip -br link")?;
        ensure!(!links.contains("ib0"), "{line} made\n{links}");
        guest.unload("ipoib_batch")?;
    }
    for (line, tx, rx) in [
        ("ipoib_batch send_queue_size=1 recv_queue_size=1", 128, 64),
        (
            "ipoib_batch send_queue_size=100000 recv_queue_size=100000",
            8192,
            8192,
        ),
        (
            "ipoib_batch send_queue_size=200 recv_queue_size=200",
            256,
            256,
        ),
    ] {
        guest.load(line)?;
        let rings = guest.run("ethtool -g ib0")?;
        let now = rings.split("Current").nth(1).unwrap_or_default();
        let field = |name: &str| -> Result<u32> {
            let text = now.lines().find_map(|line| line.strip_prefix(name));
            Ok(text
                .with_context(|| format!("no {name} in:\n{rings}"))?
                .trim()
                .parse()?)
        };
        guest.same(line, (field("TX:")?, field("RX:")?), (tx, rx))?;
        guest.unload("ipoib_batch")?;
    }
    let taken = {
        guest.load("ib_ipoib")?;
        guest.attempt("modprobe ipoib_batch")?
    };
    taken.refused()?;
    ensure!(
        !guest.is_loaded("ipoib_batch")?,
        "loaded beside ib_ipoib under the same kind"
    );
    Ok(())
}
