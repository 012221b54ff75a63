// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the daemon tells of itself: the JSON forms of its status and of its records, which clients read
//! back.
//!
//! Words and names of fields are never renamed. Values stand as `set` takes them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::desired::Origin;
use crate::error::ErrorCode;

/// How a declared value, or a declared child, stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// It is as declared.
    Holds,
    /// It is stored as declared, and the driver does not use it.
    NoEffect,
    /// Somebody changed it, and the policy is to leave it so.
    Drifted,
    /// Somebody changes it again and again: it is set again later.
    Waiting,
    /// It could not be set.
    Failed,
}

impl Standing {
    /// Returns the word in tables and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Holds => "holds",
            Self::NoEffect => "no-effect",
            Self::Drifted => "drifted",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }

    /// Says whether it is as declared.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Holds)
    }
}

/// One declared value of an interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct KnobStatus {
    /// The declared value.
    pub declared: String,
    /// The value when it was last read.
    pub value: Option<String>,
    /// How it stands.
    pub standing: Standing,
    /// The policy's name.
    pub policy: String,
    /// Where it is declared.
    pub origin: Origin,
    /// Why it is not as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The error's name, of one that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How often somebody else changed it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drifts: u64,
    /// Milliseconds until it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One declared P_Key child of an interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ChildStatus {
    /// P_Key as declared.
    pub pkey: String,
    /// The declared name, or the one that a missing child gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it shall be there.
    pub declared: bool,
    /// Names of the interfaces that are it.
    pub present: Vec<String>,
    /// How it stands.
    pub standing: Standing,
    /// The policy's name.
    pub policy: String,
    /// Where it is declared.
    pub origin: Origin,
    /// Why it is not as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Milliseconds until it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
}

/// Another program that manages an interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Owner {
    /// The program.
    pub program: String,
    /// What it says of the interface, and where it says so.
    pub what: String,
}

/// One managed interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LinkStatus {
    /// Name.
    pub link: String,
    /// Kernel index.
    pub index: u32,
    /// Whether everything declared is so.
    pub ok: bool,
    /// Declared values by knob.
    pub knobs: BTreeMap<String, KnobStatus>,
    /// Declared children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildStatus>,
    /// Other programs that manage it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
}

/// One configuration file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct FileStatus {
    /// Its path.
    pub file: String,
    /// `used`, `kept-last-good` or `unused`.
    pub state: String,
}

/// What is wrong with a configuration file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Problem {
    /// `error` or `warning`.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub origin: Origin,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// How often the daemon did what.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Times that the loop woke up.
    pub wakeups: u64,
    /// Events of the kernel.
    pub events: u64,
    /// Times that knobs without a notification were read.
    pub polls: u64,
    /// Values that were set at a start, a reload, or when an interface appeared.
    pub applied: u64,
    /// Values that were set again after somebody changed them.
    pub healed: u64,
    /// Values that could not be set.
    pub failed: u64,
}

/// How the daemon and all that it manages stand.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Version of the daemon.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// Milliseconds from its start until everything had been applied.
    pub ready_ms: u64,
    /// Whether everything declared is so, and every file is right.
    pub ok: bool,
    /// Configuration files in ascending precedence.
    pub files: Vec<FileStatus>,
    /// What is wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// Managed interfaces, by index.
    pub links: Vec<LinkStatus>,
    /// Values that are polled, for want of a notification.
    pub polled: u64,
    /// Milliseconds between two polls.
    pub poll_ms: u64,
    /// How often it did what.
    pub counters: Counters,
}

/// What a record is about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A value was set, and read back.
    Changed,
    /// Somebody else changed a value.
    Drift,
    /// A value, or a child, is as declared again without our doing.
    Settled,
    /// A value that is changed again and again is left alone for a while.
    Waiting,
    /// Something could not be done.
    Failed,
    /// A managed interface appeared.
    Appeared,
    /// A managed interface disappeared.
    Disappeared,
    /// A managed interface got another name.
    Renamed,
    /// A child was made.
    ChildMade,
    /// A child was removed.
    ChildRemoved,
    /// Declarations were read.
    Loaded,
    /// Notifications were lost: everything is looked at.
    Lost,
    /// A change waits for its confirmation, was confirmed, or taken back.
    Checkpoint,
    /// Somebody asked for what they may not do.
    Denied,
}

impl RecordKind {
    /// Returns the word in tables and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Drift => "drift",
            Self::Settled => "settled",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Appeared => "appeared",
            Self::Disappeared => "disappeared",
            Self::Renamed => "renamed",
            Self::ChildMade => "child-made",
            Self::ChildRemoved => "child-removed",
            Self::Loaded => "loaded",
            Self::Lost => "lost",
            Self::Checkpoint => "checkpoint",
            Self::Denied => "denied",
        }
    }
}

/// Who asked for something, and through what.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct By {
    /// Through what: `socket`, `dbus` or `tcp`.
    pub surface: String,
    /// The user, as the kernel or the bus says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name on the bus, of the certificate or of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `user 0, process 4711, over socket`.
impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.uid) {
            (Some(name), Some(uid)) => write!(f, "{name}, user {uid}")?,
            (Some(name), None) => f.write_str(name)?,
            (None, Some(uid)) => write!(f, "user {uid}")?,
            (None, None) => f.write_str("an unknown caller")?,
        }
        if let Some(pid) = self.pid {
            write!(f, ", process {pid}")?;
        }
        write!(f, ", over {}", self.surface)
    }
}

/// One thing that happened, or that the daemon did, and why.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// What it is about.
    pub kind: RecordKind,
    /// Milliseconds since the epoch; 0 before it is told to anybody.
    #[serde(default)]
    pub time_ms: u64,
    /// The interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
    /// The value, or name, before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value, or name, now; of a failure the value that was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why.
    pub reason: String,
    /// Where it is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Who asked for it, when somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

impl Record {
    /// Returns a record without details.
    #[must_use]
    pub fn new(kind: RecordKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            time_ms: 0,
            link: None,
            knob: None,
            from: None,
            to: None,
            reason: reason.into(),
            origin: None,
            code: None,
            by: None,
        }
    }

    /// Adds the interface.
    #[must_use]
    pub fn of(mut self, link: impl ToString) -> Self {
        self.link = Some(link.to_string());
        self
    }

    /// Adds what was before and is now.
    #[must_use]
    pub fn values(mut self, from: Option<String>, to: Option<String>) -> Self {
        self.from = from;
        self.to = to;
        self
    }

    /// Adds the error.
    #[must_use]
    pub fn code(mut self, code: ErrorCode) -> Self {
        self.code = Some(code.name().to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_those_of_the_json_form() {
        for standing in [
            Standing::Unknown,
            Standing::Holds,
            Standing::NoEffect,
            Standing::Drifted,
            Standing::Waiting,
            Standing::Failed,
        ] {
            assert_eq!(
                serde_json::to_value(standing).unwrap(),
                json!(standing.name())
            );
        }
        for kind in [
            RecordKind::Changed,
            RecordKind::Drift,
            RecordKind::Settled,
            RecordKind::Waiting,
            RecordKind::Failed,
            RecordKind::Appeared,
            RecordKind::Disappeared,
            RecordKind::Renamed,
            RecordKind::ChildMade,
            RecordKind::ChildRemoved,
            RecordKind::Loaded,
            RecordKind::Lost,
            RecordKind::Checkpoint,
            RecordKind::Denied,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.name()));
        }
    }

    #[test]
    fn what_a_newer_daemon_adds_is_no_error() {
        let record = json!({
            "kind": "drift", "time-ms": 7, "link": "ib0", "knob": "mtu", "from": "2044",
            "to": "1500", "reason": "somebody", "more": [1],
            "origin": {"file": "/etc/x.toml", "line": 3, "column": 1},
        });
        let read: Record = serde_json::from_value(record).unwrap();
        assert_eq!(read.origin.unwrap().to_string(), "/etc/x.toml:3:1");
        assert_eq!(read.code, None);
        let short: Origin = serde_json::from_value(json!({"file": "here"})).unwrap();
        assert_eq!(short.line, 0);
    }
}
