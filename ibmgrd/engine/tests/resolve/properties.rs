// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds whatever is declared and whichever interfaces there are.

use std::collections::BTreeSet;

use ibmgr_api::{Desired, Key, Link, Match, Pkey, Rule};
use ibmgrd_engine::resolve;
use proptest::prelude::*;

use crate::model::{child, child_of, key, names, port, rule};

const KNOBS: [&str; 4] = ["mtu", "txqueuelen", "rx-usecs", "napi-defer-hard-irqs"];

fn matches() -> impl Strategy<Value = Match> {
    let pkeys = prop_oneof![Just(0xffff), Just(0x8001), Just(0x0002)];
    prop_oneof![
        Just(names("*")),
        Just(names("ib[12]")),
        (1_u32..5).prop_map(|index| names(&format!("ib{index}"))),
        pkeys.prop_map(|pkey| Match {
            pkey: Pkey::new(pkey).into_iter().collect(),
            ..Match::default()
        }),
        any::<bool>().prop_map(|is_child| Match {
            is_child: Some(is_child),
            ..Match::default()
        }),
        Just(Match::default()),
    ]
}

fn pairs() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    proptest::collection::btree_map(0..KNOBS.len(), 68_u64..100, 0..3).prop_map(|map| {
        map.into_iter()
            .map(|(at, value)| (KNOBS[at], value.to_string()))
            .collect()
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let pkeys = proptest::collection::vec((0x8001_u16..0x8004, any::<bool>(), pairs()), 0..3);
    let one = (matches(), pairs(), pkeys);
    proptest::collection::vec(one, 0..6).prop_map(|rules| {
        let made = rules
            .into_iter()
            .zip(1_u32..)
            .map(|((matches, pairs, children), at)| {
                let borrowed =
                    |pairs: &'_ [(&'static str, String)]| -> Vec<(&'static str, String)> {
                        pairs.to_vec()
                    };
                let own = borrowed(&pairs);
                let own: Vec<_> = own
                    .iter()
                    .map(|(name, text)| (*name, text.as_str()))
                    .collect();
                let mut rule = rule(at * 10, matches, &own);
                for ((pkey, is_present, pairs), line) in children.into_iter().zip(1..) {
                    let pairs: Vec<_> = pairs
                        .iter()
                        .map(|(name, text)| (*name, text.as_str()))
                        .collect();
                    let mut child = child(at * 10 + line, pkey, &pairs);
                    child.is_present = is_present;
                    rule.children.push(child);
                }
                rule
            });
        made.collect()
    })
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let children = proptest::collection::btree_set((1_u32..5, 1_u16..4), 0..6);
    (1_u32..5, children).prop_map(|(ports, children)| {
        let mut links: Vec<Link> = (1..=ports).map(port).collect();
        for ((parent, pkey), index) in children.into_iter().zip(100..) {
            if parent <= ports {
                links.push(child_of(&port(parent), index, pkey | 0x8000));
            }
        }
        links
    })
}

fn keys<'a>(rules: impl Iterator<Item = &'a Rule>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for rule in rules {
        keys.extend(rule.settings.keys().cloned());
        keys.extend(
            rule.children
                .iter()
                .flat_map(|child| child.settings.keys().cloned()),
        );
    }
    keys
}

proptest! {
    #[test]
    fn the_order_of_interfaces_never_matters(rules in rules(), links in links().prop_shuffle()) {
        let desired = Desired { rules };
        let mut sorted = links.clone();
        sorted.sort_by_key(|link| link.index);
        prop_assert_eq!(resolve(&desired, &links), resolve(&desired, &sorted));
    }

    #[test]
    fn rules_for_other_knobs_can_stand_in_any_order(rules in rules(), links in links()) {
        let with = |names: &[&str]| {
            let wanted: Vec<Key> = names.iter().map(|name| key(name)).collect();
            let mut rules = rules.clone();
            for rule in &mut rules {
                rule.children.clear();
                rule.settings.retain(|key, _| wanted.contains(key));
            }
            rules
        };
        let (one, other) = (with(&KNOBS[..2]), with(&KNOBS[2..]));
        let joined = |first: &[Rule], second: &[Rule]| {
            let desired = Desired { rules: [first, second].concat() };
            resolve(&desired, &links)
        };
        prop_assert_eq!(joined(&one, &other), joined(&other, &one));
    }

    #[test]
    fn unmanaged_knobs_and_interfaces_are_never_touched(rules in rules(), links in links()) {
        let desired = Desired { rules };
        for wants in resolve(&desired, &links) {
            let link = links.iter().find(|link| link.index == wants.index).expect("it is one of them");
            let parent = links.iter().find(|parent| Some(parent.index) == link.parent);
            let is_for = |rule: &&Rule| {
                rule.matches.takes(link)
                    || (!rule.children.is_empty() && parent.is_some_and(|parent| rule.matches.takes(parent)))
            };
            let declared = keys(desired.rules.iter().filter(is_for));
            for key in wants.settings.keys() {
                prop_assert!(declared.contains(key), "{} of {}", key, wants.link);
            }
            prop_assert!(!wants.settings.is_empty() || !wants.children.is_empty());
        }
    }

    #[test]
    fn every_declaration_counts_or_is_named_as_overridden(rules in rules(), links in links()) {
        let desired = Desired { rules };
        let wants = resolve(&desired, &links);
        for link in &links {
            for rule in desired.rules.iter().filter(|rule| rule.matches.takes(link)) {
                for (key, declared) in &rule.settings {
                    let of_link = wants.iter().find(|wants| wants.index == link.index);
                    let want = &of_link.expect("it is managed").settings[key];
                    let is_told = want.declared == *declared || want.overridden.contains(declared);
                    prop_assert!(is_told, "{} of {}", key, link.name);
                    prop_assert!(want.declared.origin >= declared.origin, "the last one wins");
                }
            }
        }
    }

    #[test]
    fn a_child_that_comes_has_the_values_that_were_foretold(rules in rules(), links in links()) {
        let desired = Desired { rules };
        for wants in resolve(&desired, &links) {
            for child in &wants.children {
                let Some(name) = child.name_to_be.clone().filter(|_| child.is_present && child.present.is_empty())
                else {
                    continue;
                };
                let parent = links.iter().find(|link| link.index == wants.index).expect("it is there");
                let mut born = child_of(parent, 999, child.pkey.raw());
                born.name = name;
                let mut links = links.clone();
                links.push(born);
                let after = resolve(&desired, &links);
                let settings = after.iter().find(|wants| wants.index == 999).map(|wants| &wants.settings);
                let foretold = Some(&child.settings).filter(|settings| !settings.is_empty());
                prop_assert_eq!(settings, foretold);
                let of_parent = after.iter().find(|after| after.index == wants.index).expect("still managed");
                let same = of_parent.children.iter().find(|one| one.pkey == child.pkey);
                prop_assert_eq!(same.map(|one| one.present.len()), Some(1));
            }
        }
    }
}
