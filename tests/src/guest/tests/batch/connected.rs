// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connected mode of our driver: what goes wrong with connections, and what only it has.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::guest::ipoib::{End, Mode, Pair};
use crate::guest::task::{Fabric, Task};
use crate::guest::{Guest, Result, traffic};
use crate::lab::machine::Shape;

/// How long a connection may take to end, or to be made anew.
const LIMIT: Duration = Duration::from_secs(30);

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "batch.connected_breaks",
        "receivers without buffers, lost messages, refused requests: connections are made anew, counters add up",
        breaks,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(120),
    Task::new(
        "batch.connected_refused",
        "a neighbour that rejects or does not answer: datagrams, and their MTU for the sender",
        refused,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.connected_idle",
        "unused connections are given up at both ends, and made again",
        idle,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.connected_copybreak",
        "small packets are copied up to the threshold, with 0 none",
        copybreak,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
    Task::new(
        "batch.connected_own_queues",
        "an HCA without shared receive queues: each connection has its own",
        own_queues,
    )
    .shape(Shape::CHECKED)
    .limit(120),
    Task::new(
        "batch.mode_flip",
        "the mode changes under traffic both ways, and packets flow on",
        mode_flip,
    )
    .fabric(Fabric::Managed, 2)
    .shape(Shape::CHECKED)
    .limit(180)
    .long_limit(1800),
    Task::new(
        "batch.connected_mixed",
        "connected mode at one end, datagram mode at the other",
        mixed,
    )
    .fabric(Fabric::Managed, 2)
    .limit(120),
];

fn connected(guest: &Guest, options: &str) -> Result<Pair> {
    guest.load(&format!("ipoib_batch {options}"))?;
    Pair::of_loaded(guest, Mode::Connected)
}

/// Waits until a counter of an interface has grown.
fn grows(guest: &Guest, end: &End, name: &str, before: u64) -> Result {
    guest.wait_for(&format!("{name} of {}", end.dev), LIMIT, || {
        Ok((end.counters()?.get(name)? > before).then_some(()))
    })
}

/// Each packet that a ping or a flood handed over is in one counter: what left as a message or a datagram is what the HCA
/// counts, and nothing is left on its way.
fn adds_up(guest: &Guest, end: &End) -> Result {
    guest
        .wait_for("completion of all sends", LIMIT, || {
            let counters = end.counters()?;
            let posted = counters.get("tx_wrs")?;
            let gone = counters.get("tx_packets")?
                + counters.get("tx_drop_send")?
                + counters.get("tx_drop_connection")?;
            Ok((posted == gone).then_some(()))
        })
        .with_context(|| {
            format!(
                "{:?}",
                end.counters().map(|counters| counters.all().clone())
            )
        })
}

fn breaks(guest: &mut Guest) -> Result {
    let pair = connected(guest, "recv_queue_size=64")?;
    pair.ping(3, 60000)?;
    let (sender, receiver) = (&pair.a, guest.vhca(1));
    for (name, faults, counter) in [
        ("rnr", &[("rnr_next", "1")][..], "cm_rnr_exhausted"),
        ("loss", &[("loss_next", "1")][..], "cm_retries_exhausted"),
    ] {
        // A lost message is lost at the sender.
        let hca = if name == "rnr" {
            receiver
        } else {
            guest.vhca(0)
        };
        for round in 0..3 {
            let before = sender.counters()?;
            for (file, value) in faults {
                hca.fault(file, value)?;
            }
            let line = format!("ping -n -c 20 -i 0.05 -s 20000 -q {}", pair.b.v4);
            let _lost = sender.ns.attempt(&line, LIMIT)?;
            grows(guest, sender, counter, before.get(counter)?)
                .with_context(|| format!("{name}, round {round}"))?;
            pair.wait_reachable(guest)?;
            pair.ping(2, 20000)
                .with_context(|| format!("after {name}, round {round}"))?;
            let opened = sender.counters()?.get("cm_active_opened")?;
            ensure!(
                opened > before.get("cm_active_opened")?,
                "{name}: no connection was made anew"
            );
        }
    }
    // No receive buffer can be posted for a while: the shared queue runs empty, and is filled again.
    let load = traffic::flood(&pair)?;
    receiver.fault("post_recv_wr", "0")?;
    receiver.fault("post_recv_next", "100")?;
    thread::sleep(Duration::from_secs(1));
    receiver.fault("post_recv_next", "0")?;
    drop(load);
    // A flood of large packets into 64 buffers.
    let flood = format!(
        "iperf3 --client {} --port 5306 --udp --bitrate 0 --length 30000 --time 2",
        pair.b.v4
    );
    let _server = pair.b.ns.start("iperf3 --server --one-off --port 5306")?;
    thread::sleep(Duration::from_secs(1));
    let _some_lost = sender.ns.attempt(&flood, LIMIT)?;
    pair.wait_reachable(guest)?;
    pair.ping(3, 60000)?;
    for end in [&pair.a, &pair.b] {
        adds_up(guest, end)?;
    }
    guest.unload("ipoib_batch")
}

/// Has an end send to a neighbour without asking whether it is there.
fn pin(from: &End, to: &End) -> Result {
    let address: Vec<String> = to
        .address()?
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let line = format!(
        "ip neigh replace {} lladdr {} dev {} nud permanent",
        to.v4,
        address.join(":"),
        from.dev
    );
    from.ns.run(&line).map(|_| ())
}

fn refused(guest: &mut Guest) -> Result {
    let pair = connected(guest, "cm_idle_ms=1000")?;
    pin(&pair.a, &pair.b)?;
    grows(guest, &pair.a, "cm_active_reaped", 0)?;
    // It is down: nobody takes requests for its service.
    pair.b.ns.run(&format!("ip link set {} down", pair.b.dev))?;
    let before = pair.a.counters()?;
    let ping = format!("ping -n -c 60 -i 0.1 -M do -s 20000 {}", pair.b.v4);
    let words = pair.a.ns.attempt(&ping, LIMIT)?.to_string();
    let after = pair.a.counters()?.since(&before);
    ensure!(after.get("cm_rejects")? > 0, "no reject: {:?}", after.all());
    ensure!(
        after.get("cm_requests")? < 20,
        "{} requests in 6 s",
        after.get("cm_requests")?
    );
    guest.contains("the MTU of datagrams is told", &words, "mtu = 2044")?;
    ensure!(after.get("cm_told_too_large")? > 0, "nobody was told");
    // It comes back, with connections.
    let opened = pair.a.counters()?.get("cm_active_opened")?;
    pair.b.bring_up()?;
    pair.a.ns.run("ip route flush cache")?;
    pin(&pair.a, &pair.b)?;
    pair.wait_ready(guest)?;
    let line = format!("ping -n -c 1 -W 1 {}", pair.b.v4);
    guest.wait_for("a connection", LIMIT, || {
        let _answer = pair.a.ns.attempt(&line, LIMIT)?;
        Ok((pair.a.counters()?.get("cm_active_opened")? > opened).then_some(()))
    })?;
    // Replies get lost on the way: no answer, for good. The path query is answered by the own HCA.
    grows(
        guest,
        &pair.a,
        "cm_active_reaped",
        pair.a.counters()?.get("cm_active_reaped")?,
    )?;
    let before = pair.a.counters()?.get("cm_timeouts")?;
    guest.vhca(1).fault("mads", "1")?;
    guest.vhca(1).fault("loss", "1000")?;
    let _lost = pair.a.ns.attempt(&line, LIMIT)?;
    let answer = grows(guest, &pair.a, "cm_timeouts", before);
    guest.vhca(1).fault("loss", "0")?;
    answer?;
    pair.wait_reachable(guest)?;
    pair.ping(2, 56)
}

fn idle(guest: &mut Guest) -> Result {
    let pair = connected(guest, "cm_idle_ms=2000")?;
    for _ in 0..2 {
        let before = [pair.a.counters()?, pair.b.counters()?];
        pair.ping(2, 30000)?;
        for (end, before) in [&pair.a, &pair.b].into_iter().zip(before) {
            let opened = before.get("cm_active_reaped")?;
            grows(guest, end, "cm_active_reaped", opened)?;
            guest.wait_for("end of connections to it", LIMIT, || {
                let counters = end.counters()?;
                let (made, closed) = (
                    counters.get("cm_passive_accepted")?,
                    counters.get("cm_passive_closed")?,
                );
                Ok((made > 0 && made == closed).then_some(()))
            })?;
        }
    }
    for end in [&pair.a, &pair.b] {
        let counters = end.counters()?;
        guest.same("late steps", counters.get("cm_late")?, 0)?;
        guest.same("failed", counters.get("cm_active_failed")?, 0)?;
    }
    pair.ping(2, 30000)
}

fn copybreak(guest: &mut Guest) -> Result {
    let pair = connected(guest, "")?;
    pair.ping(2, 56)?;
    // Payload is the IP packet: 28 bytes more than ping's.
    for (threshold, size, copied) in [
        (256, 228, true),
        (256, 229, false),
        (2048, 2020, true),
        (2048, 2021, false),
        (0, 56, false),
        (60, 56, false),
    ] {
        for (end, via) in [(&pair.a, "ethtool"), (&pair.b, "sysfs")] {
            end.ns.run(&format!(
                "ibctl set {} cm-copybreak={threshold} --via {via}",
                end.dev
            ))?;
        }
        let before = pair.b.counters()?;
        let line = format!("ping -n -c 10 -i 0.05 -s {size} {}", pair.b.v4);
        pair.a.ns.run(&line)?;
        let grown = pair.b.counters()?.since(&before);
        let (got, hits) = (grown.get("cm_rx_packets")?, grown.get("cm_rx_copied")?);
        ensure!(got >= 10, "{got} packets over the connection");
        // ARP of the neighbours comes in between at times.
        ensure!(
            if copied { hits >= 10 } else { hits <= 2 },
            "cm-copybreak={threshold}, {size} bytes: {hits} of {got} copied"
        );
    }
    Ok(())
}

fn own_queues(guest: &mut Guest) -> Result {
    guest.load("vhca hcas=2 managed=1 max_srq=0")?;
    let pair = connected(guest, "cm_idle_ms=2000")?;
    pair.ping(5, 56)?;
    pair.ping(3, 60000)?;
    traffic::send_file(guest, &pair.a, &pair.b, 4 << 20)?;
    traffic::send_file(guest, &pair.b, &pair.a, 4 << 20)?;
    let counters = pair.b.counters()?;
    ensure!(
        counters.get("cm_rx_packets")? > 20,
        "packets went another way: {:?}",
        counters.all()
    );
    grows(guest, &pair.b, "cm_active_reaped", 0)?;
    pair.ping(3, 60000)?;
    for end in [&pair.a, &pair.b] {
        adds_up(guest, end)?;
    }
    guest.unload("ipoib_batch")
}

fn mode_flip(guest: &mut Guest) -> Result {
    guest.load("ipoib_batch")?;
    let pair = Pair::of_loaded(guest, Mode::Datagram)?;
    let rounds = if guest.long() { 50 } else { 2 };
    let load = traffic::start(guest, &pair)?;
    for round in 0..rounds {
        for (mode, mtu) in [(Mode::Connected, "65520"), (Mode::Datagram, "2044")] {
            for end in [&pair.a, &pair.b] {
                if round % 2 == 0 {
                    end.ns
                        .run(&format!("ip link set {} type ipoib mode {mode}", end.dev))?;
                } else {
                    end.write("mode", &mode.to_string())?;
                }
                guest.same("mode", end.file("mode")?, mode.to_string())?;
                guest.same("MTU", end.detail("mtu")?.as_str(), mtu)?;
            }
            thread::sleep(Duration::from_millis(700));
        }
    }
    drop(load);
    pair.wait_ready(guest)?;
    pair.ping(2, 1000)?;
    for end in [&pair.a, &pair.b] {
        adds_up(guest, end)?;
        let counters = end.counters()?;
        ensure!(
            counters.get("cm_rx_packets")? > 0,
            "{}: nothing came over a connection",
            end.dev
        );
    }
    guest.unload("ipoib_batch")
}

fn mixed(guest: &mut Guest) -> Result {
    guest.load("ipoib_batch kind=ipoib_batch hcas=vhca0")?;
    guest.load("ib_ipoib")?;
    let pair = Pair::of_devices(guest, ["ib0", "ib2"], None)?;
    for (ours, stock) in [
        (Mode::Connected, Mode::Datagram),
        (Mode::Datagram, Mode::Connected),
    ] {
        for (end, mode) in [(&pair.a, ours), (&pair.b, stock)] {
            end.set_mode(mode)?;
            end.bring_up()?;
        }
        pair.wait_ready(guest)?;
        let before = guest.vhca(0).stats()?;
        pair.ping(3, 56)?;
        pair.ping(3, 8000)?;
        pair.ping(3, 60000)?;
        traffic::send_file(guest, &pair.a, &pair.b, 2 << 20)?;
        traffic::send_file(guest, &pair.b, &pair.a, 2 << 20)?;
        let grown = guest.vhca(0).stats()?.since(&before);
        let (sent, received) = (grown.get("rc_messages")?, pair.a.counters()?);
        match ours {
            Mode::Connected => ensure!(sent > 20, "{sent} messages sent"),
            Mode::Datagram => ensure!(received.get("cm_rx_packets")? > 20, "{:?}", received.all()),
        }
    }
    Ok(())
}
