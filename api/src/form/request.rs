// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bodies of requests, and answers that are no report. Unknown members of a body are errors: a misspelt
//! option must not be taken for its absence.

use serde::{Deserialize, Serialize};

use super::Listed;

/// A text of declarations, as a file would have it. The daemon opens no file that a request names.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SourceForm {
    /// What it is called in messages and records. Its ending tells the language: `.yaml`, `.yml` and
    /// `.json` are YAML, all else is TOML.
    pub file: String,
    /// The text.
    pub text: String,
}

/// What to plan.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PlanBody {
    /// The declarations, in ascending precedence.
    pub sources: Vec<SourceForm>,
}

/// What to apply.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApplyBody {
    /// The declarations, in ascending precedence.
    pub sources: Vec<SourceForm>,
    /// Everything is put back unless it is confirmed within so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86400)))]
    pub confirm_within_seconds: Option<u64>,
    /// Only plan.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 256)))]
    pub why: Option<String>,
}

/// Values to set on one interface: all of them or none.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KnobsBody {
    /// Values by knob, as `ibctl set` takes them.
    pub knobs: Listed<String>,
    /// Write and read through this kernel interface only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Only plan.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 256)))]
    pub why: Option<String>,
}

/// What to do with the last change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointDeed {
    /// Keep it for good.
    Confirm,
    /// Take it back.
    Rollback,
}

/// What to do with the last change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CheckpointBody {
    /// What.
    #[serde(rename = "do")]
    pub deed: CheckpointDeed,
}

/// How it stands with the last change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct CheckpointForm {
    /// `idle`, `applied`, `rolled-back`, `pending`, `overdue` or `interrupted`.
    pub state: String,
    /// What it had been asked to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Seconds that are left to confirm it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_seconds: Option<u64>,
    /// Steps that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Steps that were done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// Why it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How it went, as it was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<super::HostReportForm>,
}

/// A list of interfaces, by index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LinksForm {
    /// The interfaces.
    pub links: Vec<super::LinkForm>,
}

/// A list of knobs, in the order of the registry.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct KnobsForm {
    /// The knobs.
    pub knobs: Vec<super::KnobForm>,
}

/// Whether the daemon lives.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct HealthForm {
    /// Version of the daemon.
    pub version: String,
    /// Whether its loop answers at once; it does not while it changes something that takes long.
    pub idle: bool,
}

/// The present state as a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ExportForm {
    /// The file, in TOML.
    pub toml: String,
}
