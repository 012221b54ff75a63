// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How sets and changes of hosts went.

use serde::{Deserialize, Serialize, Serializer};

use super::{Listed, ValueForm, shown};
use crate::error::ErrorCode;
use crate::failure::Failure;
use crate::host::{ChildReport, HostReport};
use crate::plan::{Report, ReportLine};

/// How one knob went.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LineForm {
    /// Such as `changed`, `already-so`, `refused` or `put-back`.
    pub outcome: String,
    /// The value that was asked for; absent for a knob that the kernel changed along with another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value now, read back.
    #[serde(flatten)]
    pub now: ValueForm,
    /// Why it is not as asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

impl From<&ReportLine> for LineForm {
    fn from(line: &ReportLine) -> Self {
        Self {
            outcome: line.outcome.name().to_owned(),
            asked: line.asked.as_ref().map(|asked| shown(&line.key, asked)),
            before: line.before.as_ref().map(|before| shown(&line.key, before)),
            now: ValueForm::new(&line.key, line.now.as_ref()),
            why: line.outcome.why().map(str::to_owned),
            code: line.outcome.code(),
        }
    }
}

/// How the knobs of one interface went.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ReportForm {
    /// The interface.
    pub link: String,
    /// Whether all is as asked.
    pub ok: bool,
    /// The gravest error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Its knobs, in the order of the steps.
    pub knobs: Listed<LineForm>,
}

impl From<&Report> for ReportForm {
    fn from(report: &Report) -> Self {
        let code = report.code();
        let lines = report.lines.iter();
        Self {
            link: report.link.to_string(),
            ok: code.is_none(),
            code,
            knobs: lines
                .map(|line| (line.key.to_string(), line.into()))
                .collect(),
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ReportForm::from(self).serialize(serializer)
    }
}

/// How it went with a P_Key child.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ChildForm {
    /// The child.
    pub child: String,
    /// The interface that it belongs to.
    pub parent: String,
    /// Its P_Key.
    pub pkey: String,
    /// What was to be done: `make` or `remove`.
    pub change: String,
    /// How it went.
    pub outcome: String,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

impl From<&ChildReport> for ChildForm {
    fn from(report: &ChildReport) -> Self {
        Self {
            child: report.name.to_string(),
            parent: report.parent.to_string(),
            pkey: report.pkey.to_string(),
            change: report.change.name().to_owned(),
            outcome: report.outcome.name().to_owned(),
            why: report.outcome.why().map(str::to_owned),
            code: report.outcome.code(),
        }
    }
}

/// How a change of the host went.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct HostReportForm {
    /// The state that it ended in: `nothing-to-do`, `not-started`, `applied`, `rolled-back` or
    /// `rolled-back-in-part`.
    pub end: String,
    /// Whether everything is as declared.
    pub ok: bool,
    /// The gravest error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What failed that is about no interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Interfaces, in the order of the plan.
    pub links: Vec<ReportForm>,
    /// P_Key children that were to be made or removed.
    pub children: Vec<ChildForm>,
}

impl From<&HostReport> for HostReportForm {
    fn from(report: &HostReport) -> Self {
        let code = report.code();
        Self {
            end: report.end.name().to_owned(),
            ok: code.is_none(),
            code,
            trouble: report
                .trouble
                .as_ref()
                .map(|trouble| trouble.message.clone()),
            links: report.links.iter().map(ReportForm::from).collect(),
            children: report.children.iter().map(ChildForm::from).collect(),
        }
    }
}

impl Serialize for HostReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        HostReportForm::from(self).serialize(serializer)
    }
}

/// An earlier change that had been interrupted, and how it was brought to an end.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct InterruptedForm {
    /// What it had been asked to do.
    pub what: String,
    /// How that went.
    #[serde(flatten)]
    pub report: HostReportForm,
}

/// How an apply, or its taking back, went.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ChangeForm {
    /// How it went.
    #[serde(flatten)]
    pub report: HostReportForm,
    /// Seconds that are left to confirm it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_seconds: Option<u64>,
    /// An earlier change that was brought to an end before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<InterruptedForm>,
}

/// Why a request was not done (RFC 9457), and what there is to tell besides.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ProblemForm {
    /// The code's title.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The message and its causes in one line.
    pub detail: String,
    /// The code and its parts.
    #[serde(flatten)]
    pub failure: Failure,
    /// How a set went, knob by knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportForm>,
    /// How a change of the host went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeForm>,
    /// The plan of which something cannot be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<super::PlanForm>,
}

impl From<Failure> for ProblemForm {
    fn from(failure: Failure) -> Self {
        Self {
            title: failure.code.title().to_owned(),
            status: failure.code.http_status(),
            detail: failure.to_string(),
            failure,
            report: None,
            change: None,
            plan: None,
        }
    }
}
