// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Netlink attributes: reading them without copies, and building them.

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NlasIterator, parse_i32, parse_u16,
    parse_u32, parse_u64,
};

use super::NlError;

/// An attribute to send.
pub(crate) type Out = DefaultNla;

/// An attribute of a received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr<'a> {
    /// Type, without the flag bits.
    pub(crate) kind: u16,
    /// Payload, without padding.
    pub(crate) value: &'a [u8],
}

/// Returns the attributes in `bytes`; the first malformed one ends the list with an error.
pub(crate) fn attrs(bytes: &[u8]) -> impl Iterator<Item = Result<Attr<'_>, NlError>> {
    NlasIterator::new(bytes).map(|nla| {
        let nla = nla.map_err(|error| NlError::malformed(error.to_string()))?;
        // `value()` would borrow from the copy; the iterator has checked that the length fits.
        let (kind, end) = (nla.kind(), usize::from(nla.length()));
        let value = nla.into_inner().get(NLA_HEADER_SIZE..end);
        Ok(Attr {
            kind,
            value: value.unwrap_or_default(),
        })
    })
}

impl<'a> Attr<'a> {
    fn wrong_size(&self) -> NlError {
        let (kind, len) = (self.kind, self.value.len());
        NlError::malformed(format!("attribute {kind} has {len} bytes"))
    }

    pub(crate) fn u8(&self) -> Result<u8, NlError> {
        match self.value {
            [byte] => Ok(*byte),
            _ => Err(self.wrong_size()),
        }
    }

    pub(crate) fn u16(&self) -> Result<u16, NlError> {
        parse_u16(self.value).map_err(|_| self.wrong_size())
    }

    pub(crate) fn u32(&self) -> Result<u32, NlError> {
        parse_u32(self.value).map_err(|_| self.wrong_size())
    }

    pub(crate) fn i32(&self) -> Result<i32, NlError> {
        parse_i32(self.value).map_err(|_| self.wrong_size())
    }

    /// Reads a `NLA_UINT`, which the kernel sends in 4 or 8 bytes, whichever the value needs.
    pub(crate) fn uint(&self) -> Result<u64, NlError> {
        match self.value.len() {
            8 => parse_u64(self.value).map_err(|_| self.wrong_size()),
            _ => self.u32().map(u64::from),
        }
    }

    /// Reads text up to its terminator. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn text(&self) -> String {
        let end = self.value.iter().position(|byte| *byte == 0);
        let bytes = &self.value[..end.unwrap_or(self.value.len())];
        String::from_utf8_lossy(bytes).into_owned()
    }

    pub(crate) fn nested(&self) -> impl Iterator<Item = Result<Attr<'a>, NlError>> + use<'a> {
        attrs(self.value)
    }
}

pub(crate) fn out_u8(kind: u16, value: u8) -> Out {
    Out::new(kind, vec![value])
}

pub(crate) fn out_u32(kind: u16, value: u32) -> Out {
    Out::new(kind, value.to_ne_bytes().to_vec())
}

/// Writes a `NLA_UINT`.
pub(crate) fn out_uint(kind: u16, value: u64) -> Out {
    let bytes = u32::try_from(value).map_or_else(
        |_| value.to_ne_bytes().to_vec(),
        |small| small.to_ne_bytes().to_vec(),
    );
    Out::new(kind, bytes)
}

pub(crate) fn out_text(kind: u16, text: &str) -> Out {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    Out::new(kind, bytes)
}

pub(crate) fn out_nested(kind: u16, inner: &[Out]) -> Out {
    Out::new(kind | NLA_F_NESTED, bytes_of(inner))
}

pub(crate) fn bytes_of(attrs: &[Out]) -> Vec<u8> {
    let mut bytes = vec![0; attrs.buffer_len()];
    attrs.emit(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_back() {
        let sent = [
            out_u8(1, 7),
            out_nested(
                2,
                &[
                    out_uint(3, 20_000),
                    out_uint(4, u64::MAX),
                    out_text(5, "rx-gro"),
                ],
            ),
        ];
        let bytes = bytes_of(&sent);
        let read: Vec<_> = attrs(&bytes).map(Result::unwrap).collect();
        assert_eq!(read[0].u8().unwrap(), 7);
        assert_eq!(read[1].kind, 2, "the nested flag is no part of the type");
        let inner: Vec<_> = read[1].nested().map(Result::unwrap).collect();
        assert_eq!(inner[0].value.len(), 4);
        assert_eq!(inner[0].uint().unwrap(), 20_000);
        assert_eq!(inner[1].uint().unwrap(), u64::MAX);
        assert_eq!(inner[2].text(), "rx-gro");
    }

    #[test]
    fn a_length_past_the_end_is_an_error_and_ends_the_list() {
        let bytes = [4, 0, 1, 0, 200, 0, 2, 0, 1, 2];
        let mut read = attrs(&bytes);
        assert!(read.next().unwrap().is_ok());
        assert!(read.next().unwrap().is_err());
        assert!(read.next().is_none());
    }

    #[test]
    fn numbers_of_another_size_are_errors() {
        let attr = Attr {
            kind: 9,
            value: &[1, 2, 3],
        };
        let error = attr.u32().unwrap_err().to_string();
        assert!(error.contains("attribute 9 has 3 bytes"), "{error}");
        assert!(attr.u8().is_err() && attr.u16().is_err() && attr.uint().is_err());
    }
}
