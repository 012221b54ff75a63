// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Forms are what the documentation says, and read back as what they were.

use serde_json::json;

use super::*;
use crate::channel::Channel;
use crate::error::ErrorCode;
use crate::link::{Limits, Reading};
use crate::plan::{Outcome, Report, ReportLine};
use crate::registry;

fn key(name: &str) -> Key {
    name.parse().unwrap()
}

#[test]
fn readings_hold_what_set_takes_and_the_kernels_number() {
    let key = key("rx-usecs");
    let mut reading = Reading::settable(Value::Number(20_000), Channel::Ethtool);
    reading.limits = Some(Limits { min: 0, max: 65535 });
    let form = serde_json::to_value(ReadingForm::new(&key, &reading)).unwrap();
    let expected = json!({
        "value": "20us", "raw": 20, "unit": "us", "support": "settable", "via": "ethtool",
        "limits": {"min": 0, "max": 65535},
    });
    assert_eq!(form, expected);
}

#[test]
fn absence_is_told_by_a_null_value_and_a_reason() {
    let reading = Reading::unsupported("no ring parameters");
    let form = serde_json::to_value(ReadingForm::new(&key("ring.rx"), &reading)).unwrap();
    let expected = json!({"value": null, "support": "unsupported", "why": "no ring parameters"});
    assert_eq!(form, expected);
}

#[test]
fn reports_tell_the_gravest_code() {
    let line = |name: &str, outcome, now: u64| ReportLine {
        key: key(name),
        asked: Some(Value::Number(9000)),
        before: Some(Value::Number(1500)),
        now: Some(Value::Number(now)),
        outcome,
    };
    let refused = Outcome::Refused {
        why: "EINVAL".into(),
        code: ErrorCode::Refused,
    };
    let report = Report {
        link: "ib0".parse().unwrap(),
        lines: vec![
            line("txqueuelen", Outcome::PutBack, 1500),
            line("mtu", refused, 1500),
        ],
    };
    let form = serde_json::to_value(&report).unwrap();
    let text = serde_json::to_string(&report).unwrap();
    let again: ReportForm = serde_json::from_str(&text).unwrap();
    assert_eq!(again, ReportForm::from(&report));
    let names: Vec<_> = again.knobs.iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["txqueuelen", "mtu"],
        "their order is that of the steps"
    );
    assert_eq!(
        (&form["ok"], &form["code"]),
        (&json!(false), &json!("refused"))
    );
    let expected = json!({
        "outcome": "refused", "asked": "9000", "before": "1500", "value": "1500", "raw": 1500,
        "unit": "bytes", "why": "EINVAL", "code": "refused",
    });
    assert_eq!(form["knobs"]["mtu"], expected);
    assert_eq!(form["knobs"]["txqueuelen"]["outcome"], "put-back");
}

#[test]
fn every_knob_has_a_form() {
    for knob in registry::knobs() {
        let form = serde_json::to_value(knob).unwrap();
        assert!(form["values"]["form"].is_string(), "{}", knob.name);
        assert!(!form["channels"].as_array().unwrap().is_empty());
    }
    let mode = serde_json::to_value(registry::find("mode").unwrap()).unwrap();
    assert_eq!(
        mode["values"],
        json!({"form": "choice", "choices": ["datagram", "connected"]})
    );
    let flag = serde_json::to_value(registry::find("private-flag").unwrap()).unwrap();
    assert_eq!(flag["knob"], "private-flag.NAME");
}
