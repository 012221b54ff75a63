// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No bytes whatever make the reader panic, run for long, or say something that is not so.
//!
//! The corpus is `tests/samples` and `tests/corpus`, which keeps what once broke something.
//! `FUZZ_SECONDS=600 cargo test -p ibmgrd-config` fuzzes each language for ten minutes.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::time::{Duration, Instant};

use ibmgr_api::Assignment;
use ibmgrd_config::{Loaded, Source, State, Store, save, to_json, to_toml};

/// How long each language is fuzzed when nobody says.
const USUAL: Duration = Duration::from_secs(2);

/// Longest time of one file, without optimization, on a machine with much else to do.
const SLOWEST: Duration = Duration::from_secs(20);

/// What means something to a parser, or to the reader behind it.
const WORDS: [&str; 44] = [
    "[[link]]\n",
    "[[link.child]]\n",
    "[defaults]\n",
    "[profile.x]\n",
    "match = ",
    "link:\n",
    "- ",
    ": ",
    "\n",
    "  ",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "[[",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "\\",
    "\\u0000",
    "#",
    "=",
    ",",
    ".",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "? ",
    "%YAML 1.2\n",
    "0x8001",
    "20us",
    "-1",
    "99999999999999999999",
    "true",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
];

/// Numbers that look random and are the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("a length");
        usize::try_from(self.next() % end).expect("less than a length")
    }

    /// Returns a part of some bytes, at most `most` long.
    fn part<'a>(&mut self, bytes: &'a [u8], most: usize) -> &'a [u8] {
        let from = self.below(bytes.len() + 1);
        let length = self.below(most.min(bytes.len() - from) + 1);
        &bytes[from..from + length]
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for folder in ["tests/samples", "tests/corpus"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(&folder).expect("the corpus is in the repo");
        let mut paths: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        corpus.extend(
            paths
                .iter()
                .map(|path| std::fs::read(path).expect("it can be read")),
        );
    }
    corpus
}

fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len() + 1);
        let word = WORDS[random.below(WORDS.len())].as_bytes();
        match random.below(7) {
            0 => {
                let flipped = bytes.get_mut(at).map(|byte| *byte ^= 1 << random.below(8));
                debug_assert!(flipped.is_some() || at == bytes.len());
            }
            1 => {
                let end = (at + random.below(60)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 => drop(bytes.splice(at..at, word.iter().copied())),
            3 => {
                let many = word.repeat(random.below(300));
                bytes.splice(at..at, many);
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let part = random.part(other, 400).to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let part = random.part(&bytes, 200).to_vec();
                bytes.splice(at..at, part);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn load(file: &str, bytes: &[u8]) -> Loaded {
    let source = Source {
        file: file.into(),
        content: Ok(bytes.to_vec()),
    };
    Store::new().load(vec![source])
}

/// Says what holds of every file.
fn check(file: &str, bytes: &[u8]) {
    let loaded = load(file, bytes);
    let lines = String::from_utf8_lossy(bytes).split('\n').count();
    for found in &loaded.diagnostics {
        let line = usize::try_from(found.origin.line).expect("a line");
        assert!(line <= lines, "line {line} of {lines}: {found:?}");
        assert!(!found.message.is_empty());
        let shown = found.to_string();
        let steers = |c: char| c.is_control() && c != '\n';
        let excerpt = shown
            .lines()
            .skip(2)
            .take(2)
            .any(|line| line.contains(steers));
        assert!(!excerpt, "{shown:?}");
    }
    let state = loaded.files[0].state;
    assert_eq!(
        loaded.has_errors(),
        state != State::Used,
        "{:?}",
        loaded.diagnostics
    );
    if loaded.has_errors() {
        assert!(
            loaded.desired.rules.is_empty(),
            "nothing of a broken file counts"
        );
        return;
    }
    for (name, text) in [
        ("again.toml", to_toml(&loaded.desired)),
        ("again.json", to_json(&loaded.desired).to_string()),
    ] {
        let again = load(name, text.as_bytes());
        assert!(!again.has_errors(), "{:?}\n{text}", again.diagnostics);
        assert_eq!(to_json(&again.desired), to_json(&loaded.desired), "{text}");
    }
    saves(file, bytes, &loaded);
}

/// Saves a value into each kind of rule of a right file.
fn saves(file: &str, bytes: &[u8], loaded: &Loaded) {
    let (Some(rule), Ok(text)) = (loaded.desired.rules.last(), std::str::from_utf8(bytes)) else {
        return;
    };
    let key: ibmgr_api::Key = "ring.rx".parse().expect("a knob");
    let value = 77_u64.into();
    let want = Assignment { key, value };
    if let Ok(saved) = save(
        file,
        text,
        &rule.matches,
        "a\nb",
        std::slice::from_ref(&want),
    ) {
        let after = load(file, saved.as_bytes());
        assert!(!after.has_errors(), "{saved}");
        let has = |rule: &ibmgr_api::Rule| {
            rule.settings
                .get(&want.key)
                .is_some_and(|declared| declared.value == want.value)
        };
        assert!(after.desired.rules.iter().any(has), "{saved}");
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a long run tells how far it came, and what broke it"
)]
fn fuzz(file: &str) {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number of seconds, or a seed"))
    };
    let budget = number("FUZZ_SECONDS").map_or(USUAL, Duration::from_secs);
    let mut random = Random(number("FUZZ_SEED").unwrap_or(0x1b));
    let corpus = corpus();
    let started = Instant::now();
    let mut count = 0_u64;
    while started.elapsed() < budget {
        let bytes = mutate(&corpus, &mut random);
        let begun = Instant::now();
        let attempt = std::panic::catch_unwind(|| check(file, &bytes));
        if attempt.is_err() || begun.elapsed() > SLOWEST {
            eprintln!("{file}, {:?}:\n{}", begun.elapsed(), bytes.escape_ascii());
        }
        if let Err(panic) = attempt {
            std::panic::resume_unwind(panic);
        }
        assert!(begun.elapsed() <= SLOWEST, "{file} takes too long");
        count += 1;
    }
    eprintln!("{file}: {count} texts");
    assert!(count > 10, "only {count} texts: this proves nothing");
}

#[test]
fn mutated_toml() {
    fuzz("a.toml");
}

#[test]
fn mutated_yaml() {
    fuzz("a.yaml");
}

#[test]
fn the_corpus_itself() {
    for bytes in corpus() {
        for file in ["a.toml", "a.yaml", "a.json"] {
            check(file, &bytes);
        }
    }
}
