// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole hosts on a kernel in memory that rounds, refuses, delays, lies, unplugs and makes anew, and in
//! a process that is killed at any call.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod crashes;
mod golden;
mod memory;
mod outcomes;
mod properties;
mod world;
