// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocking netlink sockets (netlink(7), include/uapi/linux/netlink.h).
//!
//! The kernel works on a request inside `send`, so its answer is there when `send` returns: blocking is
//! the fast way, and several requests go out in one call. The time limit guards against answers that
//! the kernel dropped.

pub(crate) mod attr;
mod error;
mod exchange;
mod request;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::Duration;

use netlink_sys::SocketAddr;
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::TimeVal;

pub(crate) use error::describe;
pub use error::{Ack, NlError, Refusal};
pub(crate) use exchange::{Exchange, Reply};
pub use request::Request;
pub(crate) use request::{Ends, Namer};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Requests sent at once. Their answers have to fit the socket's receive buffer (net.core.rmem_default,
/// 208 KiB) as 16 buffers of 8 KiB each do, or the kernel drops some.
const PIPELINE: usize = 16;
/// The kernel fills buffers of up to 32 KiB when the reader offers as much (net/netlink/af_netlink.c).
const RECEIVE_BUFFER: usize = 64 * 1024;
/// How often a list is asked for when it keeps changing.
const DUMP_ATTEMPTS: u32 = 8;

/// Which way a traced datagram went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// To the kernel.
    Sent,
    /// From the kernel.
    Received,
}

static TRACE: OnceLock<fn(Direction, &[u8])> = OnceLock::new();

/// Calls `hook` with each datagram of this process from now on. Only the first call counts.
pub fn trace(hook: fn(Direction, &[u8])) {
    // A second hook would hide datagrams from the first.
    let _ = TRACE.set(hook);
}

fn traced(direction: Direction, datagram: &[u8]) {
    if let Some(hook) = TRACE.get() {
        hook(direction, datagram);
    }
}

/// Which of the kernel's netlink interfaces a socket speaks to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// `NETLINK_ROUTE`.
    Route,
    /// `NETLINK_GENERIC`.
    Generic,
}

/// A netlink socket of the network namespace that the opening thread was in.
#[derive(Debug)]
pub struct Socket {
    protocol: Protocol,
    /// None before the first use, and after a failure that may have left answers behind.
    inner: Option<netlink_sys::Socket>,
    sequence: u32,
    received: Vec<u8>,
    timeout: Duration,
}

impl Socket {
    /// Returns a socket that opens itself at its first use.
    #[must_use]
    pub const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            inner: None,
            sequence: 1,
            received: Vec::new(),
            timeout: TIMEOUT,
        }
    }

    /// Waits so many whole seconds for answers, at least one, instead of ten.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let timeout = Duration::from_secs(timeout.as_secs().max(1));
        Self { timeout, ..self }
    }

    /// Returns the descriptor, for an ioctl(2).
    pub(crate) fn descriptor(&mut self) -> Result<BorrowedFd<'_>, NlError> {
        Ok(self.opened()?.as_fd())
    }

    fn opened(&mut self) -> Result<&netlink_sys::Socket, NlError> {
        let socket = match self.inner.take() {
            Some(socket) => socket,
            None => open(self.protocol, self.timeout)?,
        };
        Ok(self.inner.insert(socket))
    }

    /// Sends a request and waits for its acknowledgement.
    ///
    /// # Errors
    ///
    /// What the kernel said, or what kept it from answering.
    pub fn acknowledge(&mut self, request: &Request) -> Result<Ack, NlError> {
        self.one(request, |_| Ok(()))
    }

    /// Sends one request; `on_reply` sees the payload of each message that answers it.
    ///
    /// # Errors
    ///
    /// What the kernel said, what kept it from answering, or the first error of `on_reply`.
    pub fn one(
        &mut self,
        request: &Request,
        mut on_reply: impl FnMut(&[u8]) -> Result<(), NlError>,
    ) -> Result<Ack, NlError> {
        let mut results =
            self.pipeline(std::slice::from_ref(request), |reply| on_reply(reply.body))?;
        results
            .pop()
            .unwrap_or_else(|| Err(NlError::malformed("no answer")))
    }

    /// Sends a list request and returns what `decode` makes of each message, leaving out its `None`s.
    ///
    /// # Errors
    ///
    /// As for [`Socket::one`]; [`NlError::Unsettled`] when the list keeps changing.
    pub fn list<T>(
        &mut self,
        request: &Request,
        mut decode: impl FnMut(&[u8]) -> Result<Option<T>, NlError>,
    ) -> Result<Vec<T>, NlError> {
        let mut items = Vec::new();
        for _ in 0..DUMP_ATTEMPTS {
            items.clear();
            let result = self.one(request, |body| {
                items.extend(decode(body)?);
                Ok(())
            });
            match result {
                Ok(_) => return Ok(items),
                Err(NlError::Unsettled { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(NlError::Unsettled {
            attempts: DUMP_ATTEMPTS,
        })
    }

    /// Sends requests in few system calls and returns one result for each, in their order.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering at all. The socket opens anew at its next use.
    pub(crate) fn pipeline(
        &mut self,
        requests: &[Request],
        mut on_reply: impl FnMut(Reply<'_>) -> Result<(), NlError>,
    ) -> Result<Vec<Result<Ack, NlError>>, NlError> {
        let mut results = Vec::with_capacity(requests.len());
        for (at, chunk) in requests.chunks(PIPELINE).enumerate() {
            let first = at * PIPELINE;
            let mut exchange = Exchange::new(chunk, self.sequence);
            self.sequence = self.sequence.wrapping_add(PIPELINE as u32);
            let done = self.run(&mut exchange, |reply| {
                on_reply(Reply {
                    request: first + reply.request,
                    ..reply
                })
            });
            if let Err(error) = done {
                self.inner = None;
                return Err(error);
            }
            results.extend(exchange.results());
        }
        Ok(results)
    }

    fn run(
        &mut self,
        exchange: &mut Exchange<'_>,
        mut on_reply: impl FnMut(Reply<'_>) -> Result<(), NlError>,
    ) -> Result<(), NlError> {
        let mut received = std::mem::take(&mut self.received);
        received.reserve(RECEIVE_BUFFER);
        let timeout = self.timeout;
        let socket = self.opened()?;
        let failed = |what| move |source| NlError::Io { what, source };
        let bytes = exchange.bytes();
        traced(Direction::Sent, &bytes);
        socket.send(&bytes, 0).map_err(failed("netlink send"))?;
        while exchange.is_waiting() {
            received.clear();
            let length = match socket.recv(&mut received, libc::MSG_TRUNC) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(NlError::Timeout {
                        seconds: timeout.as_secs(),
                    });
                }
                Err(error) => return Err(failed("netlink receive")(error)),
            };
            if length > received.len() {
                return Err(NlError::malformed(format!(
                    "a message of {length} bytes was cut off"
                )));
            }
            traced(Direction::Received, &received);
            exchange.take(&received, &mut on_reply)?;
        }
        received.clear();
        self.received = received;
        Ok(())
    }
}

fn open(protocol: Protocol, timeout: Duration) -> Result<netlink_sys::Socket, NlError> {
    let number = match protocol {
        Protocol::Route => netlink_sys::protocols::NETLINK_ROUTE,
        Protocol::Generic => netlink_sys::protocols::NETLINK_GENERIC,
    };
    let failed = |what| move |source| NlError::Io { what, source };
    let socket = netlink_sys::Socket::new(number).map_err(failed("opening a netlink socket"))?;
    let option = failed("setting a netlink socket option");
    socket.set_ext_ack(true).map_err(option)?;
    socket.set_cap_ack(true).map_err(option)?;
    if protocol == Protocol::Route {
        socket.set_netlink_get_strict_chk(true).map_err(option)?;
    }
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    let limit = TimeVal::new(seconds, 0);
    setsockopt(&socket, ReceiveTimeout, &limit).map_err(|errno| option(errno.into()))?;
    // A connected socket takes messages from the kernel alone, not from other processes.
    socket
        .connect(&SocketAddr::new(0, 0))
        .map_err(failed("connecting a netlink socket"))?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
