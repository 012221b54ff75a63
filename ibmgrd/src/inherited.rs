// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The socket that the service manager made ahead (sd_listen_fds(3)): who asks while the daemon starts
//! or is replaced waits instead of being refused.

use std::os::unix::net::UnixListener;

use listenfd::ListenFd;

use crate::error::Error;

/// Returns the socket that this process was started with; `None` when it has to make its own. It is not
/// this process that removes its file.
///
/// # Errors
///
/// What was given is no listening unix socket.
pub(crate) fn socket() -> Result<Option<UnixListener>, Error> {
    let failed = || Error::io("taking over the service manager's socket");
    let given = ListenFd::from_env().take_unix_listener(0);
    let Some(listener) = given.map_err(failed())? else {
        return Ok(None);
    };
    // For a runtime.
    listener.set_nonblocking(true).map_err(failed())?;
    Ok(Some(listener))
}
