// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Host side: sets up what a test needs, boots machines, reports.

pub mod booted;
pub mod cache;
pub mod chroot;
pub mod cli;
pub mod demo;
pub mod deny;
pub mod dist;
pub mod host;
pub mod host_tests;
pub mod initramfs;
pub mod installed;
pub mod jobs;
pub mod key;
pub mod machine;
pub mod measurements;
pub mod modules;
pub mod pip;
pub mod place;
pub mod progress;
pub mod report;
pub mod roots;
pub mod rpm;
pub mod schemathesis;
pub mod session;
pub mod test;
