// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs as D-Bus properties: their names, types and values.
//!
//! A choice of `off` and `on` is a boolean, numbers and times are `t` (times in nanoseconds), all else is
//! a string. Whoever sets one may also send the text that `ibctl set` takes.

use ibmgr_api::{Assignment, Domain, ErrorCode, Key, Value};
use zbus::{OwnedVariant, Variant};

use super::error::Refusal;

/// Returns the property's name: `gro-flush-timeout` is `GroFlushTimeout`, `ring.rx` is `RingRx`.
pub(super) fn property(key: &Key) -> String {
    let mut name = String::new();
    let mut is_first = true;
    for c in key.to_string().chars() {
        match c {
            '-' | '.' => is_first = true,
            c if c.is_ascii_alphanumeric() => {
                name.push(if is_first { c.to_ascii_uppercase() } else { c });
                is_first = false;
            }
            // Private flags are called as their drivers like.
            _ => name.push('_'),
        }
    }
    name
}

/// Returns the signature of a knob's property.
pub(super) fn signature(domain: &Domain) -> &'static str {
    match domain {
        _ if is_switch(domain) => "b",
        Domain::Number { .. } | Domain::Duration { .. } => "t",
        Domain::Choice(_) | Domain::Cpus | Domain::Text { .. } => "s",
    }
}

fn is_switch(domain: &Domain) -> bool {
    match domain {
        Domain::Choice([off, on]) => (off.name, off.raw, on.name, on.raw) == ("off", 0, "on", 1),
        _ => false,
    }
}

/// Returns a value as the property has it.
pub(super) fn variant(key: &Key, value: &Value) -> OwnedVariant {
    let domain = &key.knob().domain;
    match (domain, value) {
        (_, Value::Number(number)) if is_switch(domain) => (*number != 0).into(),
        (Domain::Number { .. } | Domain::Duration { .. }, Value::Number(number)) => {
            (*number).into()
        }
        (_, value) => text(&value.show(domain)),
    }
}

/// Returns a text as a variant.
pub(super) fn text(text: &str) -> OwnedVariant {
    // A string holds no file descriptor, which is all that can fail.
    OwnedVariant::try_from(Variant::from(text)).unwrap_or_else(|_| false.into())
}

/// Reads a value that was sent.
///
/// # Errors
///
/// [`ErrorCode::BadValue`]: it is of another type, or the knob takes no such value.
pub(super) fn assignment(key: Key, sent: &Variant<'_>) -> Result<Assignment, Refusal> {
    let domain = &key.knob().domain;
    let text = match sent {
        Variant::Variant(inner) => return assignment(key, inner),
        Variant::Str(text) => text.as_str().to_owned(),
        Variant::Bool(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
        other => {
            let number = number(other).ok_or_else(|| {
                let (takes, is) = (signature(domain), other.value_signature());
                let why = format!("{key} is of type {takes} or s, and type {is} was sent");
                Refusal::new(ErrorCode::BadValue, why)
            })?;
            match domain {
                Domain::Duration { .. } => format!("{number}ns"),
                _ => number.to_string(),
            }
        }
    };
    match domain.parse(&text) {
        Ok(value) => Ok(Assignment { key, value }),
        Err(error) => {
            let why = format!("{key} takes no such value: nothing was changed: {error}");
            Err(Refusal::new(ErrorCode::BadValue, why))
        }
    }
}

/// Returns a whole number of whatever type.
pub(super) fn number(sent: &Variant<'_>) -> Option<i128> {
    Some(match sent {
        Variant::U8(number) => (*number).into(),
        Variant::U16(number) => (*number).into(),
        Variant::I16(number) => (*number).into(),
        Variant::U32(number) => (*number).into(),
        Variant::I32(number) => (*number).into(),
        Variant::U64(number) => (*number).into(),
        Variant::I64(number) => (*number).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ibmgr_api::registry;
    use zbus::names::PropertyName;

    use super::*;

    fn key(name: &str) -> Key {
        name.parse().unwrap()
    }

    #[test]
    fn every_knob_is_a_property_of_its_own() {
        let mut seen = HashSet::new();
        for knob in registry::knobs() {
            let name = if knob.is_family {
                continue;
            } else {
                property(&Key::of(knob))
            };
            assert!(PropertyName::try_from(name.as_str()).is_ok(), "{name}");
            assert!(
                !super::super::link::IDENTITY
                    .iter()
                    .any(|(it, _)| *it == name)
            );
            assert!(seen.insert(name), "{}", knob.name);
        }
        assert_eq!(property(&key("gro-flush-timeout")), "GroFlushTimeout");
        assert_eq!(property(&key("feature.rx-gro")), "FeatureRxGro");
        assert_eq!(property(&key("rps-cpus.rx-0")), "RpsCpusRx0");
        assert_eq!(property(&key("private-flag.a+b")), "PrivateFlagA_b");
    }

    #[test]
    fn values_are_typed_and_read_back() {
        for (name, text, signature) in [
            ("mtu", "2044", "t"),
            ("gro-flush-timeout", "20us", "t"),
            ("feature.rx-gro", "on", "b"),
            ("napi-threaded", "busy-poll", "s"),
            ("mode", "connected", "s"),
            ("alias", "rail 1", "s"),
            ("rps-cpus.rx-0", "0-1", "s"),
        ] {
            let key = key(name);
            let value = key.knob().domain.parse(text).unwrap();
            let sent = variant(&key, &value);
            assert_eq!(sent.value_signature().to_string(), signature, "{name}");
            let read = assignment(key.clone(), &sent).unwrap();
            assert_eq!(read.value, value, "{name}");
            let read = assignment(key, &Variant::from(text)).unwrap();
            assert_eq!(read.value, value, "{name}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (name, sent) in [
            ("mtu", Variant::from(-1_i32)),
            ("mtu", Variant::from(true)),
            ("mtu", Variant::from(1.5)),
            ("mode", Variant::from(1_u32)),
            ("alias", Variant::from(vec!["a"])),
            ("batch-limit", Variant::from(65_u64)),
        ] {
            let refused = assignment(key(name), &sent);
            assert!(refused.is_err(), "{name}={sent:?}");
        }
    }
}
