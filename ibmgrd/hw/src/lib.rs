// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's interfaces for network devices, as blocking calls.
//!
//! - [`rtnl`]: interfaces (rtnetlink).
//! - [`genl`], with [`ethtool`] and [`netdev`]: the generic netlink families.
//! - [`ioctl`]: what has no netlink message, tunables and the driver's name.
//! - [`sysfs`]: files of `/sys/class/net`.
//! - [`watch`]: what happens to interfaces, as the kernel tells it.
//! - [`port`]: all of them behind the engine's `Port`, with what each device can take.
//!
//! Everything acts in the network namespace of the thread that first uses it.

pub mod ethtool;
pub mod genl;
pub mod ioctl;
pub mod netdev;
pub mod nl;
pub mod port;
pub mod ports;
pub mod rtnl;
pub mod sysfs;
pub mod uapi;
pub mod watch;

#[cfg(test)]
mod tests;
