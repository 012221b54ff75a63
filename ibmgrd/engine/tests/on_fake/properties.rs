// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds whatever is asked and however the kernel behaves.

use std::collections::BTreeMap;

use crate::fake::{Fake, KNOBS, Manner, key};
use ibmgr_api::{Assignment, Key, Outcome, Report, Value};
use ibmgrd_engine::{Port, Query, keys_to_observe, plan, run};
use proptest::prelude::*;

fn wants() -> impl Strategy<Value = Vec<Assignment>> {
    proptest::collection::btree_map(0..KNOBS.len(), 0_u64..70_000, 0..KNOBS.len()).prop_map(|map| {
        let assignment = |(at, number): (usize, u64)| {
            let key = key(KNOBS[at]);
            let number = match KNOBS[at] {
                "mode" | "state" => number % 2,
                "mtu" => 68 + number % 65_000,
                "rx-usecs" => number * 1000,
                "rx-frames" => number % 65_536,
                _ => number,
            };
            Assignment {
                key,
                value: Value::Number(number),
            }
        };
        map.into_iter().map(assignment).collect()
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        4 => Just(Manner::Honest),
        1 => Just(Manner::Refuses),
        1 => Just(Manner::Lies),
        1 => Just(Manner::BusyThoughApplied),
        1 => Just(Manner::Busy),
        1 => (0_u64..3000).prop_map(Manner::Clamps),
        1 => Just(Manner::OnlyOnce),
    ]
}

fn misbehaving() -> impl Strategy<Value = Fake> {
    let manners = proptest::collection::vec(manner(), KNOBS.len());
    let vanishes = proptest::option::weighted(0.2, 0_usize..8);
    let renames = proptest::option::weighted(0.2, 0_usize..8);
    let midway = (vanishes, renames, any::<bool>());
    (manners, midway).prop_map(|(manners, (vanishes_at, renamed_at, name_is_reused))| {
        let mut fake = Fake {
            vanishes_at,
            renamed_at,
            name_is_reused,
            ..Fake::ib0()
        };
        for (name, manner) in KNOBS.iter().zip(manners) {
            fake.manners.insert(key(name), manner);
        }
        fake
    })
}

fn set(fake: &mut Fake, wants: &[Assignment]) -> Report {
    let keys = keys_to_observe(wants, None).expect("no knob twice");
    let name = fake.link.name.clone();
    let before = fake
        .observe(&name, &Query::named(keys))
        .expect("it is there");
    let plan = plan(&before, wants).expect("the fake takes each");
    run(fake, &plan, &before)
}

proptest! {
    #[test]
    fn an_honest_kernel_converges_and_the_next_plan_is_empty(wants in wants()) {
        let mut fake = Fake::ib0();
        set(&mut fake, &wants);
        for want in &wants {
            prop_assert_eq!(fake.link.readings[&want.key].value.as_ref(), Some(&want.value));
        }
        let writes = fake.writes.len();
        set(&mut fake, &wants);
        prop_assert_eq!(fake.writes.len(), writes);
    }

    #[test]
    fn the_order_of_the_input_never_matters(wants in wants(), seed in any::<u64>()) {
        let mut shuffled = wants.clone();
        shuffled.sort_by_key(|want| {
            let name = want.key.to_string();
            name.bytes().fold(seed, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        });
        let (mut one, mut other) = (Fake::ib0(), Fake::ib0());
        set(&mut one, &wants);
        set(&mut other, &shuffled);
        prop_assert_eq!(one.writes, other.writes);
    }

    #[test]
    fn a_failure_leaves_the_old_values_or_says_which_not(mut fake in misbehaving(), wants in wants()) {
        let before = fake.values();
        let report = set(&mut fake, &wants);
        if report.lines.iter().any(|line| line.outcome == Outcome::Vanished) {
            return Ok(());
        }
        let lines: BTreeMap<Key, _> =
            report.lines.iter().map(|line| (line.key.clone(), line)).collect();
        let failed = report.lines.iter().any(|line| {
            line.outcome.code().is_some() && line.outcome.name() != "no-effect"
        });
        for (key, now) in fake.values() {
            let line = lines.get(&key);
            let not_put_back = line.is_some_and(|line| line.outcome.name() == "not-put-back");
            let was = &before[&key];
            if failed {
                prop_assert!(now == *was || not_put_back, "{}: {:?} {:?}", key, was, now);
            } else if let Some(want) = wants.iter().find(|want| want.key == key) {
                prop_assert_eq!(now.as_ref(), Some(&want.value));
            } else {
                prop_assert!(now == *was || line.is_some(), "{} changed unsaid", key);
            }
            if let Some(line) = line
                && line.outcome != Outcome::NotTried
                && line.now.is_some()
            {
                prop_assert_eq!(&line.now, &now, "{} is reported wrongly", key);
            }
        }
    }

    #[test]
    fn every_asked_knob_has_one_line(mut fake in misbehaving(), wants in wants()) {
        let report = set(&mut fake, &wants);
        for want in &wants {
            let lines = report.lines.iter().filter(|line| line.key == want.key).count();
            prop_assert_eq!(lines, 1, "{}", want.key);
        }
    }
}
