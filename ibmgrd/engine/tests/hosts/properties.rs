// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds whatever is declared and however the kernel behaves.

use std::collections::BTreeMap;

use ibmgr_api::{Desired, End, Outcome};
use ibmgrd_engine::{Keys, Port, Query, apply, keys_of, plan_host, resolve};
use proptest::prelude::*;

use crate::memory::Memory;
use crate::world::{KNOBS, Manner, World, child, desired, no_child, rule};

const LINKS: [&str; 3] = ["ib0", "ib1", "kid"];

fn text(knob: &str, number: u64) -> String {
    match knob {
        "mode" => ["datagram", "connected"][(number % 2) as usize].to_owned(),
        "state" => ["down", "up"][(number % 2) as usize].to_owned(),
        "umcast" => ["honour", "ignore"][(number % 2) as usize].to_owned(),
        "mtu" => (1000 + number % 1000).to_string(),
        "rx-usecs" => format!("{number}us"),
        _ => (number % 65_536).to_string(),
    }
}

/// Values on any interface, and children that come and go.
fn wanted() -> impl Strategy<Value = Desired> {
    let values = proptest::collection::vec((0..LINKS.len(), 0..KNOBS.len(), 0_u64..5000), 0..12);
    let new = proptest::option::of(0_u64..5000);
    (values, new, any::<bool>()).prop_map(|(values, new, removes)| {
        let mut rules = Vec::new();
        for (link, knob, number) in values {
            let knob = KNOBS[knob];
            rules.push(rule(LINKS[link], &[(knob, &text(knob, number))], vec![]));
        }
        if let Some(number) = new {
            let mtu = text("mtu", number);
            let new = child(0x8002, Some("storage"), &[("mtu", &mtu)]);
            rules.push(rule("ib0", &[], vec![new]));
        }
        if removes {
            rules.push(rule("ib1", &[], vec![no_child(0x8001)]));
        }
        desired(rules)
    })
}

fn manner() -> impl Strategy<Value = Option<Manner>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Manner::Refuses)),
        1 => Just(Some(Manner::Lies)),
        1 => Just(Some(Manner::BusyThoughApplied)),
        1 => (0_u64..3000).prop_map(|most| Some(Manner::Clamps(most))),
        1 => Just(Some(Manner::OnlyOnce)),
        1 => (1_u32..4).prop_map(|pauses| Some(Manner::Delays(pauses))),
    ]
}

fn misbehaving() -> impl Strategy<Value = World> {
    let manners = proptest::collection::vec(manner(), LINKS.len() * KNOBS.len());
    (manners, 0_u32..6).prop_map(|(manners, patience)| {
        let mut world = World::new();
        world.patience = patience;
        let pairs = LINKS
            .iter()
            .flat_map(|link| KNOBS.iter().map(move |knob| (*link, *knob)));
        for ((link, knob), manner) in pairs.zip(manners) {
            if let Some(manner) = manner {
                world = world.with(link, knob, manner);
            }
        }
        world
    })
}

proptest! {
    #[test]
    fn an_honest_kernel_converges_and_the_next_plan_is_empty(wanted in wanted()) {
        let mut world = World::new();
        let before = world.state();
        let plan = world.plan(&wanted);
        prop_assert_eq!(&plan.refused, &[]);
        let report = apply(&mut world, &mut Memory::default(), &plan);
        // A child that shall be up under a port that shall be down is beyond the driver.
        if report.end == End::RolledBack {
            prop_assert_eq!(world.state(), before);
        } else {
            prop_assert!(world.plan(&wanted).is_empty(), "{:?}", report);
        }
    }

    #[test]
    fn unmanaged_knobs_are_never_written(wanted in wanted()) {
        let mut world = World::new();
        let plan = world.plan(&wanted);
        apply(&mut world, &mut Memory::default(), &plan);
        let is_declared = |link: &str, knob: &str| {
            wanted.rules.iter().any(|rule| {
                let here = rule.matches.name.iter().any(|glob| glob.is_match(link));
                here && rule.settings.keys().any(|key| key.to_string() == knob)
            })
        };
        // The MTU goes along with the mode, and back with it.
        for (link, knob, _) in &world.writes {
            let known = is_declared(link, knob)
                || link == "storage"
                || knob == "mtu" && is_declared(link, "mode");
            prop_assert!(known, "{} of {} was written", knob, link);
        }
    }

    #[test]
    fn the_order_of_the_input_never_matters(wanted in wanted(), seed in any::<u64>()) {
        let mut world = World::new();
        let query = Query { keys: Keys::Named(keys_of(&wanted)), via: None };
        let links = world.observe_all(&query).expect("no fate");
        let wants = resolve(&wanted, &links);
        let plan = plan_host(&wants, &links);
        let (mut mixed_links, mut mixed_wants) = (links.clone(), wants.clone());
        let mix = |index: u32| (u64::from(index) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed_links.sort_by_key(|link| mix(link.index));
        mixed_wants.sort_by_key(|wants| mix(wants.index));
        prop_assert_eq!(plan_host(&mixed_wants, &mixed_links), plan);
    }

    #[test]
    fn a_failure_leaves_the_old_values_or_says_which_not(
        mut world in misbehaving(),
        wanted in wanted(),
    ) {
        let before = world.state();
        let plan = world.plan(&wanted);
        let mut memory = Memory::default();
        let report = apply(&mut world, &mut memory, &plan);
        prop_assert!(!memory.story().is_unfinished() || report.end == End::Nothing);
        let after = world.state();
        let mut lines = BTreeMap::new();
        for link in &report.links {
            for line in &link.lines {
                lines.insert(format!("{} {}", link.link, line.key), line);
            }
        }
        let is_open = |outcome: &Outcome| matches!(outcome, Outcome::NotPutBack { .. });
        match report.end {
            End::Applied | End::Nothing => {
                prop_assert!(world.plan(&wanted).is_empty(), "{:?}", report);
                prop_assert_eq!(report.code(), None);
            }
            End::RolledBack => {
                // A value that comes late can come after it was given up.
                let late = world.manners.values().any(|m| matches!(m, Manner::Delays(_)));
                prop_assert!(late || after == before, "{:?}", report);
                prop_assert!(report.code().is_some());
            }
            End::InPart => {
                for (what, value) in &before {
                    let open = lines.get(what).is_some_and(|line| is_open(&line.outcome));
                    let child_is = |child: &ibmgr_api::ChildReport| {
                        what.starts_with(child.name.as_str()) && child.outcome != Outcome::NotTried
                    };
                    let late = world.manners.values().any(|m| matches!(m, Manner::Delays(_)));
                    let told = open || late || report.children.iter().any(child_is)
                        || what.starts_with("kid state");
                    prop_assert!(after.get(what) == Some(value) || told, "{}: {:?}", what, report);
                }
            }
            End::NotStarted => prop_assert!(false, "the journal works"),
        }
    }
}
