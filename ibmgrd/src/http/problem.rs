// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Failures as problem documents (RFC 9457), with the codes and statuses of the one table.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ibmgr_api::form::ProblemForm;
use ibmgr_api::{ErrorCode, Failure};

/// A failure of a request.
#[derive(Clone, Debug)]
pub(super) struct Problem(pub(super) Box<ProblemForm>);

impl Problem {
    /// Returns the problem of a code.
    pub(super) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Failure::new(code, detail).into()
    }

    /// Returns a malformed request, with the status that HTTP has for just that.
    pub(super) fn malformed(status: StatusCode, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(ErrorCode::Usage, detail);
        problem.0.status = status.as_u16();
        problem
    }

    /// Adds to it.
    pub(super) fn with(mut self, add: impl FnOnce(&mut ProblemForm)) -> Self {
        add(&mut self.0);
        self
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self(Box::new(failure.into()))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A map of texts and numbers always serializes.
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        (status, [(header::CONTENT_TYPE, kind)], body).into_response()
    }
}
