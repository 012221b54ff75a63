// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is taken from a request: who asks, a bounded body, a query without surprises.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query as UrlQuery, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use ibmgr_api::{ErrorCode, Failure, Key};
use ibmgrd_engine::{Keys, Query};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Problem;
use super::routes::{Shared, usage};
use crate::office::{Caller, channel};

/// Largest body of a request.
pub(super) const BODY_MAX: usize = 2 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Most knobs that are asked for at once.
const KNOBS_MAX: usize = 1024;

/// Whoever asks.
pub(super) struct Asker(pub(super) Caller);

impl FromRequestParts<Shared> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        check_namespace(&parts.headers, shared)?;
        let caller = parts.extensions.get::<Caller>().cloned();
        // Each request has one before it comes here.
        let nobody = || Problem::new(ErrorCode::Internal, "nobody is known to ask");
        caller.map(Self).ok_or_else(nobody)
    }
}

/// A program that knows its network namespace says so: the socket is a file, and can be reached from
/// others, whose interfaces may have the same names.
fn check_namespace(headers: &HeaderMap, shared: &Shared) -> Result<(), Problem> {
    let Some(theirs) = headers.get("ibmgr-namespace") else {
        return Ok(());
    };
    let ours = shared.office.namespace();
    if theirs.to_str().is_ok_and(|text| text.parse() == Ok(ours)) {
        return Ok(());
    }
    let what = format!("this daemon works in the network namespace {ours}, not in yours");
    Err(Problem::malformed(StatusCode::MISDIRECTED_REQUEST, what))
}

/// Reads a body of at most [`BODY_MAX`] bytes, in bounded time.
pub(super) async fn body(request: Request) -> Result<Bytes, Problem> {
    let too_large = || {
        let what = format!("the body has more than {BODY_MAX} bytes");
        Problem::new(ErrorCode::TooLarge, what)
    };
    // One that says so is not waited for.
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| usize::try_from(length).is_ok_and(|it| it > BODY_MAX)) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, &()));
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(too_large())
        }
        Ok(Err(rejection)) => Err(Problem::new(ErrorCode::Usage, rejection.body_text())),
        Err(_) => {
            let what = format!("the body did not come within {} s", BODY_TIME.as_secs());
            Err(Problem::malformed(StatusCode::REQUEST_TIMEOUT, what))
        }
    }
}

/// A body in JSON.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Problem::malformed(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("the body is '{essence}'; send application/json"),
            ));
        }
        let bytes = body(request).await?;
        // Its depth is bounded by serde_json, at 128.
        let read = serde_json::from_slice(&bytes).map_err(|error| {
            Problem::new(
                ErrorCode::Usage,
                format!("the body is not as it should be: {error}"),
            )
        });
        read.map(Self)
    }
}

/// Which knobs to read, and how.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Select {
    /// Names with commas between, or `all`, or nothing for none.
    knobs: Option<String>,
    via: Option<String>,
}

impl FromRequestParts<Shared> for Select {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let query = UrlQuery::<Self>::from_request_parts(parts, shared).await;
        let UrlQuery(select) = query.map_err(|error| usage(&error.body_text()))?;
        Ok(select)
    }
}

/// Names of interfaces with commas between; without any, all of IPoIB are meant.
pub(super) struct Names(pub(super) Vec<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesQuery {
    links: Option<String>,
}

impl FromRequestParts<Shared> for Names {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let query = UrlQuery::<NamesQuery>::from_request_parts(parts, shared).await;
        let UrlQuery(query) = query.map_err(|error| usage(&error.body_text()))?;
        let names = query.links.unwrap_or_default();
        let names = names.split(',').filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

impl Select {
    /// Says whether it asks for the usual.
    pub(super) const fn is_default(&self) -> bool {
        self.knobs.is_none() && self.via.is_none()
    }

    /// Returns what to read; `usual` without a word about it.
    pub(super) fn query(&self, usual: Keys) -> Result<Query, Problem> {
        let keys = match self.knobs.as_deref() {
            None => usual,
            Some("all") => Keys::All,
            Some("") => Keys::Identity,
            Some(names) => {
                let mut keys: Vec<Key> = Vec::new();
                for name in names.split(',').take(KNOBS_MAX) {
                    let key = name.parse().map_err(|error: ibmgr_api::KeyError| {
                        Failure::of(error.code(), &error).about(None::<&str>, Some(name))
                    })?;
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
                Keys::Named(keys)
            }
        };
        let via = self.via.as_deref().map(channel).transpose()?;
        Ok(Query { keys, via })
    }
}
