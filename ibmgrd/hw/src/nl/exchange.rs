// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests under way: which answer belongs to which, and when all are there.

use std::io;

use netlink_packet_core::{
    DoneBuffer, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLMSG_DONE,
    NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkBuffer, parse_i32, parse_u32,
};

use super::error;
use super::request::{self, Ends};
use super::{Ack, NlError, Request};

/// A received message, and the request that it answers.
pub(crate) struct Reply<'a> {
    /// Position of the request in the slice that was sent.
    pub(crate) request: usize,
    /// What follows `struct nlmsghdr`.
    pub(crate) body: &'a [u8],
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

    pub(super) fn bytes(&self) -> Vec<u8> {
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
