// SPDX-License-Identifier: GPL-2.0-only
//! Safe abstractions over the kernel's C interfaces, for the driver in `ipoib`.
//!
//! All `unsafe` of the driver is here. The rules that its soundness rests on:
//!
//! - A [`netdev::Device`] exists from the moment its private data are in place until they are dropped, which
//!   the kernel does after the last reference ([`netdev::DeviceRef`], a `dev_hold`) is gone. Works, SA queries and
//!   multicast joins hold one, so that no callback outlives the data it uses.
//! - A [`verbs::Hca`] counts as a user of the `ib_device`: unregistering waits for it. Protection domains, queue
//!   pairs, completion queues and address handles each hold what they were made from.
//! - Identifiers of the connection manager and queue pairs of connections hold a device through their
//!   [`signal::Signal`]; both are dropped when the interface goes down.
//! - What the device reads or writes (buffers, address handles of posted requests) is owned by
//!   [`sendq::SendQueue`], [`recvq::RecvQueue`], [`rcsend::RcSends`] and [`pages::PageQueue`] and given back by a completion, or by a reset of the queue pair.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod alloc;
pub mod client;
pub mod clock;
pub mod cm;
pub mod error;
pub mod ethtool;
pub mod event;
mod hca;
pub mod list;
pub mod lock;
pub mod log;
pub mod napi;
pub mod netdev;
pub mod ops;
pub mod pages;
mod panic;
pub mod param;
pub mod pool;
mod qp;
pub mod rc;
pub mod rcsend;
pub mod recvq;
pub mod rtnl;
pub mod sa;
pub mod sendq;
pub mod signal;
pub mod skb;
pub mod sysfs;
pub mod train;
pub mod txq;
pub mod verbs;
mod vf;
pub mod work;
