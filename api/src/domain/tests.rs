// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What people type, and what it means.

use proptest::prelude::*;

use super::*;

const MTU: Domain = Domain::Number {
    unit: Unit::Bytes,
    min: 68,
    max: 65520,
};
const USECS: Domain = Domain::Duration {
    unit: Unit::Microseconds,
    max: 65535,
};
const NSECS: Domain = Domain::Duration {
    unit: Unit::Nanoseconds,
    max: u64::MAX,
};
const MODE: Domain = Domain::Choice(&[Choice::new("datagram", 0), Choice::new("connected", 1)]);

#[track_caller]
fn reads(domain: &Domain, text: &str, number: u64) {
    assert_eq!(domain.parse(text), Ok(Value::Number(number)), "{text}");
}

#[track_caller]
fn refuses(domain: &Domain, text: &str, message: &str) {
    let error = domain.parse(text).expect_err(text).to_string();
    assert!(error.contains(message), "{text}: {error}");
}

#[test]
fn times_carry_units() {
    reads(&NSECS, "20us", 20_000);
    reads(&NSECS, "1ms", 1_000_000);
    reads(&NSECS, "1 ms", 1_000_000);
    reads(&NSECS, "7", 7);
    reads(&USECS, "20us", 20_000);
    reads(&USECS, "20", 20_000);
    reads(&USECS, "0", 0);
    refuses(&USECS, "1500ns", "no whole number of us");
    refuses(&USECS, "20m", "has the unit 'm'");
    refuses(&USECS, "20bytes", "has the unit 'bytes'");
    refuses(&USECS, "1s", "out of range");
    refuses(&USECS, "99999999999999999999s", "out of range");
    refuses(&USECS, "18446744073709551615s", "out of range");
    refuses(&USECS, "1.5ms", "is not a value");
}

#[test]
fn numbers_keep_their_bounds() {
    reads(&MTU, "2044", 2044);
    reads(&MTU, "0x7fc", 2044);
    reads(&MTU, "4KiB", 4096);
    refuses(&MTU, "67", "expected 68 to 65520 bytes");
    refuses(&MTU, "65521", "out of range");
    refuses(&MTU, "-1", "is not a value");
    refuses(&MTU, "+68", "is not a value");
    refuses(&MTU, "0x+68", "is not a value");
    refuses(&MTU, "0x", "is not a value");
    refuses(&MTU, "", "no value given");
    refuses(&MTU, " 2044", "is not a value");
    refuses(&MTU, "20us", "has the unit 'us'");
    refuses(&MTU, "2044 2044", "has the unit");
}

#[test]
fn choices_suggest_the_nearest_name() {
    reads(&MODE, "connected", 1);
    refuses(&MODE, "conected", "did you mean 'connected'?");
    refuses(&MODE, "CM", "not one of datagram, connected");
    reads(&Domain::SWITCH, "yes", 1);
    refuses(&Domain::SWITCH, "maybe", "not one of off, on");
}

#[test]
fn texts_are_printable_and_short() {
    let alias = Domain::Text { max_len: 8 };
    assert_eq!(alias.parse("rack 7"), Ok(Value::Text("rack 7".to_owned())));
    refuses(
        &alias,
        "too long a text",
        "a text of 15 bytes is out of range",
    );
    refuses(&alias, "a\nb", "is not a value");
}

#[test]
fn cpus_are_lists_or_words() {
    let cpus = |text: &str| {
        Domain::Cpus
            .parse(text)
            .map(|value| Domain::Cpus.show(&value))
    };
    for (text, shown) in [
        ("3,0-2", "0-3"),
        ("local", "local"),
        ("none", "none"),
        ("7", "7"),
    ] {
        assert_eq!(cpus(text).as_deref(), Ok(shown));
    }
    refuses(
        &Domain::Cpus,
        "all",
        "expected CPUs such as 0-3,8, or local, or none",
    );
    assert!(matches!(cpus(""), Err(ValueError::Empty { .. })));
    let local = Domain::Cpus.parse("local").unwrap();
    assert!(Domain::Cpus.is_local(&local) && !Domain::Text { max_len: 9 }.is_local(&local));
}

#[test]
fn times_print_in_their_largest_whole_unit() {
    for (nanoseconds, text) in [
        (0, "0"),
        (1, "1ns"),
        (20_000, "20us"),
        (1_500_000, "1500us"),
        (2_000_000_000, "2s"),
    ] {
        assert_eq!(NSECS.show(&Value::Number(nanoseconds)), text);
    }
    assert_eq!(MODE.show(&Value::Number(9)), "9 (unknown)");
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(number in 0_u64..=65535) {
        let value = USECS.from_kernel(number);
        prop_assert_eq!(USECS.parse(&USECS.show(&value)), Ok(value.clone()));
        prop_assert_eq!(USECS.to_kernel(&value), Some(number));
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in ".*") {
        for domain in [MTU, USECS, NSECS, MODE, Domain::SWITCH, Domain::Cpus, Domain::Text { max_len: 16 }] {
            if let Ok(value) = domain.parse(&text) {
                prop_assert_eq!(domain.parse(&domain.show(&value)), Ok(value));
            }
        }
    }
}
