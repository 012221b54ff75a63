// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A report of many lines as the one failure that it comes down to.

use crate::error::ErrorCode;
use crate::failure::Failure;
use crate::host::{End, HostReport};
use crate::key::Key;
use crate::plan::{Outcome, Report, ReportLine};
use crate::value::Value;

impl Report {
    /// Returns the failure that sums up a set which did not go as asked; `None` when it did.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let code = self.code()?;
        let line = first(self, code)?;
        let message = format!("{}: {}{}", self.link, what(self, line), state(self, code));
        Some(Failure::new(code, message).about(Some(&self.link), Some(&line.key)))
    }
}

impl HostReport {
    /// Returns the failure that sums up a change which did not go as declared; `None` when it did.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let code = self.code()?;
        let (mut link, mut knob) = (None, None);
        let what = if let Some(trouble) = &self.trouble {
            trouble.message.clone()
        } else if let Some((report, line)) = self
            .links
            .iter()
            .find_map(|it| Some((it, first(it, code)?)))
        {
            (link, knob) = (Some(&report.link), Some(&line.key));
            format!("{}: {}", report.link, what(report, line))
        } else {
            let is_it = |outcome: &Outcome| outcome.code() == Some(code);
            let child = self.children.iter().find(|child| is_it(&child.outcome))?;
            link = Some(&child.name);
            let why = child.outcome.why().unwrap_or(child.outcome.name());
            let change = child.change.name();
            format!(
                "{}: could not {change} the child with P_Key {} on {}: {why}",
                child.name, child.pkey, child.parent
            )
        };
        let state = match self.end {
            End::NotStarted => "; nothing was changed",
            End::RolledBack => "; everything was put back",
            End::InPart => "; not everything could be put back: the report has what",
            End::Applied | End::Nothing if code == ErrorCode::Vanished => {
                "; the others were changed"
            }
            End::Applied | End::Nothing => "",
        };
        Some(Failure::new(code, format!("{what}{state}")).about(link, knob))
    }
}

/// Returns the first line with that code.
fn first(report: &Report, code: ErrorCode) -> Option<&ReportLine> {
    let mut lines = report.lines.iter();
    lines.find(|line| line.outcome.code() == Some(code))
}

fn what(report: &Report, line: &ReportLine) -> String {
    let key = &line.key;
    let asked = match &line.asked {
        Some(value) => format!("{key}={}", show(key, Some(value))),
        None => key.to_string(),
    };
    match &line.outcome {
        Outcome::Refused { why, code } => match code {
            ErrorCode::Permission => format!("no permission to set {key}: {why}"),
            ErrorCode::Unsupported => format!("{key} is not supported here: {why}"),
            ErrorCode::Refused => format!("the kernel refused {asked}: {why}"),
            _ => format!("{asked} could not be set: {why}"),
        },
        Outcome::NoEffect { why } => format!("{asked} is stored, but has no effect: {why}"),
        Outcome::NotVerified { why } => format!("{asked} did not come about: {why}"),
        Outcome::NotPutBack { why } => {
            let before = show(key, line.before.as_ref());
            let cause = cause(report).map_or_else(String::new, |cause| format!("{cause}, and "));
            let now = show(key, line.now.as_ref());
            format!("{cause}{key} could not be put back to {before}: {why}; it is {now} now")
        }
        Outcome::Vanished => "the interface disappeared while it was being set".to_owned(),
        Outcome::Changed | Outcome::AlreadySo | Outcome::PutBack | Outcome::NotTried => asked,
    }
}

/// Returns what made the set fail before something could not be put back.
fn cause(report: &Report) -> Option<String> {
    let is_cause = |line: &&ReportLine| {
        matches!(
            line.outcome,
            Outcome::Refused { .. } | Outcome::NotVerified { .. }
        )
    };
    let line = report.lines.iter().find(is_cause)?;
    Some(what(report, line))
}

fn state(report: &Report, code: ErrorCode) -> &'static str {
    let is_put_back = |line: &ReportLine| line.outcome == Outcome::PutBack;
    let is_gone = |line: &ReportLine| line.outcome == Outcome::Vanished;
    match code {
        // The message says it: it is stored, gone, or not put back.
        ErrorCode::NoEffect | ErrorCode::NotPutBack => "",
        ErrorCode::Vanished if report.lines.iter().any(is_gone) => "",
        _ if report.lines.iter().any(is_put_back) => "; what was changed before it was put back",
        ErrorCode::NotVerified => "; the value of before was put back",
        _ => "; nothing was changed",
    }
}

/// Returns a value as `set` takes it, `''` for an empty one, `-` for none.
#[must_use]
pub fn show(key: &Key, value: Option<&Value>) -> String {
    match value.map(|value| value.show(&key.knob().domain)) {
        Some(text) if text.is_empty() => "''".to_owned(),
        Some(text) => text,
        None => "-".to_owned(),
    }
}
