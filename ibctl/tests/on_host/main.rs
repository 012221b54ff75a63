// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ibctl` on this machine's kernel, in network namespaces of its own, with `ip`, `ethtool` and sysfs
//! as independent readers and writers. Needs root, iproute2, ethtool, util-linux and bash.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod apply;
mod bad_input;
mod every_knob;
mod files;
mod imports;

mod names;
mod output;
mod privilege;
mod queues;
mod races;
mod support;
