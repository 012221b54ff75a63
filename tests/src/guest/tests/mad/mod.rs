// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The virtual HCA's management agents, asked directly: subnet management, performance, and the SA.

mod opensm;
mod perf;
mod records;
mod routes;
mod sa;
mod sma;

use std::time::Duration;

use anyhow::Context;

use crate::guest::task::Task;
use crate::guest::umad::{Mad, Umad, method};
use crate::guest::{Guest, Result};

/// The tests, one table per file.
pub const TABLES: &[&[Task]] = &[
    sma::TESTS,
    routes::TESTS,
    perf::TESTS,
    sa::TESTS,
    records::TESTS,
    opensm::TESTS,
];

/// How long an agent may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long to wait for what must not come.
const SILENCE: Duration = Duration::from_millis(300);

/// Attributes of subnet management (IBA 14.2.5).
mod smp {
    pub(super) const NODE_DESCRIPTION: u16 = 0x10;
    pub(super) const NODE_INFO: u16 = 0x11;
    pub(super) const SWITCH_INFO: u16 = 0x12;
    pub(super) const GUID_INFO: u16 = 0x14;
    pub(super) const PORT_INFO: u16 = 0x15;
    pub(super) const PKEY_TABLE: u16 = 0x16;
    pub(super) const SL_TO_VL: u16 = 0x17;
    pub(super) const VL_ARBITRATION: u16 = 0x18;
    pub(super) const LINEAR_TABLE: u16 = 0x19;
    pub(super) const MCAST_TABLE: u16 = 0x1b;
    pub(super) const SM_INFO: u16 = 0x20;
}

/// MAD status (IBA 13.4.7).
mod status {
    pub(super) const BAD_VERSION: u16 = 0x04;
    pub(super) const BAD_METHOD: u16 = 0x08;
    pub(super) const BAD_ATTRIBUTE: u16 = 0x0c;
    pub(super) const BAD_VALUE: u16 = 0x1c;
}

/// The switch is one hop from `vhca0`; `vhca1` is behind its port 2.
const SWITCH: &[u8] = &[1];
const NEIGHBOUR: &[u8] = &[1, 2];

/// Gets an attribute along a directed route; the status must be good.
fn get(umad: &mut Umad, path: &[u8], attribute: u16, modifier: u32) -> Result<Mad> {
    let request = Mad::directed(method::GET, attribute, modifier, path);
    good(umad, &request).with_context(|| format!("Get of {attribute:#x}/{modifier:#x} at {path:?}"))
}

/// Sets an attribute along a directed route, and returns the answer, whatever its status.
fn set(umad: &mut Umad, path: &[u8], attribute: u16, modifier: u32, data: &[u8]) -> Result<Mad> {
    let mut request = Mad::directed(method::SET, attribute, modifier, path);
    request.set(0, data);
    umad.route(&request, ANSWER)?.with_context(|| {
        format!("no answer to Set of {attribute:#x}/{modifier:#x} at {path:?} within {ANSWER:?}")
    })
}

/// Sends a directed-route SMP that must be answered with a good status.
fn good(umad: &mut Umad, request: &Mad) -> Result<Mad> {
    let answer = answered(umad, request)?;
    anyhow::ensure!(answer.status() == 0, "status {:#06x}", answer.status());
    Ok(answer)
}

/// Sends a directed-route SMP that must be answered.
fn answered(umad: &mut Umad, request: &Mad) -> Result<Mad> {
    umad.route(request, ANSWER)?
        .with_context(|| format!("no answer within {ANSWER:?}"))
}

/// Reads a hexadecimal number of a port in sysfs.
fn port_hex(guest: &Guest, hca: u32, name: &str) -> Result<u16> {
    let path = format!("/sys/class/infiniband/vhca{hca}/ports/1/{name}");
    let text = guest.read(&path)?;
    u16::from_str_radix(text.trim_start_matches("0x"), 16)
        .with_context(|| format!("{path} has {text:?}"))
}
