// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Management datagrams from user space: `/dev/infiniband/umadN` (`include/uapi/rdma/ib_user_mad.h`).
#![expect(
    unsafe_code,
    reason = "registering an agent is an ioctl, and nix has no safe one for it; the call is confined here"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::errno::Errno;

use super::Result;

/// Bytes of a MAD.
const MAD: usize = 256;

/// Bytes of `struct ib_user_mad_hdr`, which goes before each MAD.
const HEADER: usize = 64;

/// Q_Key of QP1.
const QP1_QKEY: u32 = 0x8001_0000;

/// The LID that stands for "whoever is at the other end of the link".
const PERMISSIVE: u16 = 0xffff;

/// Methods (IBA 13.4.5, 15.2.2).
pub mod method {
    #![expect(missing_docs, reason = "the names say it")]
    pub const GET: u8 = 0x01;
    pub const SET: u8 = 0x02;
    pub const SEND: u8 = 0x03;
    pub const GET_TABLE: u8 = 0x12;
    pub const DELETE: u8 = 0x15;
}

/// Management classes, and the QP and version that go with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// Subnet management, by LID.
    SubnLid,
    /// Subnet management, by directed route.
    SubnDirected,
    /// Subnet administration.
    SubnAdm,
    /// Performance management.
    Perf,
}

impl Class {
    fn code(self) -> u8 {
        match self {
            Self::SubnLid => 0x01,
            Self::SubnDirected => 0x81,
            Self::SubnAdm => 0x03,
            Self::Perf => 0x04,
        }
    }

    fn version(self) -> u8 {
        if self == Self::SubnAdm { 2 } else { 1 }
    }

    fn qpn(self) -> u8 {
        u8::from(matches!(self, Self::SubnAdm | Self::Perf))
    }

    /// Returns where the attribute begins in the MAD.
    fn data_at(self) -> usize {
        if self == Self::SubnAdm { 56 } else { 64 }
    }
}

/// `struct ib_user_mad_reg_req2`.
#[repr(C)]
#[derive(Debug, Default)]
struct RegisterAgent {
    id: u32,
    qpn: u32,
    mgmt_class: u8,
    mgmt_class_version: u8,
    reserved: u16,
    flags: u32,
    method_mask: [u64; 2],
    oui: u32,
    rmpp_version: u8,
    reserved2: [u8; 3],
}

mod ioctl {
    nix::ioctl_readwrite!(register_agent, 0x1b, 4, super::RegisterAgent);
}

/// A MAD of one class: a request, or the answer to one.
#[derive(Clone, Debug)]
pub struct Mad {
    class: Class,
    bytes: [u8; MAD],
}

impl Mad {
    /// Makes a request with an empty attribute.
    #[must_use]
    pub fn new(class: Class, method: u8, attribute: u16, modifier: u32) -> Self {
        let mut bytes = [0; MAD];
        bytes[0] = 1;
        bytes[1] = class.code();
        bytes[2] = class.version();
        bytes[3] = method;
        bytes[16..18].copy_from_slice(&attribute.to_be_bytes());
        bytes[20..24].copy_from_slice(&modifier.to_be_bytes());
        Self { class, bytes }
    }

    /// Makes a directed-route SMP; `path` lists the port to leave by at each hop.
    #[must_use]
    pub fn directed(method: u8, attribute: u16, modifier: u32, path: &[u8]) -> Self {
        let mut mad = Self::new(Class::SubnDirected, method, attribute, modifier);
        mad.bytes[7] = u8::try_from(path.len()).unwrap_or(u8::MAX);
        mad.bytes[32..34].copy_from_slice(&PERMISSIVE.to_be_bytes());
        mad.bytes[34..36].copy_from_slice(&PERMISSIVE.to_be_bytes());
        for (at, port) in path.iter().enumerate() {
            mad.bytes[128 + 1 + at] = *port;
        }
        mad
    }

    /// Makes the directed part of the route begin where the SMP's DLID leads, and end back at `slid`.
    #[must_use]
    pub fn from_lid(mut self, slid: u16) -> Self {
        self.bytes[32..34].copy_from_slice(&slid.to_be_bytes());
        self
    }

    /// Makes a request to the SA: `mask` says which components of `record` count.
    #[must_use]
    pub fn sa(method: u8, attribute: u16, mask: u64, record: &[u8]) -> Self {
        let mut mad = Self::new(Class::SubnAdm, method, attribute, 0);
        mad.bytes[48..56].copy_from_slice(&mask.to_be_bytes());
        mad.set(0, record);
        mad
    }

    /// Changes the class version.
    #[must_use]
    pub fn version(mut self, version: u8) -> Self {
        self.bytes[2] = version;
        self
    }

    /// Gives the SMP an M_Key.
    #[must_use]
    pub fn m_key(mut self, key: u64) -> Self {
        self.bytes[24..32].copy_from_slice(&key.to_be_bytes());
        self
    }

    /// Returns the status, without the direction bit of a directed route.
    #[must_use]
    pub fn status(&self) -> u16 {
        u16::from_be_bytes([self.bytes[4], self.bytes[5]]) & 0x7fff
    }

    /// Returns the attribute.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.class.data_at()..]
    }

    /// Writes into the attribute.
    pub fn set(&mut self, at: usize, bytes: &[u8]) {
        let at = self.class.data_at() + at;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns a big-endian number of the attribute.
    #[must_use]
    pub fn u16(&self, at: usize) -> u16 {
        let data = self.data();
        u16::from_be_bytes([data[at], data[at + 1]])
    }

    /// Returns a big-endian number of the attribute.
    #[must_use]
    pub fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2))
    }

    /// Returns a big-endian number of the attribute.
    #[must_use]
    pub fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) << 32 | u64::from(self.u32(at + 4))
    }
}

/// An agent on the port of one HCA, for requests of one class.
#[derive(Debug)]
pub struct Umad {
    file: File,
    agent: u32,
    class: Class,
    hca: String,
}

impl Umad {
    /// Registers an agent on an HCA's port. The module `ib_umad` is loaded.
    ///
    /// # Errors
    ///
    /// When the HCA has no umad device, or the kernel refuses the agent.
    pub fn open(hca: &str, class: Class) -> Result<Self> {
        let device = device_of(hca)?;
        let path = format!("/dev/infiniband/{device}");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("opening {path} of {hca}"))?;
        let mut request = RegisterAgent {
            qpn: class.qpn().into(),
            mgmt_class: class.code(),
            mgmt_class_version: class.version(),
            ..Default::default()
        };
        // SAFETY: the kernel reads and writes one struct ib_user_mad_reg_req2, which `request` is.
        unsafe { ioctl::register_agent(file.as_raw_fd(), &raw mut request) }
            .with_context(|| format!("registering an agent for {class:?} on {hca}"))?;
        Ok(Self {
            file,
            agent: request.id,
            class,
            hca: hca.to_owned(),
        })
    }

    /// Sends a request along its directed route. Returns the answer, or none when there is none in time.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to send it.
    pub fn route(&mut self, request: &Mad, limit: Duration) -> Result<Option<Mad>> {
        self.ask(request, PERMISSIVE, limit)
    }

    /// Sends a request to a LID. Returns the answer, or none when there is none in time.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to send it.
    pub fn ask(&mut self, request: &Mad, lid: u16, limit: Duration) -> Result<Option<Mad>> {
        ensure!(
            request.class == self.class,
            "a {:?} MAD from an agent for {:?}",
            request.class,
            self.class
        );
        let mut packet = [0; HEADER + MAD];
        packet[0..4].copy_from_slice(&self.agent.to_ne_bytes());
        let timeout = u32::try_from(limit.as_millis())?;
        packet[8..12].copy_from_slice(&timeout.to_ne_bytes());
        let qpn = u32::from(self.class.qpn());
        packet[20..24].copy_from_slice(&qpn.to_be_bytes());
        let qkey = if qpn == 1 { QP1_QKEY } else { 0 };
        packet[24..28].copy_from_slice(&qkey.to_be_bytes());
        packet[28..30].copy_from_slice(&lid.to_be_bytes());
        packet[HEADER..].copy_from_slice(&request.bytes);
        // A transaction ID of our own in the low half; the kernel fills the other.
        packet[HEADER + 12..HEADER + 16].copy_from_slice(&next_tid().to_be_bytes());
        self.file
            .write_all(&packet)
            .with_context(|| format!("sending a {:?} MAD from {}", self.class, self.hca))?;
        let mut answer = [0; HEADER + MAD];
        let read = self.file.read(&mut answer)?;
        ensure!(read >= HEADER, "read {read} bytes of a MAD");
        // What was not answered comes back, shortened.
        let status = u32::from_ne_bytes([answer[4], answer[5], answer[6], answer[7]]);
        match i32::try_from(status).map(Errno::from_raw) {
            Ok(Errno::ETIMEDOUT) => return Ok(None),
            Ok(errno) if status != 0 => bail!("a {:?} MAD came back: {errno}", self.class),
            _ => {}
        }
        ensure!(read == answer.len(), "read {read} bytes of a MAD");
        let mut bytes = [0; MAD];
        bytes.copy_from_slice(&answer[HEADER..]);
        Ok(Some(Mad {
            class: self.class,
            bytes,
        }))
    }
}

/// Finds the umad device of an HCA's port.
fn device_of(hca: &str) -> Result<String> {
    let class = "/sys/class/infiniband_mad";
    for entry in fs::read_dir(class).with_context(|| format!("reading {class}"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = fs::read_to_string(entry.path().join("ibdev")).unwrap_or_default();
        if name.starts_with("umad") && owner.trim_end() == hca {
            return Ok(name);
        }
    }
    bail!("{hca} has no umad device in {class}; is ib_umad loaded?")
}

fn next_tid() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_laid_out_as_on_the_wire() {
        assert_eq!(size_of::<RegisterAgent>(), 40);
        let smp = Mad::directed(method::GET, 0x0015, 2, &[1, 2]);
        assert_eq!(smp.bytes[..4], [1, 0x81, 1, 1]);
        assert_eq!(smp.bytes[6..8], [0, 2]);
        assert_eq!(smp.bytes[16..18], [0, 0x15]);
        assert_eq!(smp.bytes[20..24], [0, 0, 0, 2]);
        assert_eq!(smp.bytes[128..132], [0, 1, 2, 0]);
        let sa = Mad::sa(method::DELETE, 0x38, 1 << 16, &[0xff, 0x12]);
        assert_eq!(sa.bytes[..4], [1, 3, 2, 0x15]);
        assert_eq!(sa.bytes[48..58], [0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0x12]);
        assert_eq!(sa.u16(0), 0xff12);
    }
}
