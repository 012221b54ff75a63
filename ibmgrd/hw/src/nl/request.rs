// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests, ready to be sent.

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader,
};
use netlink_packet_generic::GenlHeader;

use super::attr::{Out, attrs, bytes_of};

/// Length of `struct nlmsghdr`.
pub(crate) const HEADER_LEN: usize = 16;

/// What ends the answer to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ends {
    /// An acknowledgement.
    Ack,
    /// One message.
    Reply,
    /// `NLMSG_DONE`, after any number of messages.
    Dump,
}

/// Names the attribute at the end of a path of types, outermost first.
pub(crate) type Namer = fn(&[u16]) -> Option<&'static str>;

/// One netlink request: type, what ends the answer, and the payload.
#[derive(Clone, Debug)]
pub struct Request {
    kind: u16,
    pub(crate) ends: Ends,
    /// What follows `struct nlmsghdr`.
    body: Vec<u8>,
    /// Length of the family's own header at the start of `body`.
    fixed: usize,
    namer: Namer,
    /// `NLM_F_*` besides those of `ends`.
    flags: u16,
}

impl Request {
    /// Wraps a payload that starts with a family header of `fixed` bytes.
    pub(crate) fn new(
        kind: u16,
        ends: Ends,
        fixed: usize,
        body: &impl Emitable,
        namer: Namer,
    ) -> Self {
        let mut bytes = vec![0; body.buffer_len()];
        body.emit(&mut bytes);
        Self {
            kind,
            ends,
            body: bytes,
            fixed,
            namer,
            flags: 0,
        }
    }

    /// Builds a request of a generic netlink family.
    pub(crate) fn generic(
        family: u16,
        cmd: u8,
        version: u8,
        ends: Ends,
        attrs: &[Out],
        namer: Namer,
    ) -> Self {
        let header = GenlHeader { cmd, version };
        let fixed = header.buffer_len();
        let mut body = vec![0; fixed];
        header.emit(&mut body);
        body.extend(bytes_of(attrs));
        Self {
            kind: family,
            ends,
            body,
            fixed,
            namer,
            flags: 0,
        }
    }

    /// Takes a captured request apart, so that its captured answer can be played.
    #[cfg(test)]
    pub(crate) fn captured(datagram: &[u8]) -> Self {
        let half = |at: usize| u16::from_ne_bytes([datagram[at], datagram[at + 1]]);
        let (kind, flags) = (half(4), half(6));
        let ends = match flags {
            flags if flags & NLM_F_DUMP == NLM_F_DUMP => Ends::Dump,
            flags if flags & NLM_F_ACK != 0 => Ends::Ack,
            _ => Ends::Reply,
        };
        // 16 is RTM_NEWLINK, which is acknowledged, and the generic controller, which answers.
        let is_route = kind == libc::RTM_GETLINK || kind == libc::RTM_NEWLINK && ends == Ends::Ack;
        let fixed = if is_route { 16 } else { 4 };
        let namer: Namer = |path| crate::uapi::COALESCE.name_of(path[0]);
        Self {
            kind,
            ends,
            body: datagram[16..].to_vec(),
            fixed,
            namer,
            flags: 0,
        }
    }

    /// Lets the request make an object, and fail with `EEXIST` when there is one.
    #[must_use]
    pub(crate) const fn creating(mut self) -> Self {
        self.flags |= NLM_F_CREATE | NLM_F_EXCL;
        self
    }

    /// Returns the payload: the family's header and the attributes.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Appends the whole message to `out`, padded to the alignment that a following one needs.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>, sequence_number: u32) {
        let mut header = NetlinkHeader::default();
        // Requests of this crate are far below 4 GiB.
        header.length = u32::try_from(HEADER_LEN + self.body.len()).unwrap_or(u32::MAX);
        header.message_type = self.kind;
        header.flags = NLM_F_REQUEST
            | self.flags
            | match self.ends {
                Ends::Ack => NLM_F_ACK,
                Ends::Reply => 0,
                Ends::Dump => NLM_F_DUMP,
            };
        header.sequence_number = sequence_number;
        let start = out.len();
        out.resize(start + HEADER_LEN, 0);
        header.emit(&mut out[start..]);
        out.extend_from_slice(&self.body);
        out.resize(out.len().next_multiple_of(4), 0);
    }

    /// Returns the name of the attribute at `offset` from the start of the message.
    pub(crate) fn attr_at(&self, offset: u32) -> Option<String> {
        let target = usize::try_from(offset)
            .ok()?
            .checked_sub(HEADER_LEN + self.fixed)?;
        let mut level = self.body.get(self.fixed..)?;
        let mut base = 0;
        let mut path = Vec::new();
        'descend: loop {
            let mut at = base;
            for attr in attrs(level) {
                let attr = attr.ok()?;
                let end = at + 4 + attr.value.len();
                if at == target {
                    path.push(attr.kind);
                    return Some(self.name(&path));
                }
                if (at + 4..end).contains(&target) {
                    path.push(attr.kind);
                    level = attr.value;
                    base = at + 4;
                    continue 'descend;
                }
                at = end.next_multiple_of(4);
            }
            return None;
        }
    }

    fn name(&self, path: &[u16]) -> String {
        (self.namer)(path).map_or_else(
            || {
                path.iter()
                    .map(u16::to_string)
                    .collect::<Vec<_>>()
                    .join(".")
            },
            str::to_owned,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::attr::{out_nested, out_u8, out_u32};
    use super::*;

    fn namer(path: &[u16]) -> Option<&'static str> {
        (path == [2, 6]).then_some("SIX")
    }

    #[test]
    fn an_offset_finds_its_attribute_at_any_depth() {
        let attrs = [
            out_u8(1, 0),
            out_nested(2, &[out_u32(5, 0), out_u32(6, 0)]),
            out_u8(3, 0),
        ];
        let request = Request::generic(20, 1, 1, Ends::Ack, &attrs, namer);
        // 16 + 4 bytes of headers, 8 of the first attribute, 4 of the nest's header, 8 of its first.
        assert_eq!(request.attr_at(20).as_deref(), Some("1"));
        assert_eq!(request.attr_at(28).as_deref(), Some("2"));
        assert_eq!(request.attr_at(32).as_deref(), Some("2.5"));
        assert_eq!(request.attr_at(40).as_deref(), Some("SIX"));
        assert_eq!(request.attr_at(48).as_deref(), Some("3"));
        assert_eq!(request.attr_at(0), None);
        assert_eq!(request.attr_at(4000), None);
        assert_eq!(request.attr_at(u32::MAX), None);
    }

    #[test]
    fn messages_follow_each_other_aligned() {
        let request = Request::generic(20, 7, 1, Ends::Reply, &[], namer);
        let mut out = Vec::new();
        request.append_to(&mut out, 1);
        request.append_to(&mut out, 2);
        assert_eq!(out.len(), 40);
        assert_eq!(out[28..32], 2_u32.to_ne_bytes());
        assert_eq!(out[16..20], [7, 1, 0, 0]);
    }
}
