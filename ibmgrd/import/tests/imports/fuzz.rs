// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No text whatever makes an importer panic, run for long, or say something that is not so.
//!
//! The corpus is `tests/samples` and `tests/corpus`, which keeps what once broke something.
//! `FUZZ_SECONDS=600 cargo test -p ibmgrd-import` fuzzes each format for ten minutes.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use ibmgrd_import::{Format, Import, Options, Outcome, Source, import};
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;

use crate::samples;

/// How long each format is fuzzed when nobody says.
const USUAL: Duration = Duration::from_millis(1500);

/// Most processor time that one import may take, without optimization.
const SLOWEST: Duration = Duration::from_secs(10);

/// A generator of numbers that starts anywhere and repeats (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("a length");
        usize::try_from(self.next() % end).expect("below a length")
    }
}

/// Parts of texts that mean something to one parser or another.
const TOKENS: [&str; 40] = [
    "\n",
    "=",
    "'",
    "\"",
    "$(",
    "${",
    "`",
    "\\",
    "\\\n",
    "#",
    ";",
    "[",
    "]",
    "[[",
    "\t",
    "- ",
    ": ",
    "&a ",
    "*a",
    "{",
    "}",
    "<",
    ">",
    "</",
    "<![CDATA[",
    "&#0;",
    "&lt;",
    "<!--",
    "0x",
    "65520",
    "-1",
    "99999999999999999999",
    "yes",
    "max",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{1f525}",
    "%YAML 1.2\n",
    "---\n",
];

fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    let mut bytes: Vec<u8> = text.as_bytes().to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 => {
                let new = u8::try_from(random.below(256)).expect("a byte");
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = new;
                }
            }
            1 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 => {
                let token = TOKENS[random.below(TOKENS.len())];
                bytes.splice(at..at, token.bytes());
            }
            3 => {
                let end = (at + random.below(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.truncate(at),
            5 => {
                let other = other.as_bytes();
                let from = random.below(other.len() + 1);
                let end = (from + random.below(300)).min(other.len());
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                let many = token.repeat(random.below(200));
                bytes.splice(at..at, many.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Says what holds of every import.
#[track_caller]
fn check(import: &Import, sources: &[Source]) {
    for rule in &import.desired.rules {
        assert!(!rule.matches.is_empty(), "a rule without a condition");
        let of_children = rule.children.iter().flat_map(|child| &child.settings);
        for (key, declared) in rule.settings.iter().chain(of_children) {
            let domain = &key.knob().domain;
            let shown = declared.value.show(domain);
            assert_eq!(domain.parse(&shown).as_ref(), Ok(&declared.value), "{key}");
        }
        for child in &rule.children {
            assert!(child.pkey.is_full_member());
        }
    }
    // YAML knows more breaks than the line feed.
    let is_break = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let of_source = |source: &Source| (source.name.clone(), source.text.split(is_break).count());
    let lengths: HashMap<_, usize> = sources.iter().map(of_source).collect();
    for note in &import.notes {
        let lines = lengths[&note.place.file];
        let line = usize::try_from(note.place.line).expect("a line");
        assert!((1..=lines).contains(&line), "{note:?} of {lines} lines");
        let is_carried = matches!(note.outcome, Outcome::Carried | Outcome::Changed);
        assert!(is_carried || note.why.is_some(), "{note:?}");
    }
    let carried = import
        .notes
        .iter()
        .filter(|note| note.into.is_some())
        .count();
    assert!(
        import.desired.rules.is_empty() || carried > 0,
        "rules out of nothing"
    );
}

/// Returns what this thread has used: a machine with much else to do makes no import slow.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    Duration::from(time.expect("every kernel has this clock"))
}

fn run(format: Format, sources: &[Source]) {
    for all_kinds in [false, true] {
        let started = processor_time();
        let result = import(format, sources, Options { all_kinds });
        let taken = processor_time().saturating_sub(started);
        assert!(taken < SLOWEST, "{format} took {taken:?}");
        match result {
            Ok(found) => {
                check(&found, sources);
                let again = import(format, sources, Options { all_kinds }).expect("as before");
                assert_eq!(again.notes, found.notes);
                assert_eq!(again.desired, found.desired);
            }
            Err(errors) => assert!(!errors.is_empty()),
        }
    }
}

fn source(name: &str, text: &str) -> Source {
    Source::new(name, text.as_bytes().to_vec()).expect("UTF-8")
}

/// Mutates the samples of one format until the time is over.
#[expect(
    clippy::print_stderr,
    reason = "a long run tells how far it came, and what broke it"
)]
fn fuzz(format: Format) {
    let seconds = std::env::var("FUZZ_SECONDS").ok();
    let budget = seconds.map_or(USUAL, |seconds| {
        Duration::from_secs(seconds.parse().expect("FUZZ_SECONDS is a number"))
    });
    let corpus = samples::all();
    let (own, others): (Vec<_>, Vec<_>) = corpus.iter().partition(|sample| sample.format == format);
    let seed = std::env::var("FUZZ_SEED").ok();
    let seed = seed.map_or(0x1b_0157, |seed| {
        seed.parse().expect("FUZZ_SEED is a number")
    });
    let mut random = Random(seed);
    let started = Instant::now();
    let mut count = 0_u64;
    while started.elapsed() < budget {
        let sample = own[random.below(own.len())];
        let pool = if random.below(4) == 0 { &others } else { &own };
        let donor = &pool[random.below(pool.len())].sources;
        let donor = donor[random.below(donor.len())].text.clone();
        let which = random.below(sample.sources.len());
        let mut sources = sample.sources.clone();
        sources[which].text = mutate(&sources[which].text, &donor, &mut random);
        let text = sources[which].text.clone();
        let attempt = std::panic::catch_unwind(|| run(format, &sources));
        if let Err(panic) = attempt {
            eprintln!("{format}, {}:\n{text}\n", sources[which].name);
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    eprintln!("{format}: {count} texts");
    assert!(count > 10, "only {count} texts: this proves nothing");
}

macro_rules! fuzz_each {
    ($($name:ident: $format:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                fuzz(Format::$format);
            }
        )*

        #[test]
        fn every_format_is_fuzzed() {
            assert_eq!(Format::ALL, [$(Format::$format),*]);
        }
    };
}

fuzz_each! {
    mutated_ifcfg: Ifcfg,
    mutated_keyfiles: NmKeyfile,
    mutated_nmstate: Nmstate,
    mutated_netplan: Netplan,
    mutated_networkd: Networkd,
    mutated_wicked: Wicked,
    mutated_openib: Openib,
    mutated_tuned: Tuned,
}

/// Names that make each parser of a format run.
const NAMES: [&str; 4] = ["ifcfg-ib0", "a.network", "a.netdev", "a.network.d/b.conf"];

#[test]
fn texts_that_once_broke_something() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("text");
        for format in Format::ALL {
            for name in NAMES {
                run(format, &[source(name, &text)]);
            }
        }
        count += 1;
    }
    assert!(count >= 3, "the corpus is gone");
}

/// A piece of each format that can be repeated with another number.
const PIECES: [(Format, &str, &str, &str); 12] = [
    (Format::Ifcfg, "ifcfg-ib0", "", "IPADDR@=1\n"),
    (Format::Ifcfg, "ifcfg-ib0", "", "UNKNOWN@=1\n"),
    (
        Format::NmKeyfile,
        "a.nmconnection",
        "",
        "[ipv4]\naddress@=1\n",
    ),
    (Format::NmKeyfile, "a.nmconnection", "", "[a@]\nb=1\n"),
    (
        Format::Nmstate,
        "a.yml",
        "interfaces:\n",
        "- {name: ib@, mtu: 2000}\n",
    ),
    (
        Format::Netplan,
        "a.yaml",
        "network:\n  ethernets:\n",
        "    ib@: {mtu: 2000, infiniband-mode: datagram}\n",
    ),
    (Format::Networkd, "a.network", "", "[Match]\nKey@=1\n"),
    (
        Format::Networkd,
        "a.network",
        "[Match]\nName=ib0\n",
        "[Network]\nAddress=@\n",
    ),
    (
        Format::Wicked,
        "a.xml",
        "",
        "<interface><name>ib@</name><link><mtu>2000</mtu></link></interface>\n",
    ),
    (Format::Openib, "openib.conf", "", "A@_LOAD=yes\n"),
    (Format::Tuned, "tuned.conf", "", "[s@]\na=1\n"),
    (Format::Tuned, "tuned.conf", "[net]\n", "devices=ib@\n"),
];

#[test]
fn large_files_do_not_take_for_ever() {
    for (format, name, head, piece) in PIECES {
        let mut text = head.to_owned();
        let mut number = 0;
        while text.len() < 100_000 {
            text.push_str(&piece.replace('@', &number.to_string()));
            number += 1;
        }
        run(format, &[source(name, &text)]);
    }
}

#[test]
fn every_prefix_of_every_sample() {
    for sample in samples::all() {
        for (which, whole) in sample.sources.iter().enumerate() {
            for (end, _) in whole.text.char_indices() {
                let mut sources = sample.sources.clone();
                sources[which].text.truncate(end);
                let result = import(sample.format, &sources, Options::default());
                if let Ok(import) = result {
                    check(&import, &sources);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_text(text in "\\PC{0,200}|[\\x00-\\x7f]{0,200}", which in 0_usize..4) {
        for format in Format::ALL {
            run(format, &[source(NAMES[which], &text)]);
        }
    }

    #[test]
    fn any_lines(
        lines in prop::collection::vec(
            prop_oneof![
                "\\[[A-Za-z]{1,8}\\]",
                "[A-Z_]{1,12}=[ -~]{0,30}",
                "[a-z-]{1,12}: [ -~]{0,20}",
                "<[a-z:]{1,8}>[ -~]{0,10}",
            ],
            0..20,
        ),
        which in 0_usize..4,
    ) {
        let text = lines.join("\n");
        for format in Format::ALL {
            run(format, &[source(NAMES[which], &text)]);
        }
    }
}
