// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of the registry.

use serde::{Deserialize, Serialize, Serializer};

use crate::domain::{Choice, Domain};
use crate::registry::Knob;

/// Which values a knob takes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "form",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
pub enum DomainForm {
    /// One of these words.
    Choice {
        /// The words.
        choices: Vec<String>,
    },
    /// A number.
    Number {
        /// Its unit, if it has one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        unit: String,
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A time.
    Duration {
        /// The kernel's unit.
        unit: String,
        /// Longest, in nanoseconds.
        max: u64,
    },
    /// A set of CPUs.
    Cpus,
    /// A text.
    Text {
        /// Bytes that it may have.
        max_bytes: usize,
    },
}

impl From<&Domain> for DomainForm {
    fn from(domain: &Domain) -> Self {
        let name = |choice: &Choice| choice.name.to_owned();
        match *domain {
            Domain::Choice(choices) => Self::Choice {
                choices: choices.iter().map(name).collect(),
            },
            Domain::Number { unit, min, max } => Self::Number {
                unit: unit.name().to_owned(),
                min,
                max,
            },
            Domain::Duration { unit, max } => Self::Duration {
                unit: unit.name().to_owned(),
                max,
            },
            Domain::Cpus => Self::Cpus,
            Domain::Text { max_len } => Self::Text { max_bytes: max_len },
        }
    }
}

impl Serialize for Domain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DomainForm::from(self).serialize(serializer)
    }
}

/// A knob, whatever interface it is of.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct KnobForm {
    /// Its name; of a family `NAME` stands for the member.
    pub knob: String,
    /// What it is, in a line.
    pub summary: String,
    /// What else there is to know.
    pub details: String,
    /// Which values it takes.
    pub values: DomainForm,
    /// The kernel interfaces that carry it, the preferred one first.
    pub channels: Vec<String>,
    /// What a change does to traffic.
    pub effect: String,
    /// Knobs that the kernel changes along with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbs: Vec<String>,
}

impl From<&Knob> for KnobForm {
    fn from(knob: &Knob) -> Self {
        let carriers = knob.carriers.iter();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            knob: if knob.is_family {
                format!("{}.NAME", knob.name)
            } else {
                knob.name.to_owned()
            },
            summary: knob.summary.to_owned(),
            details: knob.details.to_owned(),
            values: (&knob.domain).into(),
            channels: carriers.map(|it| it.channel().name().to_owned()).collect(),
            effect: knob.effect.name().to_owned(),
            disturbs: names(knob.disturbs),
        }
    }
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        KnobForm::from(self).serialize(serializer)
    }
}
