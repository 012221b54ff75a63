// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a request was not done, in the one form that every surface tells it in.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::ErrorCode;

/// A request that was not done, or not as asked.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// The code, which decides exit status, D-Bus name and HTTP status.
    pub code: ErrorCode,
    /// What failed, on which device, and in what state things are.
    pub message: String,
    /// Why, each the cause of the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The interface that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The knob that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
}

impl Failure {
    /// Returns a failure without a cause, about no interface.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            causes: Vec::new(),
            link: None,
            knob: None,
        }
    }

    /// Returns the failure that `error` is, with its causes.
    #[must_use]
    pub fn of(code: ErrorCode, error: &dyn Error) -> Self {
        let mut failure = Self::new(code, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure.causes.push(cause.to_string());
            source = cause.source();
        }
        failure
    }

    /// Adds the interface and the knob, where there is one.
    #[must_use]
    pub fn about(mut self, link: Option<impl ToString>, knob: Option<impl ToString>) -> Self {
        self.link = link.map(|link| link.to_string());
        self.knob = knob.map(|knob| knob.to_string());
        self
    }
}

/// The message and its causes, in one line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("ib0 cannot be read")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn causes_are_kept_and_printed_once() {
        let error = Outer(std::io::Error::other("no room"));
        let failure = Failure::of(ErrorCode::Kernel, &error).about(Some("ib0"), None::<&str>);
        assert_eq!(failure.to_string(), "ib0 cannot be read: no room");
        let json = serde_json::to_value(&failure).unwrap();
        let expected = serde_json::json!({
            "code": "kernel", "message": "ib0 cannot be read", "causes": ["no room"], "link": "ib0",
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<Failure>(json).unwrap(), failure);
    }
}
