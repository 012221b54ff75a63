// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The port on the running kernel, in network namespaces of its own, with ip(8), ethtool(8) and sysfs
//! as independent readers and writers. Needs root.
#![expect(clippy::unwrap_used, reason = "a test program")]

mod namespace;
mod observe;
mod refuse;
mod watch;
mod write;
