// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens, as server-sent events.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt as _};

use super::Problem;
use super::asker::Shown;
use super::exchange::Asker;
use super::routes::Shared;

/// After so long without an event a comment is sent, which finds out whether anybody still reads.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

pub(super) async fn events(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    shown: Option<Extension<Shown>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let records = BroadcastStream::new(shared.office.subscribe(&caller)?);
    // What is asked for at once is looked at at once; this goes on.
    let records = records.take_while(move |_| {
        let still = shown.as_ref().map(|Extension(shown)| shown.holds());
        still.unwrap_or(true)
    });
    let events = records.map(|record| {
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
    Ok(Sse::new(until(events, end)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Ends a stream when `end` comes.
fn until<S: Stream>(stream: S, end: impl Future<Output = ()>) -> impl Stream<Item = S::Item> {
    let mut stream = Box::pin(stream);
    let mut end = Box::pin(end);
    tokio_stream::StreamExt::fuse(FromFn(move |context: &mut Context<'_>| {
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        stream.as_mut().poll_next(context)
    }))
}

/// A stream of whatever a function says when it is polled.
struct FromFn<F>(F);

impl<F: Unpin, T> Stream for FromFn<F>
where
    F: FnMut(&mut Context<'_>) -> Poll<Option<T>>,
{
    type Item = T;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        (self.0)(context)
    }
}
