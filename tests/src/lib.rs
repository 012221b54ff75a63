// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lab: roots, virtual machines, the runner inside them, tests and bars.
//!
//! `lab` (see `docs/lab.md`) is one binary with two lives. On the host it
//! prepares everything and boots a virtual machine; inside the machine the
//! same binary is `/init`, runs the tests and sends their results back.

pub mod bench;
pub mod capture;
pub mod committed;
pub mod guest;
pub mod lab;
pub mod wire;
