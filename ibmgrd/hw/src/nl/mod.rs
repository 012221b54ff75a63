// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocking netlink sockets (netlink(7), include/uapi/linux/netlink.h).
//!
//! The kernel works on a request inside `send`, so its answer is there when `send` returns: blocking is
//! the fast way, and several requests go out in one call. The time limit guards against answers that
//! the kernel dropped.

pub(crate) mod attr;
mod error;
mod request;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use netlink_packet_core::{
    DoneBuffer, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLMSG_DONE,
    NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkBuffer, parse_i32, parse_u32,
};
use netlink_sys::SocketAddr;
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::TimeVal;

pub(crate) use error::describe;
pub use error::{Ack, NlError, Refusal};
pub use request::Request;
pub(crate) use request::{Ends, Namer};

/// How long an answer is waited for.
const TIMEOUT_S: u32 = 10;
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
}

/// A received message, and the request that it answers.
pub(crate) struct Reply<'a> {
    /// Position of the request in the slice that was sent.
    pub(crate) request: usize,
    /// What follows `struct nlmsghdr`.
    pub(crate) body: &'a [u8],
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
        }
    }

    /// Returns the descriptor, for an ioctl(2).
    pub(crate) fn descriptor(&mut self) -> Result<BorrowedFd<'_>, NlError> {
        Ok(self.opened()?.as_fd())
    }

    fn opened(&mut self) -> Result<&netlink_sys::Socket, NlError> {
        let socket = match self.inner.take() {
            Some(socket) => socket,
            None => open(self.protocol)?,
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
                        seconds: u64::from(TIMEOUT_S),
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

fn open(protocol: Protocol) -> Result<netlink_sys::Socket, NlError> {
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
    let limit = TimeVal::new(i64::from(TIMEOUT_S), 0);
    setsockopt(&socket, ReceiveTimeout, &limit).map_err(|errno| option(errno.into()))?;
    // A connected socket takes messages from the kernel alone, not from other processes.
    socket
        .connect(&SocketAddr::new(0, 0))
        .map_err(failed("connecting a netlink socket"))?;
    Ok(socket)
}

/// Requests under way, and how each of them went.
pub(crate) struct Exchange<'a> {
    requests: &'a [Request],
    first_sequence: u32,
    states: Vec<State>,
}

#[derive(Default)]
struct State {
    result: Option<Result<Ack, NlError>>,
    /// The first error of the caller's decoder; the rest of the answer is still read.
    decode_error: Option<NlError>,
    is_interrupted: bool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(requests: &'a [Request], first_sequence: u32) -> Self {
        let states = requests.iter().map(|_| State::default()).collect();
        Self {
            requests,
            first_sequence,
            states,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        for (request, at) in self.requests.iter().zip(0..) {
            request.append_to(&mut bytes, self.first_sequence.wrapping_add(at));
        }
        bytes
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.states.iter().any(|state| state.result.is_none())
    }

    pub(crate) fn results(self) -> impl Iterator<Item = Result<Ack, NlError>> {
        self.states
            .into_iter()
            .map(|state| match (state.decode_error, state.result) {
                (_, Some(Err(error))) => Err(error),
                (Some(error), _) => Err(error),
                (None, Some(Ok(_))) if state.is_interrupted => {
                    Err(NlError::Unsettled { attempts: 1 })
                }
                (None, Some(Ok(ack))) => Ok(ack),
                (None, None) => Err(NlError::malformed("no answer")),
            })
    }

    /// Takes in one datagram.
    pub(crate) fn take(
        &mut self,
        datagram: &[u8],
        on_reply: &mut impl FnMut(Reply<'_>) -> Result<(), NlError>,
    ) -> Result<(), NlError> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let message = NetlinkBuffer::new_checked(rest)
                .map_err(|error| NlError::malformed(error.to_string()))?;
            let length = message.length() as usize;
            self.take_message(&message, on_reply)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }

    fn take_message(
        &mut self,
        message: &NetlinkBuffer<&[u8]>,
        on_reply: &mut impl FnMut(Reply<'_>) -> Result<(), NlError>,
    ) -> Result<(), NlError> {
        // Numbers of an exchange that timed out before are none of ours.
        let request = message.sequence_number().wrapping_sub(self.first_sequence) as usize;
        let (Some(asked), Some(state)) = (self.requests.get(request), self.states.get_mut(request))
        else {
            return Ok(());
        };
        let (flags, body) = (message.flags(), message.payload());
        state.is_interrupted |= flags & NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            NLMSG_NOOP => {}
            NLMSG_OVERRUN => {
                let source = io::Error::from_raw_os_error(libc::ENOBUFS);
                return Err(NlError::Io {
                    what: "netlink receive",
                    source,
                });
            }
            NLMSG_ERROR => {
                let (code, extended) = error_parts(flags, body)?;
                state.result = Some(error::verdict(code, extended, asked));
            }
            NLMSG_DONE => {
                let done = DoneBuffer::new_checked(body)
                    .map_err(|error| NlError::malformed(error.to_string()))?;
                let has_attrs = flags & NLM_F_ACK_TLVS != 0;
                let extended = if has_attrs { done.extended_ack() } else { &[] };
                state.result = Some(error::verdict(done.code(), extended, asked));
            }
            _ => {
                if state.decode_error.is_none() {
                    state.decode_error = on_reply(Reply { request, body }).err();
                }
                if asked.ends == Ends::Reply && flags & NLM_F_MULTIPART == 0 {
                    state.result = Some(Ok(Ack::default()));
                }
            }
        }
        Ok(())
    }
}

/// Splits `struct nlmsgerr` into its error number and the attributes behind it.
fn error_parts(flags: u16, body: &[u8]) -> Result<(i32, &[u8]), NlError> {
    let short = || NlError::malformed("an acknowledgement is too short");
    let code = body
        .get(..4)
        .and_then(|bytes| parse_i32(bytes).ok())
        .ok_or_else(short)?;
    if flags & NLM_F_ACK_TLVS == 0 {
        return Ok((code, &[]));
    }
    // The request's header always follows; its payload only after an error, and only if not capped.
    let echoed = if flags & NLM_F_CAPPED != 0 || code == 0 {
        request::HEADER_LEN
    } else {
        let length = body
            .get(4..8)
            .and_then(|bytes| parse_u32(bytes).ok())
            .ok_or_else(short)?;
        (length as usize).next_multiple_of(4)
    };
    let start = echoed.checked_add(4).ok_or_else(short)?;
    Ok((code, body.get(start..).ok_or_else(short)?))
}

#[cfg(test)]
mod tests;
