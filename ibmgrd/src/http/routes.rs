// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be asked, and by whom.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use ibmgr_api::ErrorCode;
use ibmgr_api::status::{Record, Status};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt as _};

use super::{Ask, Peer, Problem};

/// Largest body of a request.
const BODY_MAX: usize = 2 * 1024 * 1024;
/// How long the loop may take to answer: a mode change that flushes paths takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct Shared {
    asks: mpsc::Sender<Ask>,
    records: broadcast::Sender<Record>,
    stopped: watch::Receiver<bool>,
}

pub(super) fn router(
    asks: mpsc::Sender<Ask>,
    records: broadcast::Sender<Record>,
    stopped: watch::Receiver<bool>,
) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/reload", post(reload))
        .route("/v1/events", get(events))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(Shared {
            asks,
            records,
            stopped,
        })
}

impl Shared {
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Problem> {
        let (sender, receiver) = oneshot::channel();
        let ended = || Problem::new(ErrorCode::Internal, "the daemon is ending");
        self.asks.send(ask(sender)).await.map_err(|_| ended())?;
        match tokio::time::timeout(PATIENCE, receiver).await {
            Ok(answer) => answer.map_err(|_| ended()),
            Err(_) => Err(Problem::new(
                ErrorCode::Timeout,
                format!("no answer within {} s", PATIENCE.as_secs()),
            )),
        }
    }
}

fn changes(peer: Peer) -> Result<(), Problem> {
    if peer.may_change() {
        return Ok(());
    }
    let who = match peer.uid {
        Some(uid) => format!("user {uid} may read only"),
        None => "the caller is not known and may read only".to_owned(),
    };
    Err(Problem::new(
        ErrorCode::Permission,
        format!("{who}: changing takes root"),
    ))
}

async fn status(State(shared): State<Shared>) -> Result<Json<Status>, Problem> {
    shared.ask(Ask::Status).await.map(Json)
}

async fn reload(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Result<Json<Status>, Problem> {
    changes(peer)?;
    shared.ask(Ask::Reload).await.map(Json)
}

async fn events(
    State(shared): State<Shared>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = BroadcastStream::new(shared.records.subscribe()).map(|record| {
        let event = match record {
            Ok(record) => Event::default().event(record.kind.name()).json_data(record),
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
    Sse::new(until(events, end)).keep_alive(keep)
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
