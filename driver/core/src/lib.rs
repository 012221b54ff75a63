// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Decisions and limits of the IPoIB driver's data path.
//!
//! `no_std`, no allocation, no dependencies, no `unsafe`: the same source is linked into the kernel
//! module and into user space, so that both sides agree on every limit, and so that each decision of
//! the data path runs under `cargo test`.
//!
//! - [`limits`]: minimum, maximum and default of each knob that the driver owns.
//! - [`ring`]: positions of the transmit ring, shared by the transmit path and the completion path.
//! - [`batch`]: when to ring the doorbell for a chain of work requests.
//! - [`refill`]: when to post receive buffers.
//! - [`segment`]: headers of the packets that a large one is cut into.
//! - [`connect`]: connected mode: private data, and the life of a connection (RFC 4755).
//! - [`wire`]: the IPoIB frame and address formats (RFC 4391).
//! - [`abi`]: names and numbers of the driver's interface to user space.
#![no_std]
#![forbid(unsafe_code)]

pub mod abi;
pub mod batch;
pub mod connect;
pub mod limits;
pub mod refill;
pub mod ring;
pub mod segment;
pub mod wire;
