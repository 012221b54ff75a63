// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each change that ip(8), ethtool(8) and sysfs make gives its event.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use ibmgrd_hw::watch::{Event, Watch, Why};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::namespace::{Namespace, run};

/// Longer than the kernel needs; a test that waits so long fails.
const LIMIT: Duration = Duration::from_secs(5);

struct Watched {
    watch: Watch,
    _namespace: Namespace,
}

impl Watched {
    fn veth() -> Self {
        let namespace = Namespace::with_veth();
        let watch = Watch::open().unwrap();
        Self {
            watch,
            _namespace: namespace,
        }
    }

    /// Waits for an event that `is_it`; others are what comes along.
    #[track_caller]
    fn await_event(&mut self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        let end = Instant::now() + LIMIT;
        let mut others = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.watch.next(Some(left)).unwrap() {
                Some(event) if is_it(&event) => return event,
                Some(event) => others.push(event),
                None => panic!("{what}: no such event, but {others:?}"),
            }
        }
    }

    /// Runs a command and waits until `knob` of `link` is said to have changed.
    #[track_caller]
    fn changes(&mut self, command: &str, link: &str, knob: &str) {
        run(command);
        self.await_event(command, |event| told(event, link, knob));
    }

    fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.watch.next(Some(Duration::from_millis(50))).unwrap() {
            events.push(event);
        }
        events
    }
}

fn told(event: &Event, link: &str, knob: &str) -> bool {
    matches!(event, Event::Changed { name, knobs, .. }
        if name.as_str() == link && knobs.iter().any(|row| row.name == knob))
}

#[test]
fn attributes_that_ip_changes() {
    let mut watched = Watched::veth();
    watched.changes("ip link set v0 mtu 1400", "v0", "mtu");
    watched.changes("ip link set v0 txqueuelen 77", "v0", "txqueuelen");
    watched.changes("ip link set v0 up", "v0", "state");
    watched.changes("ip link set v0 alias rail", "v0", "alias");
    watched.changes("ip link set v0 down", "v0", "gro-flush-timeout");
}

#[test]
fn what_changes_while_down_is_told_of_when_it_goes_up() {
    let mut watched = Watched::veth();
    run("ip link set v0 alias rail");
    let events = watched.drain();
    let told_early = |event: &Event| told(event, "v0", "alias");
    assert!(
        !events.iter().any(told_early),
        "a kernel that tells of it needs no polling: {events:?}"
    );
    watched.changes("ip link set v0 up", "v0", "alias");
}

#[test]
fn settings_that_ethtool_changes() {
    let mut watched = Watched::veth();
    watched.changes("ethtool -L v0 rx 2", "v0", "channels.rx");
    watched.changes("ethtool -K v0 gro on", "v0", "feature");
    run("ip tuntap add t0 mode tun");
    watched.await_event(
        "t0 appears",
        |event| matches!(event, Event::Created { name, .. } if name.as_str() == "t0"),
    );
    watched.changes("ethtool -C t0 rx-frames 9", "t0", "rx-frames");
}

#[test]
fn files_that_are_told_of() {
    let mut watched = Watched::veth();
    let write = |file: &str, text: &str| {
        std::fs::write(format!("/sys/class/net/v0/{file}"), text).unwrap();
    };
    write("mtu", "1300");
    watched.await_event("mtu", |event| told(event, "v0", "mtu"));
    write("tx_queue_len", "33");
    watched.await_event("tx_queue_len", |event| told(event, "v0", "txqueuelen"));
    run("ip link set v0 up");
    write("ifalias", "x\n");
    watched.await_event("ifalias", |event| told(event, "v0", "alias"));
}

#[test]
fn what_is_polled_is_not_told_of() {
    let mut watched = Watched::veth();
    run("ethtool -K v0 gro on");
    run("ip link set v0 up");
    watched.drain();
    std::fs::write("/sys/class/net/v0/gro_flush_timeout", "20000").unwrap();
    std::fs::write("/sys/class/net/v0/napi_defer_hard_irqs", "2").unwrap();
    std::fs::write("/sys/class/net/v0/threaded", "1").unwrap();
    run("ip link set v0 gso_max_size 60000");
    run("ip link set v0 gro_max_size 50000");
    let events = watched.drain();
    assert!(
        events.is_empty(),
        "a kernel that tells of it needs no polling: {events:?}"
    );
}

#[test]
fn interfaces_that_come_are_renamed_and_go() {
    let mut watched = Watched::veth();
    let is_index = |index: u32| move |event: &Event| matches!(event, Event::Renamed { index: other, .. } if *other == index);
    run("ip link add d0 type bridge");
    let created = watched.await_event(
        "d0 appears",
        |event| matches!(event, Event::Created { name, .. } if name.as_str() == "d0"),
    );
    let Event::Created { index, .. } = created else {
        unreachable!()
    };
    run("ip link set d0 name d1");
    let renamed = watched.await_event("d0 is renamed", is_index(index));
    assert!(
        matches!(&renamed, Event::Renamed { from, to, .. } if from.as_str() == "d0" && to.as_str() == "d1"),
        "{renamed:?}"
    );
    run("ip link set d1 up");
    run("ip link property add dev d1 altname other");
    watched.await_event(
        "an alternative name",
        |event| matches!(event, Event::Changed { index: other, identity: true, .. } if *other == index),
    );
    run("ip link set d1 address 02:00:00:00:00:09");
    watched.await_event(
        "an address",
        |event| matches!(event, Event::Changed { index: other, identity: true, .. } if *other == index),
    );
    run("ip link del d1");
    run("ip link add d1 type bridge");
    watched.await_event(
        "d1 goes",
        |event| matches!(event, Event::Removed { index: other, name } if *other == index && name.as_str() == "d1"),
    );
    watched.await_event(
        "d1 is there again",
        |event| matches!(event, Event::Created { index: other, .. } if *other != index),
    );
}

#[test]
fn carrier_and_namespaces() {
    let mut watched = Watched::veth();
    run("ip link set v0 up");
    watched.drain();
    run("ip link set v1 up");
    watched.await_event(
        "v0's carrier",
        |event| matches!(event, Event::Changed { name, carrier: true, .. } if name.as_str() == "v0"),
    );
    // The bridge's own messages about a port that leaves are no removal.
    run("ip link add br0 type bridge");
    run("ip link set v1 master br0");
    run("ip link set v1 nomaster");
    let events = watched.drain();
    let is_removal = |event: &&Event| matches!(event, Event::Removed { .. });
    assert!(!events.iter().any(|event| is_removal(&event)), "{events:?}");
    // To whatever namespace: process 1's is another one.
    run("ip link set v1 netns 1");
    watched.await_event(
        "v1 leaves the namespace",
        |event| matches!(event, Event::Removed { name, .. } if name.as_str() == "v1"),
    );
    run("ip link del v0");
}

#[test]
fn one_descriptor_serves_a_poll_loop() {
    let mut watched = Watched::veth();
    watched.drain();
    let is_readable = |watch: &Watch, wait: u16| {
        let mut fds = [PollFd::new(watch.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::from(wait)).unwrap() == 1
    };
    assert!(!is_readable(&watched.watch, 0));
    run("ip link set v0 mtu 1400");
    assert!(is_readable(&watched.watch, 5000));
    watched.await_event("mtu", |event| told(event, "v0", "mtu"));
    watched.drain();
    run("ethtool -K v0 gro on");
    assert!(is_readable(&watched.watch, 5000));
    watched.await_event("gro", |event| told(event, "v0", "feature"));
    watched.drain();
    assert!(!is_readable(&watched.watch, 0));
    let start = Instant::now();
    assert!(
        watched
            .watch
            .next(Some(Duration::from_millis(30)))
            .unwrap()
            .is_none()
    );
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn lost_notifications_are_told_and_made_up_for() {
    let _namespace = Namespace::with_veth();
    let mut watch = Watch::with_buffer(4096).unwrap();
    let script = "for i in $(seq 100); do echo link set v0 mtu $((1300 + i)); done; \
                  echo link del v0; echo link add d0 type bridge";
    let batch = std::process::Command::new("bash")
        .args(["-c", &format!("({script}) | ip -batch -")])
        .status();
    assert!(batch.unwrap().success());
    let mut events = Vec::new();
    while let Some(event) = watch.next(Some(Duration::from_millis(50))).unwrap() {
        events.push(event);
    }
    let resync = |event: &Event| matches!(event, Event::Resync { why: Why::Overrun });
    let at = events.iter().position(resync);
    let at = at.unwrap_or_else(|| panic!("{events:?}"));
    assert!(at < 100, "most were lost");
    let gone =
        |event: &Event| matches!(event, Event::Removed { name, .. } if name.as_str() == "v0");
    let new = |event: &Event| matches!(event, Event::Created { name, .. } if name.as_str() == "d0");
    assert!(
        events[at..].iter().any(gone) && events[at..].iter().any(new),
        "{events:?}"
    );
    // And it goes on.
    run("ip link set d0 mtu 1234");
    let event = watch.next(Some(LIMIT)).unwrap();
    assert!(event.is_some_and(|event| told(&event, "d0", "mtu")));
}
