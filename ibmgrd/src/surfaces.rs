// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that all surfaces live in: whoever asks is heard while the loop changes something.

use std::thread;

use tokio::net::UnixListener;
use tokio::sync::{oneshot, watch};

use crate::dbus;
use crate::error::Error;
use crate::http;
use crate::office::Office;

/// Begins to answer requests, until `stopped` says so. The returned channel tells when all surfaces have
/// come to their end.
///
/// # Errors
///
/// The thread cannot be started.
pub(crate) fn start(
    office: Office,
    listener: std::os::unix::net::UnixListener,
    tcp: Option<(Vec<std::net::TcpListener>, http::Tls)>,
    has_bus: bool,
    stopped: watch::Receiver<bool>,
) -> Result<oneshot::Receiver<()>, Error> {
    let (ended, end) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(4)
        .build()
        .map_err(Error::io("making the surfaces' event loop"))?;
    let serve = move || {
        runtime.block_on(async {
            let bus = async {
                if has_bus {
                    dbus::serve(office.clone(), stopped.clone()).await;
                }
            };
            let http = async {
                let listener = UnixListener::from_std(listener)?;
                http::serve(listener, tcp, office.clone(), stopped.clone()).await
            };
            let ((), served) = tokio::join!(bus, http);
            if let Err(error) = served {
                tracing::error!(%error, "requests are not answered any more");
            }
        });
        // The loop may not wait any more.
        let _ = ended.send(());
    };
    thread::Builder::new()
        .name("surfaces".to_owned())
        .spawn(serve)
        .map_err(Error::io("starting the surfaces' thread"))?;
    Ok(end)
}
