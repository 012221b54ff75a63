// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON forms of links, reports, plans and knobs: one for every surface.
//!
//! Names of knobs and words such as `stored-no-effect` are never renamed. What is absent is left out;
//! only `value` is `null` when there is none. docs/ibctl.md shows each form.

mod host;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::channel::Channel;
use crate::desired::ChildKind;
use crate::domain::{Choice, Domain};
use crate::error::ErrorCode;
use crate::key::Key;
use crate::link::{Guid, Limits, Link, LinkName, Reading};
use crate::pkey::Pkey;
use crate::plan::{Plan, Report, ReportLine};
use crate::registry::Knob;
use crate::value::Value;

/// A value as `set` takes it, with the kernel's number beside it.
#[derive(Serialize)]
struct ValueForm {
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

impl ValueForm {
    fn new(key: &Key, value: Option<&Value>) -> Self {
        let domain = &key.knob().domain;
        let unit = domain.unit().map(|unit| unit.name());
        Self {
            value: value.map(|value| value.show(domain)),
            raw: value.and_then(|value| domain.to_kernel(value)),
            unit: unit.filter(|unit| !unit.is_empty()),
        }
    }
}

#[derive(Serialize)]
struct ReadingForm<'a> {
    #[serde(flatten)]
    value: ValueForm,
    support: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<Channel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<String>,
}

impl<'a> ReadingForm<'a> {
    fn new(key: &Key, reading: &'a Reading) -> Self {
        Self {
            value: ValueForm::new(key, reading.value.as_ref()),
            support: reading.support.name(),
            why: reading.support.why(),
            via: reading.via,
            limits: reading.limits,
            local: reading
                .local
                .as_ref()
                .map(|local| local.show(&key.knob().domain)),
        }
    }
}

struct Readings<'a>(&'a BTreeMap<Key, Reading>);

impl Serialize for Readings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|(key, reading)| (key, ReadingForm::new(key, reading))),
        )
    }
}

#[derive(Serialize)]
struct ParentForm<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a LinkName>,
}

#[derive(Serialize)]
struct LinkForm<'a> {
    index: u32,
    name: &'a LinkName,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    altnames: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'a str>,
    #[serde(rename = "device-path", skip_serializing_if = "Option::is_none")]
    device_path: Option<&'a str>,
    arphrd: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guid: Option<Guid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pkey: Option<Pkey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ParentForm<'a>>,
    #[serde(rename = "child-kind", skip_serializing_if = "Option::is_none")]
    child_kind: Option<ChildKind>,
    up: bool,
    carrier: bool,
    knobs: Readings<'a>,
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parent = self.parent.map(|index| ParentForm {
            index,
            name: self.parent_name.as_ref(),
        });
        let form = LinkForm {
            index: self.index,
            name: &self.name,
            altnames: &self.alt_names,
            kind: self.kind.as_deref(),
            driver: self.driver.as_deref(),
            device_path: self.device_path.as_deref(),
            arphrd: self.arphrd,
            address: self.address_text(),
            guid: self.guid(),
            pkey: self.pkey,
            parent,
            child_kind: self.child_kind,
            up: self.is_up,
            carrier: self.has_carrier,
            knobs: Readings(&self.readings),
        };
        form.serialize(serializer)
    }
}

#[derive(Serialize)]
struct LineForm<'a> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(flatten)]
    now: ValueForm,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
}

impl<'a> LineForm<'a> {
    fn new(line: &'a ReportLine) -> Self {
        let domain = &line.key.knob().domain;
        let show = |value: &Value| value.show(domain);
        Self {
            outcome: line.outcome.name(),
            asked: line.asked.as_ref().map(show),
            before: line.before.as_ref().map(show),
            now: ValueForm::new(&line.key, line.now.as_ref()),
            why: line.outcome.why(),
            code: line.outcome.code(),
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Lines<'a>(&'a [ReportLine]);
        impl Serialize for Lines<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|line| (&line.key, LineForm::new(line))))
            }
        }
        let code = self.code();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("link", &self.link)?;
        map.serialize_entry("ok", &code.is_none())?;
        if let Some(code) = code {
            map.serialize_entry("code", &code)?;
        }
        map.serialize_entry("knobs", &Lines(&self.lines))?;
        map.end()
    }
}

#[derive(Serialize)]
struct StepForm<'a> {
    knob: &'a Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    to: String,
    via: Channel,
    #[serde(rename = "no-effect", skip_serializing_if = "Option::is_none")]
    no_effect: Option<&'a str>,
}

#[derive(Serialize)]
struct SkipForm<'a> {
    knob: &'a Key,
    value: String,
    #[serde(rename = "no-effect", skip_serializing_if = "Option::is_none")]
    no_effect: Option<&'a str>,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let show = |key: &Key, value: &Value| value.show(&key.knob().domain);
        let steps = self.steps.iter().map(|step| StepForm {
            knob: &step.key,
            from: step.from.as_ref().map(|from| show(&step.key, from)),
            to: show(&step.key, &step.to),
            via: step.carrier.channel(),
            no_effect: step.no_effect.as_deref(),
        });
        let skips = self.skips.iter().map(|skip| SkipForm {
            knob: &skip.key,
            value: show(&skip.key, &skip.value),
            no_effect: skip.no_effect.as_deref(),
        });
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("link", &self.link)?;
        map.serialize_entry("steps", &steps.collect::<Vec<_>>())?;
        map.serialize_entry("already-so", &skips.collect::<Vec<_>>())?;
        map.end()
    }
}

#[derive(Serialize)]
#[serde(
    tag = "form",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
enum DomainForm {
    Choice {
        choices: Vec<&'static str>,
    },
    Number {
        #[serde(skip_serializing_if = "str::is_empty")]
        unit: &'static str,
        min: u64,
        max: u64,
    },
    Duration {
        unit: &'static str,
        max: u64,
    },
    Cpus,
    Text {
        max_bytes: usize,
    },
}

impl Serialize for Domain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |choice: &Choice| choice.name;
        let form = match *self {
            Self::Choice(choices) => DomainForm::Choice {
                choices: choices.iter().map(name).collect(),
            },
            Self::Number { unit, min, max } => DomainForm::Number {
                unit: unit.name(),
                min,
                max,
            },
            Self::Duration { unit, max } => DomainForm::Duration {
                unit: unit.name(),
                max,
            },
            Self::Cpus => DomainForm::Cpus,
            Self::Text { max_len } => DomainForm::Text { max_bytes: max_len },
        };
        form.serialize(serializer)
    }
}

#[derive(Serialize)]
struct KnobForm<'a> {
    knob: Cow<'a, str>,
    summary: &'a str,
    details: &'a str,
    values: &'a Domain,
    channels: Vec<Channel>,
    effect: &'a str,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    disturbs: &'a [&'a str],
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let knob = if self.is_family {
            format!("{}.NAME", self.name).into()
        } else {
            self.name.into()
        };
        let form = KnobForm {
            knob,
            summary: self.summary,
            details: self.details,
            values: &self.domain,
            channels: self.carriers.iter().map(|c| c.channel()).collect(),
            effect: self.effect.name(),
            disturbs: self.disturbs,
        };
        form.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Outcome;
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
        let expected =
            json!({"value": null, "support": "unsupported", "why": "no ring parameters"});
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
}
