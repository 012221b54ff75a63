// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What declarations mean for the interfaces that are there.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod cases;
mod model;
mod properties;
