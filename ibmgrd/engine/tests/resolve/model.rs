// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces and declarations in few words.

use std::collections::BTreeMap;

use ibmgr_api::{Child, Declared, Key, Link, Match, Origin, Pkey, Policy, Rule};

pub(crate) fn key(name: &str) -> Key {
    name.parse().expect("the registry has it")
}

pub(crate) fn origin(line: u32) -> Origin {
    Origin {
        file: "test.toml".into(),
        line,
        column: 1,
    }
}

pub(crate) fn settings(line: u32, pairs: &[(&str, &str)]) -> BTreeMap<Key, Declared> {
    let declared = |(name, text): &(&str, &str)| {
        let key = key(name);
        let value = key.knob().domain.parse(text).expect(text);
        let declared = Declared {
            value,
            policy: Policy::Heal,
            origin: origin(line),
        };
        (key, declared)
    };
    pairs.iter().map(declared).collect()
}

pub(crate) fn names(pattern: &str) -> Match {
    Match {
        name: vec![pattern.parse().expect("a pattern")],
        ..Match::default()
    }
}

pub(crate) fn rule(line: u32, matches: Match, pairs: &[(&str, &str)]) -> Rule {
    Rule {
        origin: origin(line),
        matches,
        settings: settings(line, pairs),
        children: Vec::new(),
    }
}

pub(crate) fn child(line: u32, pkey: u16, pairs: &[(&str, &str)]) -> Child {
    Child {
        pkey: Pkey::new(pkey).expect("a partition"),
        kind: None,
        name: None,
        is_present: true,
        policy: Policy::Heal,
        origin: origin(line),
        settings: settings(line, pairs),
    }
}

/// Returns an IPoIB interface of the port number `index`.
pub(crate) fn port(index: u32) -> Link {
    let mut address = vec![0; 20];
    address[19] = u8::try_from(index % 256).expect("a byte");
    Link {
        index,
        name: format!("ib{index}").parse().expect("a name"),
        alt_names: Vec::new(),
        kind: Some("ipoib".into()),
        driver: Some("ib_ipoib".into()),
        device_path: Some(format!("/devices/pci0000:00/0000:{index:02x}:00.0")),
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

/// Returns a P_Key child of `parent`, named as the kernel does.
pub(crate) fn child_of(parent: &Link, index: u32, pkey: u16) -> Link {
    Link {
        index,
        name: format!("{}.{pkey:04x}", parent.name)
            .parse()
            .expect("a name"),
        parent: Some(parent.index),
        parent_name: Some(parent.name.clone()),
        pkey: Pkey::new(pkey | Pkey::FULL_MEMBER),
        ..parent.clone()
    }
}
