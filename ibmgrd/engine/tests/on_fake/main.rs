// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine on a kernel in memory that misbehaves in every way seen on real ones.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod fake;
mod outcomes;
mod properties;
