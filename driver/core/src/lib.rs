// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Decisions and limits of the IPoIB driver's data path.
//!
//! `no_std`, no allocation, no dependencies, no `unsafe`: the same source is linked into the kernel
//! module and into user space, so that both sides agree on every limit.
#![no_std]
#![forbid(unsafe_code)]

pub mod limits;
