// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules that every row keeps.

use std::collections::HashSet;

use super::*;

#[test]
fn names_are_unique_and_kebab_case() {
    let mut seen = HashSet::new();
    for knob in knobs() {
        assert!(seen.insert(knob.name), "{} stands twice", knob.name);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(knob.name.chars().all(plain), "{}", knob.name);
        assert!(!knob.is_family || !knob.name.contains('.'), "{}", knob.name);
    }
}

#[test]
fn summaries_are_one_short_sentence() {
    for knob in knobs() {
        assert!(
            knob.summary.len() <= 60,
            "{}: {}",
            knob.name,
            knob.summary.len()
        );
        assert!(knob.summary.ends_with('.'), "{}", knob.name);
        assert!(knob.details.ends_with('.'), "{}", knob.name);
        assert!(!knob.details.contains("  "), "{}", knob.name);
    }
}

#[test]
fn every_knob_has_a_carrier_and_names_each_channel_once() {
    for knob in knobs() {
        let channels: HashSet<_> = knob.carriers.iter().map(|c| c.channel()).collect();
        assert!(!channels.is_empty(), "{}", knob.name);
        assert_eq!(
            channels.len(),
            knob.carriers.len(),
            "{}: --via is ambiguous",
            knob.name
        );
    }
}

#[test]
fn choices_print_what_they_read() {
    for knob in knobs() {
        let Domain::Choice(choices) = knob.domain else {
            continue;
        };
        for choice in choices {
            for spelling in [&[choice.name], choice.aliases].concat() {
                let value = knob.domain.parse(spelling).unwrap();
                assert_eq!(knob.domain.show(&value), choice.name, "{}", knob.name);
            }
        }
    }
}

#[test]
fn disturbed_knobs_exist_and_come_later() {
    for knob in knobs() {
        for name in knob.disturbs {
            let other = find(name).unwrap_or_else(|| panic!("{}: {name}", knob.name));
            assert!(knob.phase < other.phase, "{} before {name}", knob.name);
        }
    }
}

#[test]
fn parts_are_families_of_the_same_values() {
    for knob in knobs() {
        let Some(parts) = knob.parts else { continue };
        let parts = find(parts).unwrap_or_else(|| panic!("{}: {parts}", knob.name));
        assert!(!knob.is_family && parts.is_family, "{}", knob.name);
        let domain = |knob: &Knob| format!("{:?}", knob.domain);
        assert_eq!(domain(knob), domain(parts), "{}", knob.name);
        assert_eq!(knob.phase, parts.phase, "{}", knob.name);
    }
}

#[test]
fn driver_limits_are_the_drivers() {
    let batch = find("batch-limit").unwrap();
    assert!(batch.domain.parse("64").is_ok());
    assert!(batch.domain.parse("65").is_err());
    assert!(batch.domain.parse("0").is_err());
}
