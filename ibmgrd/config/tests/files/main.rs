// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files as people write them: what they mean, and what is said when they are wrong.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod broken;
mod folders;
mod meaning;
mod messages;
mod support;
