// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be asked: one table of paths.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, patch, post};
use ibmgr_api::ErrorCode;
use tokio::sync::watch;

use super::asker::identify;
use super::exchange::BODY_MAX;
use super::repeat::{Repeats, repeat};
use super::{Problem, events, host, links, metrics};
use crate::office::Office;

/// What handlers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) office: Office,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) repeats: Repeats,
}

/// Every path with its methods; the OpenAPI document has the same ones.
pub const ROUTES: [(&str, &[&str]); 13] = [
    ("/v1/links", &["get"]),
    ("/v1/links/{name}", &["get"]),
    ("/v1/links/{name}/knobs", &["patch"]),
    ("/v1/knobs", &["get"]),
    ("/v1/plan", &["post"]),
    ("/v1/apply", &["post"]),
    ("/v1/checkpoint", &["get", "post"]),
    ("/v1/export", &["get"]),
    ("/v1/status", &["get"]),
    ("/v1/reload", &["post"]),
    ("/v1/events", &["get"]),
    ("/metrics", &["get"]),
    ("/healthz", &["get"]),
];

fn handlers(path: &str) -> MethodRouter<Shared> {
    match path {
        "/v1/links" => get(links::all),
        "/v1/links/{name}" => get(links::one),
        "/v1/links/{name}/knobs" => patch(links::set),
        "/v1/knobs" => get(links::knobs),
        "/v1/plan" => post(host::plan),
        "/v1/apply" => post(host::apply),
        "/v1/checkpoint" => get(host::checkpoint).post(host::end_checkpoint),
        "/v1/export" => get(host::export),
        "/v1/status" => get(host::status),
        "/v1/reload" => post(host::reload),
        "/v1/events" => get(events::events),
        "/metrics" => get(metrics::metrics),
        "/healthz" => get(host::health),
        _ => MethodRouter::new(),
    }
}

pub(super) fn router(office: Office, stopped: watch::Receiver<bool>) -> Router {
    let shared = Shared {
        office,
        stopped,
        repeats: Repeats::default(),
    };
    let mut router = Router::new().route("/openapi.json", get(openapi));
    for (path, methods) in ROUTES {
        let mut handlers = handlers(path);
        if !methods.is_empty() {
            // Of methods that there are: the others are told so, whatever key they come with.
            handlers = handlers.route_layer(from_fn_with_state(shared.clone(), repeat));
        }
        router = router.route(path, handlers);
    }
    router
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(from_fn_with_state(shared.clone(), identify))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(shared)
}

/// Returns a malformed request.
pub(super) fn usage(detail: &str) -> Problem {
    Problem::new(ErrorCode::Usage, detail)
}

async fn openapi() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, include_str!("../../../docs/reference/openapi.json"))
}

async fn unknown() -> Problem {
    let what = "there is nothing at this path; /openapi.json tells what there is";
    Problem::malformed(StatusCode::NOT_FOUND, what)
}

async fn wrong_method() -> Problem {
    let what = "this path has no such method; /openapi.json tells what there is";
    Problem::malformed(StatusCode::METHOD_NOT_ALLOWED, what)
}
