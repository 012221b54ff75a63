// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written reads as the same, whatever it is.

use std::collections::BTreeMap;

use ibmgr_api::{
    Child, ChildKind, Declared, Desired, Domain, Glob, Guid, Key, Match, Origin, Pkey, Policy,
    Rule, Value, registry,
};
use ibmgrd_config::{Source, Store, to_toml};
use proptest::prelude::*;

fn origin() -> Origin {
    Origin::whole("test")
}

fn value(key: &Key, number: u64, text: &str) -> Value {
    match key.knob().domain {
        Domain::Choice(choices) => {
            let at = usize::try_from(number).unwrap_or(0) % choices.len();
            Value::Number(choices[at].raw)
        }
        Domain::Number { min, max, .. } => Value::Number(if number.is_multiple_of(5) {
            max
        } else {
            min + number % (max - min).saturating_add(1).max(1)
        }),
        Domain::Duration { max, .. } => key
            .knob()
            .domain
            .from_kernel(number % max.saturating_add(1).max(1)),
        Domain::Cpus => {
            let list = [
                "local".to_owned(),
                "none".to_owned(),
                format!("0-{}", number % 64),
            ];
            let at = usize::try_from(number % 3).unwrap_or(0);
            key.knob().domain.parse(&list[at]).expect("CPUs")
        }
        Domain::Text { .. } => {
            let parsed = key.knob().domain.parse(text);
            parsed.unwrap_or_else(|_| Value::Text(String::new()))
        }
    }
}

fn keys() -> impl Strategy<Value = Key> {
    let rows: Vec<_> = registry::knobs().collect();
    let member = prop_oneof![
        Just("rx-0".to_owned()),
        Just("tx-12".to_owned()),
        "[!-<>-~]{1,31}"
    ];
    (0..rows.len(), member).prop_filter_map("a member of the family", move |(at, member)| {
        let knob = rows[at];
        if knob.is_family {
            Key::member_of(knob, &member).ok()
        } else {
            Some(Key::of(knob))
        }
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    (0..Policy::ALL.len()).prop_map(|at| Policy::ALL[at])
}

fn settings() -> impl Strategy<Value = BTreeMap<Key, Declared>> {
    let one = (keys(), any::<u64>(), "\\PC{0,40}", policies());
    proptest::collection::vec(one, 0..8).prop_map(|all| {
        let declared = all.into_iter().map(|(key, number, text, policy)| {
            let value = value(&key, number, &text);
            let origin = origin();
            (
                key,
                Declared {
                    value,
                    policy,
                    origin,
                },
            )
        });
        declared.collect()
    })
}

fn pkeys() -> impl Strategy<Value = Pkey> {
    any::<u16>().prop_filter_map("a partition", Pkey::new)
}

fn children() -> impl Strategy<Value = Vec<Child>> {
    let kind = proptest::option::of((0..2_usize).prop_map(|at| ChildKind::ALL[at]));
    let name = proptest::option::of(
        "[a-z\"'.#=\\[]{1,15}".prop_filter_map("a name", |name| name.parse().ok()),
    );
    let one = (pkeys(), kind, name, any::<bool>(), policies(), settings());
    proptest::collection::vec(one, 0..3).prop_map(|all| {
        let mut children: Vec<Child> = Vec::new();
        for (pkey, kind, name, is_present, policy, settings) in all {
            let child = Child {
                pkey,
                kind,
                name,
                is_present,
                policy,
                origin: origin(),
                settings,
            };
            let is_same = |other: &Child| {
                (other.pkey.partition(), &other.name) == (child.pkey.partition(), &child.name)
            };
            if !children.iter().any(is_same) {
                children.push(child);
            }
        }
        children
    })
}

fn matches() -> impl Strategy<Value = Match> {
    let globs =
        || proptest::collection::vec("[ -~]{1,20}".prop_map(|text| Glob::literal(&text)), 0..3);
    let guids = proptest::collection::vec(any::<[u8; 8]>().prop_map(Guid), 0..2);
    let pkeys = proptest::collection::vec(pkeys(), 0..3);
    let all = (
        globs(),
        globs(),
        globs(),
        guids,
        pkeys,
        globs(),
        globs(),
        any::<Option<bool>>(),
    );
    all.prop_map(
        |(name, driver, path, guid, pkey, parent, kind, is_child)| Match {
            name,
            driver,
            path,
            guid,
            pkey,
            parent,
            kind,
            is_child,
        },
    )
    .prop_filter("some condition", |matches| !matches.is_empty())
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (matches(), settings(), children()).prop_map(|(matches, settings, children)| Rule {
        origin: origin(),
        matches,
        settings,
        children,
    });
    proptest::collection::vec(rule, 0..4)
}

/// Returns the rules as if they stood nowhere.
fn nowhere(desired: Desired) -> Desired {
    let mut desired = desired;
    for rule in &mut desired.rules {
        rule.origin = origin();
        rule.settings
            .values_mut()
            .for_each(|declared| declared.origin = origin());
        for child in &mut rule.children {
            child.origin = origin();
            child
                .settings
                .values_mut()
                .for_each(|declared| declared.origin = origin());
        }
    }
    desired
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_reads_as_the_same(rules in rules()) {
        let desired = Desired { rules };
        let text = to_toml(&desired);
        let source = Source {
            file: "a.toml".into(),
            content: Ok(text.clone().into_bytes()),
        };
        let loaded = Store::new().load(vec![source]);
        let told: Vec<_> = loaded.diagnostics.iter().filter(|one| one.is_error()).map(ToString::to_string).collect();
        prop_assert!(told.is_empty(), "{}\n{}", told.join("\n"), text);
        prop_assert_eq!(nowhere(loaded.desired), desired, "{}", text);
    }
}
