// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON forms of everything that is told or asked for: one for every surface, and for reading back.
//!
//! Names of knobs and words such as `stored-no-effect` are never renamed. What is absent is left out;
//! only `value` is `null` when there is none. docs/ibctl.md shows each form.

mod knob;
mod link;
mod listed;
mod plan;
mod report;
mod request;
#[cfg(test)]
mod tests;

pub use knob::{DomainForm, KnobForm};
pub use link::{LinkForm, ParentForm, ReadingForm};
pub use listed::Listed;
pub use plan::{
    FindingForm, OverrideForm, PlanForm, RefusalForm, SetPlanForm, SetStepForm, SkipForm, StepForm,
};
pub use report::{
    ChangeForm, ChildForm, HostReportForm, InterruptedForm, LineForm, ProblemForm, ReportForm,
};
pub use request::{
    ApplyBody, CheckpointBody, CheckpointDeed, CheckpointForm, ExportForm, HealthForm, KnobsBody,
    KnobsForm, LinksForm, PlanBody, SourceForm,
};

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::value::Value;

/// A value as `set` takes it, with the kernel's number beside it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ValueForm {
    /// The value; `null` when there is none.
    #[cfg_attr(feature = "schema", schemars(required, extend("type" = ["string", "null"])))]
    pub value: Option<String>,
    /// The kernel's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<u64>,
    /// Unit of that number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl ValueForm {
    pub(crate) fn new(key: &Key, value: Option<&Value>) -> Self {
        let domain = &key.knob().domain;
        let unit = domain.unit().map(|unit| unit.name());
        Self {
            value: value.map(|value| value.show(domain)),
            raw: value.and_then(|value| domain.to_kernel(value)),
            unit: unit.filter(|unit| !unit.is_empty()).map(str::to_owned),
        }
    }
}

fn shown(key: &Key, value: &Value) -> String {
    value.show(&key.knob().domain)
}
