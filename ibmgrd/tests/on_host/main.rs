// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon's program on real interfaces, in network namespaces. These tests need root.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says where"
)]

mod bus;
mod bus_fuzz;
mod changes;
mod client;
mod clients;
mod command;
mod dbus;
mod files;
mod heal;
mod http;
mod life;
mod many;
mod remote;
mod subscribers;
mod support;
mod tls;
