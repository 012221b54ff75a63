// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many interfaces, and a daemon that is killed at any moment.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Home, Net, is_long, wait};

const DECLARED: &str =
    "[[link]]\nmatch = { name = \"v*\" }\nmtu = 1400\ntxqueuelen = 77\nalias = \"kept\"\n";

fn pairs(from: u32, to: u32) -> Vec<String> {
    let pair = |n| format!("link add v{n} type veth peer name p{n}");
    (from..to).map(pair).collect()
}

#[track_caller]
fn all_as_declared(net: &Net, count: u32) {
    for n in 0..count {
        let link = format!("v{n}");
        net.wait_sysfs(&link, "mtu", "1400");
        net.wait_sysfs(&link, "tx_queue_len", "77");
        net.wait_sysfs(&link, "ifalias", "kept");
    }
}

/// 300 interfaces, or 4,000 in the long form.
#[test]
fn many_interfaces_that_appear_at_once() {
    let count = if is_long() { 4000 } else { 300 };
    let net = Net::new();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    net.batch(&pairs(0, count));
    all_as_declared(&net, count);
    wait("all to be well", || {
        let status = daemon.status();
        if status.ok && status.links.len() == usize::try_from(count).unwrap() {
            Ok(())
        } else {
            Err(status.counters)
        }
    });
    let drifts: Vec<String> = (0..count)
        .map(|n| format!("link set v{n} mtu 1300"))
        .collect();
    net.batch(&drifts);
    all_as_declared(&net, count);
}

#[test]
fn killed_at_any_moment_it_converges_at_the_next_start() {
    let net = Net::new();
    let home = Home::with(DECLARED);
    net.batch(&pairs(0, 40));
    // A fixed sequence of waits, so that a failure can be seen again.
    let mut random: u32 = 20_261_201;
    for _ in 0..15 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lines: Vec<String> = (0..40).map(|n| format!("link set v{n} mtu 1300")).collect();
        net.batch(&lines);
        let mut daemon = home.spawn(&[], None);
        std::thread::sleep(Duration::from_micros(u64::from(random >> 12) % 80_000));
        daemon.signal(Signal::SIGKILL);
        daemon.ended();
    }
    let daemon = home.start(&[]);
    all_as_declared(&net, 40);
    assert!(daemon.status().ok);
}
