// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ethtool ioctl (netdevice(7), include/uapi/linux/ethtool.h), for what has no netlink message:
//! tunables, and the driver's name; and getsockopt(2) for the cookie of a network namespace.
#![expect(
    unsafe_code,
    reason = "ioctl(2) and getsockopt(2) have no safe interface; the calls are confined here"
)]

use std::ffi::c_char;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::uapi::{
    ETHTOOL_GDRVINFO, ETHTOOL_GTUNABLE, ETHTOOL_RX_COPYBREAK, ETHTOOL_STUNABLE,
    ETHTOOL_TUNABLE_U32, SIOCETHTOOL, SO_NETNS_COOKIE,
};

/// A command's argument.
///
/// # Safety
///
/// The type is `repr(C)`, starts with the command number, and is as long as whatever the kernel reads
/// or writes for the command that is in it.
unsafe trait Argument {}

/// The structures of this module: C name and size, for the comparison with the headers.
pub const SIZES: [(&str, usize); 2] = [
    ("struct ethtool_drvinfo", size_of::<RawDriverInfo>()),
    // Without the value that its flexible array holds.
    (
        "struct ethtool_tunable",
        size_of::<RawTunable>() - size_of::<u32>(),
    ),
];

/// `struct ethtool_drvinfo`.
#[repr(C)]
#[derive(Debug)]
struct RawDriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    erom: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

// SAFETY: ETHTOOL_GDRVINFO writes `struct ethtool_drvinfo`; tests/headers.rs compares the sizes.
unsafe impl Argument for RawDriverInfo {}

/// `struct ethtool_tunable` with a `u32` behind it.
#[repr(C)]
#[derive(Debug)]
struct RawTunable {
    command: u32,
    id: u32,
    type_id: u32,
    len: u32,
    value: u32,
}

// SAFETY: the kernel takes the value's length from `len`, which `tunable` sets to that of `value`; for
// ETHTOOL_RX_COPYBREAK it refuses another length (net/ethtool/ioctl.c, ethtool_tunable_valid).
unsafe impl Argument for RawTunable {}

/// Returns the driver's name. The kernel falls back on the bus driver or the rtnl kind, so that even
/// virtual devices have one.
///
/// # Errors
///
/// `ENODEV` when no interface has the name.
pub fn driver(socket: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let mut info = RawDriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        bus: [0; 32],
        erom: [0; 32],
        reserved: [0; 12],
        counts: [0; 5],
    };
    call(socket, name, &mut info)?;
    let end = info
        .driver
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(info.driver.len());
    Ok(String::from_utf8_lossy(&info.driver[..end]).into_owned())
}

/// Returns the kernel's number of the socket's network namespace, which it gives to no other one before
/// the next boot (`SO_NETNS_COOKIE`, net/core/net_namespace.c).
///
/// # Errors
///
/// `ENOPROTOOPT` before Linux 5.14.
pub fn namespace_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie: u64 = 0;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: both pointers are to live variables, and `length` is the size of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(cookie)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns the tunable `rx-copybreak`, bytes.
///
/// # Errors
///
/// `EOPNOTSUPP` when the driver has no tunables, `EINVAL` when it lacks this one, `ENODEV`.
pub fn rx_copybreak(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut tunable = tunable(ETHTOOL_GTUNABLE, 0);
    call(socket, name, &mut tunable)?;
    Ok(tunable.value)
}

/// Sets the tunable `rx-copybreak`, bytes.
///
/// # Errors
///
/// As for [`rx_copybreak`], and `EPERM` without `CAP_NET_ADMIN`.
pub fn set_rx_copybreak(socket: BorrowedFd<'_>, name: &str, value: u32) -> io::Result<()> {
    call(socket, name, &mut tunable(ETHTOOL_STUNABLE, value))
}

const fn tunable(command: u32, value: u32) -> RawTunable {
    let (id, type_id) = (ETHTOOL_RX_COPYBREAK, ETHTOOL_TUNABLE_U32);
    RawTunable {
        command,
        id,
        type_id,
        len: size_of::<u32>() as u32,
        value,
    }
}

fn call<A: Argument>(socket: BorrowedFd<'_>, name: &str, argument: &mut A) -> io::Result<()> {
    // SAFETY: `ifreq` is plain old data, for which all zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays the terminator.
    let room = request.ifr_name.len() - 1;
    if name.len() > room {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut *argument).cast();
    // SAFETY: the descriptor is open for the call; `request` and what it points to live until it
    // returns, and `Argument` vouches that the kernel stays inside of it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL.into(), &raw mut request) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
