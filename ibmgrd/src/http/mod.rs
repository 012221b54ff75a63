// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1 over a unix socket, where who asks is known by the socket, and where it is configured over
//! TCP with TLS, where a token or a certificate says so.
//!
//! Whoever may connect to the unix socket may read; its mode decides who may. Changing takes root, the
//! daemon's own user, or a user or group that it was started with. Over TLS nothing goes without a right.

mod asker;
mod credentials;
mod events;
mod exchange;
mod host;
mod links;
mod metrics;
mod problem;
mod repeat;
mod routes;
mod seats;
mod tcp;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net as unix;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt as _;

use crate::error::Error;
use crate::office::Office;
use asker::{Origin, Peer};
use problem::Problem;
pub use routes::ROUTES;
use seats::Seats;
pub use tcp::TcpOptions;
pub(crate) use tcp::{Tls, listen as listen_tcp};

/// Connections that are open at a time.
const CONNECTIONS: usize = 2048;
/// How long the head of a request may take, and a connection may be idle.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// The same over TLS: far fewer are known, and strangers can connect.
const TCP_CONNECTIONS: usize = 1024;
const TCP_HEAD_TIME: Duration = Duration::from_secs(8);
/// Connections that a user other than root may have at a time, of those of the unix socket.
const USER_CONNECTIONS: usize = 512;
/// How long a client may take nothing of what is written to it.
const WRITE_TIME: Duration = Duration::from_secs(30);
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

/// Answers requests at the unix socket, and over TLS where it is configured, until `stopped` says so.
///
/// # Errors
///
/// A socket cannot be served.
pub(crate) async fn serve(
    listener: UnixListener,
    tcp: Option<(Vec<std::net::TcpListener>, Tls)>,
    office: Office,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let server = Server {
        router: routes::router(office, stopped.clone()),
        graceful: Arc::new(GracefulShutdown::new()),
    };
    let mut surfaces = JoinSet::new();
    surfaces.spawn(server.clone().local(listener));
    if let Some((listeners, tls)) = tcp {
        // All addresses share them.
        let places = Arc::new(Semaphore::new(TCP_CONNECTIONS));
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            let (tls, places) = (tls.clone(), Arc::clone(&places));
            surfaces.spawn(server.clone().remote(listener, tls, places));
        }
    }
    // An error says that the loop is gone, which is an end, too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
    // Nobody is taken any more; whoever was is answered.
    surfaces.shutdown().await;
    if let Some(graceful) = Arc::into_inner(server.graceful) {
        let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    }
    Ok(())
}

/// What all surfaces of HTTP share.
#[derive(Clone)]
struct Server {
    router: Router,
    graceful: Arc<GracefulShutdown>,
}

impl Server {
    async fn local(self, listener: UnixListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let seats = Seats::default();
        loop {
            // Further ones wait in the socket's backlog.
            let place = Arc::clone(&places).acquire_owned().await;
            let Some((stream, _)) = taken(listener.accept().await).await else {
                continue;
            };
            let peer = Peer::of(&stream);
            let Some(seat) = seats.take(peer.user(), USER_CONNECTIONS) else {
                tracing::debug!(
                    uid = peer.user(),
                    "closed a connection: this user has {USER_CONNECTIONS} already"
                );
                continue;
            };
            let origin = Origin::Local(peer);
            let watcher = self.graceful.watcher();
            let router = self.router.clone();
            tokio::spawn(async move {
                answer(stream, origin, router, HEAD_TIME, watcher).await;
                drop((place, seat));
            });
        }
    }

    async fn remote(self, listener: TcpListener, tls: Tls, places: Arc<Semaphore>) {
        loop {
            let place = Arc::clone(&places).acquire_owned().await;
            let Some((stream, _)) = taken(listener.accept().await).await else {
                continue;
            };
            let (tls, router) = (tls.clone(), self.router.clone());
            let watcher = self.graceful.watcher();
            tokio::spawn(async move {
                // In a task of its own: nobody waits for a slow handshake of another.
                if let Some((stream, pass)) = tls.accept(stream).await {
                    let origin = Origin::Remote(pass);
                    answer(stream, origin, router, TCP_HEAD_TIME, watcher).await;
                }
                drop(place);
            });
        }
    }
}

/// Returns an accepted connection; waits a little when it failed.
async fn taken<T>(accepted: io::Result<T>) -> Option<T> {
    match accepted {
        Ok(taken) => Some(taken),
        Err(error) => {
            // Such as too many open files: that passes.
            tracing::warn!(%error, "a connection was not taken");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Answers all requests of one connection.
async fn answer<S>(stream: S, origin: Origin, router: Router, head_time: Duration, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(origin.clone());
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(BUFFER);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME));
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    // Clients go away as they like; one that stays, and takes nothing, is left.
    let _ = watcher.watch(connection).await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    /// Time goes on at once when nothing else does.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_left() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let router = Router::new().route("/", get(async || vec![b'x'; 8 << 20]));
        let graceful = GracefulShutdown::new();
        let origin = Origin::Local(Peer::of(&server));
        let watcher = graceful.watcher();
        let answered = tokio::spawn(answer(server, origin, router, HEAD_TIME, watcher));
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        client.write_all(request).await.unwrap();
        let begun = tokio::time::Instant::now();
        answered.await.unwrap();
        assert!(begun.elapsed() >= WRITE_TIME);
        // What it gets now is cut short.
        let mut got = Vec::new();
        let _ = client.read_to_end(&mut got).await;
        assert!(
            !got.is_empty() && got.len() < 8 << 20,
            "{} bytes",
            got.len()
        );
    }
}
