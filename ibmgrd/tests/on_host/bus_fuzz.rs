// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that no client of ours would send: every method with bodies of other types, and values at
//! random. The daemon answers each, changes nothing, and goes on.

use std::process::{Command, Stdio};

use crate::bus::Bus;
use crate::support::{Home, Net, is_long};

/// Numbers that look random; the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // Knuth's constants for 64 bits; the high half is the better one.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const METHODS: [&str; 20] = [
    "/org/ibmgr1 org.ibmgr1.Manager ListLinks",
    "/org/ibmgr1 org.ibmgr1.Manager GetLink",
    "/org/ibmgr1 org.ibmgr1.Manager Set",
    "/org/ibmgr1 org.ibmgr1.Manager Plan",
    "/org/ibmgr1 org.ibmgr1.Manager Apply",
    "/org/ibmgr1 org.ibmgr1.Manager Confirm",
    "/org/ibmgr1 org.ibmgr1.Manager RollBack",
    "/org/ibmgr1 org.ibmgr1.Manager GetStatus",
    "/org/ibmgr1 org.ibmgr1.Manager Export",
    "/org/ibmgr1 org.ibmgr1.Manager ListKnobs",
    "/org/ibmgr1 org.ibmgr1.Manager Describe",
    "/org/ibmgr1 org.ibmgr1.Manager Explode",
    "/org/ibmgr1/link/3 org.ibmgr1.Link Set",
    "/org/ibmgr1/link/3 org.ibmgr1.Link Explain",
    "/org/ibmgr1/link/3 org.freedesktop.DBus.Properties Get",
    "/org/ibmgr1/link/3 org.freedesktop.DBus.Properties GetAll",
    "/org/ibmgr1/link/3 org.freedesktop.DBus.Properties Set",
    "/org/ibmgr1/link/3 org.freedesktop.DBus.Introspectable Introspect",
    "/org/ibmgr1/link/99 org.ibmgr1.Link Explain",
    "/org/ibmgr1/link org.freedesktop.DBus.Peer Ping",
];

const WORDS: [&str; 12] = [
    "",
    "v0",
    "v9",
    "mtu",
    "Mtu",
    "org.ibmgr1.Link",
    "-1",
    "../../etc",
    "99999999999",
    "\u{e4}\u{1f980}",
    "[[link]]\nmatch={}\nmtu=",
    "feature.\u{1}",
];

/// Appends an argument of a type at random: its signature, and the words that `busctl` takes for it.
fn argument(random: &mut Random, signature: &mut String, words: &mut Vec<String>, depth: usize) {
    let word = |random: &mut Random| random.of(&WORDS).to_owned();
    let number = |random: &mut Random| random.below(70_000).to_string();
    match random.below(if depth > 2 { 6 } else { 11 }) {
        0 | 1 => {
            signature.push('s');
            words.push(word(random));
        }
        2 => {
            signature.push('t');
            words.push(number(random));
        }
        3 => {
            signature.push('i');
            words.push(format!("-{}", number(random)));
        }
        4 => {
            signature.push('b');
            words.push(random.of(&["true", "false"]).to_owned());
        }
        5 => {
            signature.push('d');
            words.push("1e300".to_owned());
        }
        6 => {
            signature.push_str("as");
            let count = random.below(4);
            words.push(count.to_string());
            words.extend((0..count).map(|_| word(random)));
        }
        7 | 8 => {
            signature.push_str("a{sv}");
            let count = random.below(3);
            words.push(count.to_string());
            for _ in 0..count {
                words.push(word(random));
                variant(random, words, depth);
            }
        }
        9 => {
            signature.push_str("a(ss)");
            let count = random.below(3);
            words.push(count.to_string());
            words.extend((0..2 * count).map(|_| word(random)));
        }
        _ => {
            signature.push('v');
            variant(random, words, depth);
        }
    }
}

fn variant(random: &mut Random, words: &mut Vec<String>, depth: usize) {
    let (mut signature, mut inner) = (String::new(), Vec::new());
    argument(random, &mut signature, &mut inner, depth + 1);
    words.push(signature);
    words.extend(inner);
}

#[test]
fn bodies_of_all_types_are_answered_and_change_nothing() {
    let net = Net::with_veth();
    let bus = Bus::start(&net);
    let home = Home::with("");
    let mut daemon = home.start(&["--dbus"]);
    bus.wait_name("org.ibmgr1");
    let before = net.run("ip -d -j link show");
    let mut random = Random(1);
    let mut answers = [0; 2];
    for round in 0..if is_long() { 5000 } else { 250 } {
        let mut words: Vec<String> = random.of(&METHODS).split(' ').map(str::to_owned).collect();
        let (mut signature, mut arguments) = (String::new(), Vec::new());
        for _ in 0..random.below(4) {
            argument(&mut random, &mut signature, &mut arguments, 0);
        }
        if !signature.is_empty() {
            words.push(signature);
            words.extend(arguments);
        }
        let mut command = Command::new("busctl");
        command
            .args(["--system", "--timeout=20", "--", "call", "org.ibmgr1"])
            .args(&words);
        let output = command.stdin(Stdio::null()).output().expect("busctl");
        let told = String::from_utf8_lossy(&output.stderr);
        // What busctl itself takes for no message, such as a word that is no UTF-8 of D-Bus, never left.
        let is_sent = output.status.success() || told.starts_with("Call failed");
        answers[usize::from(is_sent)] += 1;
        for bad in ["timed out", "disconnected", "Failed to parse"] {
            assert!(!told.contains(bad), "round {round}: {words:?}: {told}");
        }
    }
    assert!(answers[1] > 4 * answers[0], "not sent, sent: {answers:?}");
    assert_eq!(net.run("ip -d -j link show"), before);
    assert!(!home.log().contains("panicked"), "{}", home.log());
    assert!(daemon.status().ok);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(daemon.ended().success());
}
