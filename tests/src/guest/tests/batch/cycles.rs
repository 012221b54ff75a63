// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The module comes, carries, has its knobs turned, and goes, again and again.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::Task;
use crate::guest::tests::scenario::{Drivers, OURS, STOCK, Setup};
use crate::guest::tests::stock;
use crate::guest::{Guest, Result, memory, traffic};
use crate::lab::machine::Shape;

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.cycles",
        "load, carry, set every knob at random, unload, again and again, without a leak",
        |guest| {
            let rounds = if guest.long() { 500 } else { 10 };
            cycles(guest, rounds, &[Drivers::Ours], one)
        },
    )
    .shape(Shape::CHECKED)
    .limit(600)
    .long_limit(14_400),
    Task::new(
        "batch.cycles_children",
        "the same with children and changes of the mode under traffic",
        |guest| {
            let rounds = if guest.long() { 500 } else { 6 };
            cycles(guest, rounds, &[Drivers::Ours], one_with_children)
        },
    )
    .shape(Shape::CHECKED)
    .limit(600)
    .long_limit(14_400),
    Task::new(
        "batch.cycles_with_stock",
        "the same, with the in-tree driver in between",
        |guest| {
            let drivers = [
                Drivers::Ours,
                Drivers::Stock,
                Drivers::OursToStock,
                Drivers::StockToOurs,
            ];
            cycles(guest, if guest.long() { 50 } else { 4 }, &drivers, one)
        },
    )
    .shape(Shape::CHECKED)
    .limit(300)
    .long_limit(3600)
    .allow(stock::KNOWN),
];

/// Numbers that look random and are the same each time (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        let index = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        list[index]
    }
}

/// Where modprobe looks for parameters.
const OPTIONS: &str = "/etc/modprobe.d/lab.conf";

/// That file: gone with the test, however it ends.
struct Options;

impl Options {
    fn new() -> Result<Self> {
        fs::create_dir_all("/etc/modprobe.d")?;
        fs::write(OPTIONS, "")?;
        Ok(Self)
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // It fails only when the file is gone already.
        let _ = fs::remove_file(OPTIONS);
    }
}

/// What is done in each round.
type Round = fn(&Guest, Setup, &mut Random) -> Result;

fn cycles(guest: &Guest, rounds: usize, drivers: &[Drivers], work: Round) -> Result {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let _options = Options::new()?;
    // Slabs and per-CPU lists fill up during the first rounds.
    let warm_up = rounds.div_ceil(4).max(drivers.len());
    let mut start = (0, 0);
    for round in 0..rounds {
        let drivers = drivers[round % drivers.len()];
        work(guest, Setup::usual(drivers, Mode::Datagram), &mut random)
            .with_context(|| format!("round {round}, {drivers:?}"))?;
        if round + 1 == warm_up {
            start = held(guest)?;
        }
    }
    let (kb, skbs) = held(guest)?;
    let counted = f64::from(u32::try_from(rounds - warm_up)?).max(1.0);
    let grown = |now: u64, then: u64| -> Result<f64> {
        Ok(f64::from(u32::try_from(now.saturating_sub(then))?) / counted)
    };
    let (kb, skbs) = (grown(kb, start.0)?, grown(skbs, start.1)?);
    guest.figure(
        "batch.cycles.rounds",
        f64::from(u32::try_from(rounds)?),
        "1",
    );
    guest.figure("batch.cycles.growth_per_round", kb, "kB");
    // The queues of one interface alone are over a megabyte, its receive buffers 512.
    ensure!(kb < 256.0, "memory grows by {kb} kB per round");
    ensure!(skbs < 8.0, "{skbs} socket buffers are left per round");
    Ok(())
}

fn held(guest: &Guest) -> Result<(u64, u64)> {
    let kb = memory::used_kb(guest)?;
    Ok((kb, memory::objects(guest, "skbuff_head_cache")?))
}

fn one(guest: &Guest, setup: Setup, random: &mut Random) -> Result {
    round(guest, setup, random, |_, _, _| Ok(()))
}

fn one_with_children(guest: &Guest, setup: Setup, random: &mut Random) -> Result {
    round(guest, setup, random, children_and_modes)
}

/// One round, with something more to do while traffic flows.
fn round(
    guest: &Guest,
    setup: Setup,
    random: &mut Random,
    more: fn(&Guest, &Pair, &mut Random) -> Result,
) -> Result {
    guest.load("vhca hcas=2 managed=1")?;
    // Ring sizes of new interfaces; they change at run time, too.
    let options = format!(
        "options {OURS} send_queue_size={} recv_queue_size={}\n",
        128 << random.below(5),
        64 << random.below(6)
    );
    guest.write(OPTIONS, &options)?;
    let pair = setup.pair(guest)?;
    let load = traffic::flood(&pair)?;
    for end in [&pair.a, &pair.b] {
        if setup.is_ours(&pair, end) {
            turn_knobs(end, random)?;
        }
    }
    more(guest, &pair, random)?;
    drop(load);
    pair.wait_ready(guest)?;
    pair.ping(2, 3000)?;
    for name in ["a", "b"] {
        guest.run(&format!("ip netns del {name}"))?;
    }
    // Either may go first, the HCA with its users still there.
    let mut modules: Vec<&str> = setup.modules().iter().copied().chain(["vhca"]).collect();
    if random.below(3) == 0 {
        modules.reverse();
    }
    for module in modules {
        guest.wait_for(
            &format!("unloading of {module}"),
            Duration::from_secs(30),
            || guest.unload(module).map(Some),
        )?;
    }
    for module in [OURS, STOCK, "vhca"] {
        ensure!(!guest.is_loaded(module)?, "{module} is still loaded");
    }
    Ok(())
}

/// Makes children of either kind, changes modes while parents and children carry, and deletes some of the children: the
/// others go with their parent.
fn children_and_modes(guest: &Guest, pair: &Pair, random: &mut Random) -> Result {
    let ends = [&pair.a, &pair.b];
    // Whether the first or the second end's was made by the old file.
    let old = [random.below(2) == 0, random.below(2) == 0];
    for ((number, end), old) in ends.into_iter().enumerate().zip(old) {
        let dev = &end.dev;
        if !old {
            end.ns.run(&format!(
                "ip link add link {dev} name {dev}.8001 type ipoib pkey 0x8001"
            ))?;
        } else {
            end.write("create_child", "0x8001")?;
        }
        end.ns.run(&format!(
            "ip addr add 10.81.0.{}/24 dev {dev}.8001",
            number + 1
        ))?;
        end.ns.run(&format!("ip link set {dev}.8001 up"))?;
    }
    let modes = ["datagram", "connected"];
    for _ in 0..4 {
        let end = random.of(&ends);
        let mode = random.of(&modes);
        if random.below(2) == 0 {
            end.write("mode", mode)?;
        } else {
            let child = format!("{}.8001", end.dev);
            end.ns
                .run(&format!("ip link set {child} type ipoib mode {mode}"))?;
        }
    }
    let last = random.of(&modes);
    for end in ends {
        end.write("mode", last)?;
    }
    guest.wait_for("an answer over children", Duration::from_secs(60), || {
        let line = "ping -n -c 1 -W 2 10.81.0.2";
        let done = pair.a.ns.attempt(line, Duration::from_secs(20))?;
        Ok(done.status.success().then_some(()))
    })?;
    if random.below(2) == 0 {
        return pair
            .b
            .ns
            .run(&format!("ip link del {}.8001", pair.b.dev))
            .map(|_| ());
    }
    match old {
        [true, _] => pair.a.write("delete_child", "0x8001"),
        [false, _] => pair
            .a
            .ns
            .run(&format!("ip link del {}.8001", pair.a.dev))
            .map(|_| ()),
    }
}

/// Sets each knob of the driver to a value of its range, through one of its channels.
fn turn_knobs(end: &End, random: &mut Random) -> Result {
    let dev = &end.dev;
    let via = ["rtnetlink", "ethtool", "sysfs"];
    let mut lines = vec![
        format!(
            "ibctl set {dev} batching={} --via {}",
            random.of(&["off", "on", "adaptive"]),
            random.of(&via)
        ),
        format!(
            "ibctl set {dev} batch-limit={} --via {}",
            1 + random.below(64),
            random.of(&via)
        ),
        format!(
            "ethtool -C {dev} rx-usecs {} rx-frames {}",
            random.below(200),
            random.below(32)
        ),
        format!(
            "ethtool -G {dev} rx {} tx {}",
            64 << random.below(6),
            128 << random.below(5)
        ),
        format!("ip link set {dev} mtu {}", 1280 + random.below(765)),
        format!("ip link set {dev} txqueuelen {}", 16 + random.below(2000)),
        format!("ethtool -K {dev} gro {}", random.of(&["on", "off"])),
        format!(
            "ethtool -K {dev} gso {} sg {}",
            random.of(&["on", "off"]),
            random.of(&["on", "off"])
        ),
    ];
    // In any order.
    for index in (1..lines.len()).rev() {
        let other = usize::try_from(random.below(index as u64 + 1))?;
        lines.swap(index, other);
    }
    for line in lines {
        end.ns.run(&line)?;
    }
    end.write("umcast", &random.below(2).to_string())
}
