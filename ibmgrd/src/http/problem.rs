// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Failures as problem documents (RFC 9457), with the codes and statuses of the one table.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ibmgr_api::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};

/// A failure of a request.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Problem {
    /// The code's title.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The code's name.
    pub code: String,
    /// What failed, and why.
    pub detail: String,
}

impl Problem {
    /// Returns the problem of a code.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            title: code.title().to_owned(),
            status: code.http_status(),
            code: code.name().to_owned(),
            detail: detail.into(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::new(failure.code, failure.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A map of texts and numbers always serializes.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        (status, [(header::CONTENT_TYPE, kind)], body).into_response()
    }
}
