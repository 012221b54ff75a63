// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing declarations, and editing files that people write.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod edits;
mod round_trip;
