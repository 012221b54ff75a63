// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Patterns and conditions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn glob(text: &str) -> Glob {
    text.parse().unwrap()
}

#[test]
fn patterns_match_whole_names() {
    for (pattern, yes, no) in [
        ("ib0", "ib0", "ib01"),
        ("ib*", "ib", "eib0"),
        ("ib?", "ib7", "ib"),
        ("ib[0-3]", "ib3", "ib4"),
        ("ib[!0-3]", "ib4", "ib3"),
        ("ib[02]", "ib2", "ib1"),
        ("*.8001", "ib0.8001", "ib0.8002"),
        (
            "*/0000:03:00.0",
            "/devices/pci0000:00/0000:03:00.0",
            "0000:03:00.0",
        ),
        ("a*b*c", "axxbxxc", "axxbxx"),
        ("*a*", "bab", "bbb"),
        ("[]]", "]", "["),
        ("[[]", "[", "]"),
        ("[*]", "*", "x"),
        ("[a-]", "-", "b"),
        ("b?ro", "b\u{fc}ro", "bro"),
        ("**x", "aax", "aay"),
    ] {
        assert!(glob(pattern).is_match(yes), "{pattern} {yes}");
        assert!(!glob(pattern).is_match(no), "{pattern} {no}");
    }
}

#[test]
fn what_is_no_pattern_says_why() {
    assert_eq!("".parse::<Glob>(), Err(GlobError::Empty));
    for bad in ["[", "ib[0", "a[]", "[!]"] {
        assert!(
            matches!(bad.parse::<Glob>(), Err(GlobError::Open(_))),
            "{bad}"
        );
    }
    let error = "ib[3-0]".parse::<Glob>().unwrap_err().to_string();
    assert_eq!(error, "'ib[3-0]' has the range '3-0', which is empty");
}

#[test]
fn many_stars_do_not_take_for_ever() {
    let pattern = glob(&"*a".repeat(200));
    assert!(!pattern.is_match(&"a".repeat(199)));
    assert!(pattern.is_match(&"a".repeat(5000)));
}

proptest! {
    #[test]
    fn a_literal_matches_itself_alone(text in "\\PC{1,12}", other in "\\PC{0,12}") {
        let literal = Glob::literal(&text);
        prop_assert!(literal.is_match(&text));
        prop_assert_eq!(literal.is_match(&other), other == text);
        let again: Glob = literal.as_str().parse().unwrap();
        prop_assert_eq!(again.is_match(&other), other == text);
        prop_assert!(again.is_match(&text));
    }

    #[test]
    fn no_text_makes_it_panic(pattern in "[ab*?!\\[\\]-]{0,12}", text in "[ab!\\[\\]-]{0,12}") {
        if let Ok(glob) = pattern.parse::<Glob>() {
            let _ = glob.is_match(&text);
            prop_assert_eq!(glob.as_str(), pattern);
        }
    }
}

fn port() -> Link {
    let mut address = vec![0x80, 0, 0, 0x48, 0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    address.extend([0x00, 0x02, 0xc9, 0x03, 0x00, 0xab, 0xcd, 0xef]);
    Link {
        index: 3,
        name: "ib0".parse().unwrap(),
        alt_names: vec!["rail-one-of-the-rack".into()],
        kind: Some("ipoib".into()),
        driver: Some("ib_ipoib".into()),
        device_path: Some("/devices/pci0000:00/0000:03:00.0".into()),
        arphrd: Link::INFINIBAND,
        address,
        parent: None,
        parent_name: None,
        child_kind: None,
        is_up: true,
        has_carrier: true,
        pkey: Pkey::new(0xffff),
        readings: BTreeMap::new(),
    }
}

fn child() -> Link {
    Link {
        index: 4,
        name: "ib0.8001".parse().unwrap(),
        alt_names: Vec::new(),
        parent: Some(3),
        parent_name: Some("ib0".parse().unwrap()),
        pkey: Pkey::new(0x8001),
        ..port()
    }
}

fn bond() -> Link {
    Link {
        index: 5,
        name: "bond0".parse().unwrap(),
        alt_names: Vec::new(),
        kind: Some("bond".into()),
        driver: Some("bonding".into()),
        device_path: None,
        pkey: None,
        ..port()
    }
}

#[track_caller]
fn assert_takes(matches: &Match, wanted: [bool; 3]) {
    let taken = [port(), child(), bond()].map(|link| matches.takes(&link));
    assert_eq!(taken, wanted, "port, child, bond: {matches:?}");
}

#[test]
fn no_condition_matches_nothing() {
    assert_takes(&Match::default(), [false; 3]);
}

#[test]
fn a_guid_alone_means_the_port_and_not_its_children_or_bonds() {
    let guid = vec!["0002:c903:00ab:cdef".parse().unwrap()];
    let alone = Match {
        guid,
        ..Match::default()
    };
    assert_takes(&alone, [true, false, false]);
    let pkey = vec![Pkey::new(0x0001).unwrap()];
    assert_takes(
        &Match {
            pkey,
            ..alone.clone()
        },
        [false, true, false],
    );
    let parent = vec![glob("ib0")];
    assert_takes(
        &Match {
            parent,
            ..alone.clone()
        },
        [false, true, false],
    );
    assert_takes(
        &Match {
            is_child: Some(true),
            ..alone.clone()
        },
        [false, true, false],
    );
    let guid = vec!["0002:c903:00ab:0000".parse().unwrap()];
    assert_takes(&Match { guid, ..alone }, [false; 3]);
}

#[test]
fn all_conditions_must_hold() {
    let name = vec![glob("ib*")];
    let names = Match {
        name,
        ..Match::default()
    };
    assert_takes(&names, [true, true, false]);
    assert_takes(
        &Match {
            is_child: Some(false),
            ..names.clone()
        },
        [true, false, false],
    );
    let driver = vec![glob("ipoib_batch"), glob("bonding")];
    assert_takes(&Match { driver, ..names }, [false; 3]);
    let name = vec![glob("rail-*"), glob("bond*")];
    assert_takes(
        &Match {
            name,
            ..Match::default()
        },
        [true, false, true],
    );
    let path = vec![glob("*/0000:03:*")];
    assert_takes(
        &Match {
            path,
            ..Match::default()
        },
        [true, true, false],
    );
    let kind = vec![glob("bond")];
    assert_takes(
        &Match {
            kind,
            ..Match::default()
        },
        [false, false, true],
    );
}
