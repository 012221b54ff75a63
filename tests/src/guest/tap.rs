// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A tap on the cable of a virtual HCA: frames that left it, and frames of any make that shall.
//!
//! The format is that of `struct vhca_tap_head` in `tests/vhca/tap.c`.

use std::fs;

use anyhow::{Context, ensure};

use super::Result;
use super::vhca::Vhca;

/// Bytes in front of each payload.
const HEAD: usize = 64;

/// One UD packet, as it is on the cable (IBA 7.7, 9.2, 9.5).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame {
    /// Source LID (LRH).
    pub slid: u16,
    /// Destination LID (LRH); 0xC000 and above are multicast.
    pub dlid: u16,
    /// Service level (LRH).
    pub sl: u8,
    /// P_Key (BTH), with the bit of full membership.
    pub pkey: u16,
    /// Destination queue pair (BTH); 0xffffff in multicast.
    pub dst_qpn: u32,
    /// Source queue pair (DETH).
    pub src_qpn: u32,
    /// Q_Key (DETH).
    pub qkey: u32,
    /// Global route header, if it has one.
    pub grh: Option<[u8; 40]>,
    /// What follows: encapsulation header and packet.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Returns the GIDs of source and destination, if it has a GRH (IBA 8.3).
    #[must_use]
    pub fn gids(&self) -> Option<([u8; 16], [u8; 16])> {
        let grh = self.grh?;
        Some((*grh[8..].first_chunk()?, *grh[24..].first_chunk()?))
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let head = bytes.first_chunk::<HEAD>()?;
        let long = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?))
        };
        let short = |at: usize| -> Option<u16> {
            Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?))
        };
        let length = usize::try_from(long(0)?).ok()?;
        let payload = bytes.get(HEAD..HEAD.checked_add(length)?)?;
        let frame = Self {
            src_qpn: long(4)?,
            dst_qpn: long(8)?,
            qkey: long(12)?,
            slid: short(16)?,
            dlid: short(18)?,
            pkey: short(20)?,
            sl: head[22],
            grh: (head[23] == 1).then_some(*head[24..].first_chunk()?),
            payload: payload.to_vec(),
        };
        Some((frame, &bytes[HEAD + length..]))
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len());
        for long in [
            u32::try_from(self.payload.len())?,
            self.src_qpn,
            self.dst_qpn,
            self.qkey,
        ] {
            bytes.extend(long.to_le_bytes());
        }
        for short in [self.slid, self.dlid, self.pkey] {
            bytes.extend(short.to_le_bytes());
        }
        bytes.extend([self.sl, u8::from(self.grh.is_some())]);
        bytes.extend(self.grh.unwrap_or([0; 40]));
        bytes.extend(&self.payload);
        Ok(bytes)
    }
}

impl Vhca {
    /// Forgets what was kept, and keeps the next `count` frames that leave.
    ///
    /// # Errors
    ///
    /// When the HCA isn't there, or there are too many (4096).
    pub fn capture(self, count: u32) -> Result {
        let path = self.file("capture");
        fs::write(&path, count.to_string()).with_context(|| format!("writing {}", path.display()))
    }

    /// Returns the frames that were kept.
    ///
    /// # Errors
    ///
    /// When they can't be read.
    pub fn captured(self) -> Result<Vec<Frame>> {
        let path = self.file("capture");
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut rest = bytes.as_slice();
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let (frame, left) = Frame::decode(rest).context("the capture ends within a frame")?;
            frames.push(frame);
            rest = left;
        }
        Ok(frames)
    }

    /// Lets a frame leave the HCA, whatever is in it.
    ///
    /// # Errors
    ///
    /// When its payload is over 8192 bytes.
    pub fn inject(self, frame: &Frame) -> Result {
        let path = self.file("inject");
        let bytes = frame.encode()?;
        ensure!(!bytes.is_empty(), "no frame");
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_their_encoding() {
        let frame = Frame {
            slid: 2,
            dlid: 0xc001,
            sl: 3,
            pkey: 0x8001,
            dst_qpn: 0x00ff_ffff,
            src_qpn: 0x12_3456,
            qkey: 0x8000_0b1b,
            grh: Some([7; 40]),
            payload: vec![1, 2, 3],
        };
        let mut bytes = frame.encode().unwrap();
        assert_eq!(bytes.len(), HEAD + 3);
        bytes.push(9);
        let (again, rest) = Frame::decode(&bytes).unwrap();
        assert_eq!((&again, rest), (&frame, &[9][..]));
        assert_eq!(again.gids(), Some(([7; 16], [7; 16])));
        assert!(Frame::decode(&bytes[..HEAD + 2]).is_none());
    }
}
