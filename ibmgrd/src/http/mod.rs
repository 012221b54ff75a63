// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1 over a unix socket: who asks is known by the socket, not by what is sent.
//!
//! Whoever may connect may read; the socket's mode decides who may. Changing takes root, the daemon's own
//! user, or a user or group that it was started with.

mod events;
mod exchange;
mod host;
mod links;
mod metrics;
mod problem;
mod repeat;
mod routes;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net as unix;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

use crate::error::Error;
use crate::office::Office;
use problem::Problem;
pub use routes::ROUTES;

/// Who is at the other end of a connection, as the kernel says (`SO_PEERCRED`, unix(7)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    uid: Option<u32>,
    gid: Option<u32>,
    pid: Option<u32>,
}

impl Peer {
    fn of(stream: &UnixStream) -> Self {
        // One that is gone already may read at most.
        let Ok(peer) = stream.peer_cred() else {
            return Self::default();
        };
        Self {
            uid: Some(peer.uid()),
            gid: Some(peer.gid()),
            pid: peer.pid().and_then(|pid| pid.try_into().ok()),
        }
    }
}

/// Connections that are open at a time.
const CONNECTIONS: usize = 2048;
/// How long the head of a request may take, and a connection may be idle.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// Bytes that are read ahead, or wait to be written, of a connection.
const BUFFER: usize = 16 * 1024;
/// How long requests that are worked on may take at the end.
const GRACE: Duration = Duration::from_secs(2);

/// Listens at `path`, with mode 0660. A socket that nobody answers at is replaced.
///
/// # Errors
///
/// Another daemon answers there, or the socket cannot be made.
pub fn listen(path: &Path) -> Result<unix::UnixListener, Error> {
    let failed = |what: &str| Error::io(format!("{what} {}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed("making the folder of"))?;
    }
    match unix::UnixStream::connect(path) {
        Ok(_) => {
            return Err(Error::Running {
                socket: path.to_owned(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("removing the old"))?;
        }
        Err(_) => {}
    }
    // Made under another name: nobody connects before its mode is right.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let listener = unix::UnixListener::bind(&new).map_err(failed("listening at"))?;
    // For a runtime.
    let listener_is_set = listener.set_nonblocking(true);
    listener_is_set.map_err(failed("listening at"))?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o660))
        .and_then(|()| fs::rename(&new, path))
        .map_err(failed("placing"))?;
    Ok(listener)
}

/// Answers requests until `stopped` says so.
///
/// # Errors
///
/// The socket cannot be served.
pub async fn serve(
    listener: UnixListener,
    office: Office,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let router = routes::router(office, stopped.clone());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(BUFFER);
    loop {
        let next = async {
            // Further ones wait in the socket's backlog.
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            // An error says that the loop is gone, which is an end, too.
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Such as too many open files: that passes.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let peer = Peer::of(&stream);
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            router.clone().oneshot(request)
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Clients go away as they like.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    Ok(())
}
