// SPDX-License-Identifier: GPL-2.0-only
//! Messages to the kernel log.

use core::ffi::CStr;
use core::fmt::{self, Write};

/// How bad it is.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is not as it should be, and the driver goes on.
    Warning,
    /// Worth knowing.
    Info,
}

/// A line under construction; what does not fit is cut.
struct Line {
    text: [u8; 240],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if let Some(free) = self.text.get_mut(self.len..) {
            let n = free.len().min(s.len());
            if let (Some(to), Some(from)) = (free.get_mut(..n), s.as_bytes().get(..n)) {
                to.copy_from_slice(from);
                self.len = self.len.wrapping_add(n);
            }
        }
        Ok(())
    }
}

/// Logs one line, with the driver's name in front.
pub fn line(level: Level, args: fmt::Arguments<'_>) {
    let mut line = Line {
        text: [0; 240],
        len: 0,
    };
    let _cut = line.write_fmt(args);
    let format: &CStr = match level {
        Level::Error => c"\x013ipoib_batch: %.*s\n",
        Level::Warning => c"\x014ipoib_batch: %.*s\n",
        Level::Info => c"\x016ipoib_batch: %.*s\n",
    };
    // SAFETY: the format takes an int and that many bytes of a string, which `text` has.
    unsafe {
        bindings::_printk(
            format.as_ptr(),
            line.len as core::ffi::c_int,
            line.text.as_ptr(),
        )
    };
}

/// Says whether the kernel's limit for messages of the network (`net.core.message_cost`, `message_burst`) lets one
/// more through.
#[must_use]
pub fn is_allowed() -> bool {
    // SAFETY: callable in any context.
    unsafe { bindings::net_ratelimit() != 0 }
}

/// Logs an error.
#[macro_export]
macro_rules! error {
    ($($args:tt)*) => { $crate::log::line($crate::log::Level::Error, ::core::format_args!($($args)*)) };
}

/// Logs a warning.
#[macro_export]
macro_rules! warning {
    ($($args:tt)*) => { $crate::log::line($crate::log::Level::Warning, ::core::format_args!($($args)*)) };
}

/// Logs what is worth knowing.
#[macro_export]
macro_rules! info {
    ($($args:tt)*) => { $crate::log::line($crate::log::Level::Info, ::core::format_args!($($args)*)) };
}

/// Logs a warning of something that each packet can cause, unless there were many just now.
#[macro_export]
macro_rules! limited_warning {
    ($($args:tt)*) => {
        if $crate::log::is_allowed() {
            $crate::warning!($($args)*);
        }
    };
}
