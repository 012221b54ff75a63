// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be asked, and by whom.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use ibmgr_api::ErrorCode;
use ibmgr_api::status::Status;
use tokio::sync::watch;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt as _};

use super::{Peer, Problem};
use crate::office::{Caller, Office};

/// Largest body of a request.
const BODY_MAX: usize = 2 * 1024 * 1024;

#[derive(Clone)]
struct Shared {
    office: Office,
    stopped: watch::Receiver<bool>,
}

pub(super) fn router(office: Office, stopped: watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/reload", post(reload))
        .route("/v1/events", get(events))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(Shared { office, stopped })
}

/// Whoever asks.
struct Asker(Caller);

impl FromRequestParts<Shared> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        let peer = peer.map(|info| info.0).unwrap_or_default();
        let access = shared.office.access();
        Ok(Self(access.peer(peer.uid, peer.gid, peer.pid)))
    }
}

async fn status(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<Status>, Problem> {
    Ok(Json(shared.office.status(&caller).await?))
}

async fn reload(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<Status>, Problem> {
    Ok(Json(shared.office.reload(&caller).await?))
}

async fn events(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let events = BroadcastStream::new(shared.office.subscribe(&caller)?).map(|record| {
        let event = match record {
            Ok(record) => Event::default()
                .event(record.kind.name())
                .json_data(&*record),
            Err(BroadcastStreamRecvError::Lagged(count)) => Ok(Event::default()
                .event("lagged")
                .data(format!("{{\"lost\":{count}}}"))),
        };
        // A record always serializes.
        Ok(event.unwrap_or_default())
    });
    let mut stopped = shared.stopped;
    let end = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let keep = KeepAlive::new().interval(Duration::from_secs(30));
    Ok(Sse::new(until(events, end)).keep_alive(keep))
}

/// Ends a stream when `end` comes.
fn until<S: Stream>(stream: S, end: impl Future<Output = ()>) -> impl Stream<Item = S::Item> {
    let mut stream = Box::pin(stream);
    let mut end = Box::pin(end);
    tokio_stream::StreamExt::fuse(FromFn(move |context: &mut std::task::Context<'_>| {
        if end.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(None);
        }
        stream.as_mut().poll_next(context)
    }))
}

/// A stream of whatever a function says when it is polled.
struct FromFn<F>(F);

impl<F: Unpin, T> Stream for FromFn<F>
where
    F: FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<T>>,
{
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        (self.0)(context)
    }
}

async fn unknown() -> Problem {
    Problem {
        status: 404,
        ..Problem::new(
            ErrorCode::Usage,
            "there is nothing at this path; docs/ibmgrd.md tells what there is",
        )
    }
}
