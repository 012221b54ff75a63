// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A broken file never stops the others, nor takes settings away.

use std::io;

use ibmgrd_config::{Loaded, Source, State, Store};

use crate::support::{source, values};

const GOOD: &str = "[[link]]\nmatch = { name = \"ib0\" }\nmtu = 2044\n";
const BROKEN: &str = "[[link]]\nmatch = { name = \"ib0\" }\nmut = 4092\n";
const OTHER: &str = "[[link]]\nmatch = { name = \"ib1\" }\nmtu = 4092\n";

fn all(loaded: &Loaded) -> Vec<String> {
    loaded.desired.rules.iter().map(values).collect()
}

fn states(loaded: &Loaded) -> Vec<State> {
    loaded.files.iter().map(|file| file.state).collect()
}

#[test]
fn a_broken_file_does_not_stop_the_others() {
    let mut store = Store::new();
    let loaded = store.load(vec![source("a.toml", BROKEN), source("b.toml", OTHER)]);
    assert_eq!(all(&loaded), ["mtu=4092 heal"]);
    assert_eq!(states(&loaded), [State::Unused, State::Used]);
    assert!(loaded.has_errors());
}

#[test]
fn a_file_that_breaks_keeps_what_it_said_last() {
    let mut store = Store::new();
    store.load(vec![source("a.toml", GOOD), source("b.toml", OTHER)]);
    for _ in 0..3 {
        let loaded = store.load(vec![source("a.toml", BROKEN), source("b.toml", OTHER)]);
        assert_eq!(all(&loaded), ["mtu=2044 heal", "mtu=4092 heal"]);
        assert_eq!(states(&loaded), [State::KeptLastGood, State::Used]);
    }
    let unreadable = Source {
        file: "a.toml".into(),
        content: Err(io::Error::from(io::ErrorKind::PermissionDenied)),
    };
    let loaded = store.load(vec![unreadable, source("b.toml", OTHER)]);
    assert_eq!(all(&loaded), ["mtu=2044 heal", "mtu=4092 heal"]);
    let mended = store.load(vec![source("a.toml", &GOOD.replace("2044", "2000"))]);
    assert_eq!(all(&mended), ["mtu=2000 heal"]);
}

#[test]
fn a_file_that_is_removed_is_forgotten() {
    let mut store = Store::new();
    store.load(vec![source("a.toml", GOOD)]);
    assert_eq!(all(&store.load(Vec::new())), Vec::<String>::new());
    let loaded = store.load(vec![source("a.toml", BROKEN)]);
    assert_eq!(all(&loaded), Vec::<String>::new());
}

#[test]
fn a_profile_that_goes_takes_nothing_from_those_who_use_it() {
    let profile = "[profile.fast]\nrx-usecs = 0\n";
    let user = "[[link]]\nmatch = { name = \"ib0\" }\nprofile = \"fast\"\n";
    let mut store = Store::new();
    let loaded = store.load(vec![source("a.toml", profile), source("b.toml", user)]);
    assert_eq!(all(&loaded), ["rx-usecs=0 heal"]);
    let loaded = store.load(vec![source("b.toml", user)]);
    assert_eq!(all(&loaded), ["rx-usecs=0 heal"]);
    assert_eq!(states(&loaded), [State::KeptLastGood]);
    assert!(loaded.has_errors());
    let broken = "[profile.fast]\nrx-usecs = oops\n";
    let loaded = store.load(vec![source("a.toml", broken), source("b.toml", user)]);
    assert_eq!(all(&loaded), ["rx-usecs=0 heal"]);
    assert_eq!(states(&loaded), [State::Unused, State::KeptLastGood]);
}

#[test]
fn memory_survives_a_restart() {
    let mut before = Store::new();
    before.load(vec![source("a.toml", GOOD)]);
    let mut after = Store::new();
    for (file, bytes) in before.remembered() {
        after.remember(file, bytes);
    }
    after.remember("c.toml", BROKEN.as_bytes());
    assert_eq!(
        after.remembered().count(),
        1,
        "what is broken is not remembered"
    );
    let loaded = after.load(vec![source("a.toml", BROKEN)]);
    assert_eq!(all(&loaded), ["mtu=2044 heal"]);
    assert_eq!(states(&loaded), [State::KeptLastGood]);
}
