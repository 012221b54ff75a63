// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Telling the service manager how it goes (sd_notify(3), Type=notify-reload).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The service manager, if one wants to know.
#[derive(Debug, Default)]
pub(crate) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// Finds out from the environment whom to tell.
    pub(crate) fn from_environment() -> Self {
        let address = std::env::var_os("NOTIFY_SOCKET").and_then(|name| address(&name).ok());
        let socket = address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address)));
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_for_us =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let micros = number("WATCHDOG_USEC").filter(|micros| is_for_us && *micros > 0);
        Self {
            socket,
            // Twice in the time that the manager waits.
            watchdog: micros.map(|micros| Duration::from_micros(micros) / 2),
        }
    }

    /// Returns how often the manager wants a sign of life.
    pub(crate) const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends lines such as `READY=1`.
    pub(crate) fn tell(&self, lines: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(lines.as_bytes(), address)
        {
            tracing::warn!(%error, "the service manager could not be told");
        }
    }

    /// Says that the declarations are being read again.
    pub(crate) fn reloading(&self) {
        let micros = clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map(|time| Duration::from(time).as_micros())
            .unwrap_or_default();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }
}

/// Reads a path, or `@NAME` for one without a file.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}
