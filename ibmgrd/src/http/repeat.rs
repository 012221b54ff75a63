// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `Idempotency-Key`: a request that is sent again, since its answer was lost, is answered again and not
//! done again.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ibmgr_api::ErrorCode;

use super::Problem;
use super::exchange::body;
use super::routes::{Shared, usage};
use crate::office::{Caller, Surface};

/// How long an answer is kept.
const KEEP: Duration = Duration::from_secs(600);
/// Answers that are kept at a time.
const COUNT: usize = 256;
/// Longest key, in bytes.
const KEY_MAX: usize = 128;
/// Largest answer that is kept, in bytes.
const ANSWER_MAX: usize = 256 * 1024;
/// Bytes of all answers that are kept.
const ALL_MAX: usize = 1024 * 1024;

/// Whose key it is: one user's keys mean nothing to another.
type Name = (Surface, Option<u32>, Option<String>, String);

#[derive(Clone, Debug)]
struct Answer {
    status: StatusCode,
    kind: Option<HeaderValue>,
    body: Bytes,
}

#[derive(Debug)]
struct Entry {
    request: u64,
    since: Instant,
    /// `None` while it is worked on.
    answer: Option<Answer>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Name, Entry>,
    /// Names by age.
    order: VecDeque<Name>,
    size: usize,
}

/// The answers that were given lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats(Arc<Mutex<Kept>>);

enum Found {
    New,
    Again(Answer),
    UnderWay,
    Other,
}

impl Repeats {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, name: &Name, request: u64, now: Instant) -> Found {
        let mut kept = self.lock();
        kept.forget(now);
        if let Some(entry) = kept.entries.get(name) {
            return match &entry.answer {
                _ if entry.request != request => Found::Other,
                Some(answer) => Found::Again(answer.clone()),
                None => Found::UnderWay,
            };
        }
        let entry = Entry {
            request,
            since: now,
            answer: None,
        };
        kept.entries.insert(name.clone(), entry);
        kept.order.push_back(name.clone());
        Found::New
    }

    /// Keeps an answer, or forgets a request that has none worth keeping.
    fn end(&self, name: &Name, answer: Option<Answer>) {
        let mut kept = self.lock();
        match (answer, kept.entries.get_mut(name)) {
            (Some(answer), Some(entry)) => {
                let size = answer.body.len();
                entry.answer = Some(answer);
                kept.size += size;
            }
            _ => kept.remove(name),
        }
    }
}

impl Kept {
    fn remove(&mut self, name: &Name) {
        if let Some(entry) = self.entries.remove(name) {
            self.size -= entry.answer.map_or(0, |answer| answer.body.len());
        }
        self.order.retain(|other| other != name);
    }

    /// Forgets what is old, or too much. What is worked on is kept.
    fn forget(&mut self, now: Instant) {
        while let Some(name) = self.order.front().cloned() {
            let Some(entry) = self.entries.get(&name) else {
                self.order.pop_front();
                continue;
            };
            let is_old = now.saturating_duration_since(entry.since) >= KEEP;
            let is_much = self.order.len() >= COUNT || self.size > ALL_MAX;
            if entry.answer.is_none() || !(is_old || is_much) {
                break;
            }
            self.remove(&name);
        }
    }
}

/// Forgets a request whose client went away before the answer.
struct Unanswered<'a> {
    repeats: &'a Repeats,
    name: Option<Name>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.repeats.end(&name, None);
        }
    }
}

/// Answers requests with a key that was answered before as then.
pub(super) async fn repeat(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = request.headers().get("idempotency-key");
    // Other methods change nothing, or are none of ours.
    let may_change = matches!(*request.method(), Method::POST | Method::PATCH);
    let Some(key) = key.filter(|_| may_change) else {
        return Ok(next.run(request).await);
    };
    let key = key
        .to_str()
        .ok()
        .filter(|key| (1..=KEY_MAX).contains(&key.len()) && !key.contains('\t'));
    let Some(key) = key.map(str::to_owned) else {
        return Err(usage("Idempotency-Key takes 1 to 128 printable characters"));
    };
    let Some(caller) = request.extensions().get::<Caller>() else {
        return Ok(next.run(request).await);
    };
    let name = (caller.surface, caller.uid, caller.name.clone(), key);
    let (parts, rest) = request.into_parts();
    let bytes = body(Request::from_parts(parts.clone(), rest)).await?;
    let mut hasher = DefaultHasher::new();
    (parts.method.as_str(), parts.uri.path(), &bytes).hash(&mut hasher);
    for name in [header::CONTENT_TYPE, header::IF_MATCH] {
        parts
            .headers
            .get(name)
            .map(HeaderValue::as_bytes)
            .hash(&mut hasher);
    }
    let repeats = &shared.repeats;
    match repeats.begin(&name, hasher.finish(), Instant::now()) {
        Found::New => {}
        Found::Again(answer) => {
            let mut response = (answer.status, answer.body).into_response();
            if let Some(kind) = answer.kind {
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
            }
            return Ok(response);
        }
        Found::UnderWay => {
            let what = "the request with this Idempotency-Key is being worked on";
            return Err(Problem::new(ErrorCode::Busy, what));
        }
        Found::Other => {
            let what = "another request had this Idempotency-Key: take a new one for each request";
            return Err(Problem::malformed(StatusCode::UNPROCESSABLE_ENTITY, what));
        }
    }
    let mut unanswered = Unanswered {
        repeats,
        name: Some(name),
    };
    let response = next
        .run(Request::from_parts(parts, Body::from(bytes)))
        .await;
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(|error| {
        Problem::new(
            ErrorCode::Internal,
            format!("the answer broke off: {error}"),
        )
    })?;
    // Whoever was told to come again later must not be told so for ever.
    let is_final = !head.status.is_server_error() && body.len() <= ANSWER_MAX;
    if let Some(name) = unanswered.name.take() {
        let answer = Answer {
            status: head.status,
            kind: head.headers.get(header::CONTENT_TYPE).cloned(),
            body: body.clone(),
        };
        repeats.end(&name, is_final.then_some(answer));
    }
    Ok(Response::from_parts(head, Body::from(body)))
}
