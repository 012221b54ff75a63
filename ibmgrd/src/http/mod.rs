// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1 over a unix socket: who asks is known by the socket, not by what is sent.
//!
//! Whoever may connect may read; the socket's mode decides who may. Changing takes root, the daemon's own
//! user, or a user or group that it was started with.

mod problem;
mod routes;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{self as unix, UnixStream};
use std::path::Path;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::error::Error;
use crate::office::Office;
pub use problem::Problem;

/// Who is at the other end of a connection, as the kernel says (`SO_PEERCRED`, unix(7)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    uid: Option<u32>,
    gid: Option<u32>,
    pid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let Ok(peer) = stream.io().peer_cred() else {
            return Self::default();
        };
        Self {
            uid: Some(peer.uid()),
            gid: Some(peer.gid()),
            pid: peer.pid().and_then(|pid| pid.try_into().ok()),
        }
    }
}

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
    match UnixStream::connect(path) {
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
    let ends = stopped.clone();
    let router = routes::router(office, ends);
    let service = router.into_make_service_with_connect_info::<Peer>();
    let end = async move {
        // An error says that the loop is gone, which is an end, too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    axum::serve(listener, service)
        .with_graceful_shutdown(end)
        .await
}
