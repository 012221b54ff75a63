// SPDX-License-Identifier: GPL-2.0-only
//! Error numbers of the kernel.

use core::ffi::{c_int, c_void};
use core::fmt;

/// A negative errno.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Errno(c_int);

/// What most calls return.
pub type Result<T = ()> = core::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident),*) => {
        impl Errno {
            $(
                #[doc = concat!("`-", stringify!($name), "`.")]
                pub const $name: Self = Self(-(bindings::$name as c_int));
            )*
        }
    };
}

errnos!(
    EAGAIN, EBUSY, EEXIST, EINVAL, EIO, EMSGSIZE, ENETRESET, ENODEV, ENOENT, ENOMEM, ENXIO,
    EOPNOTSUPP, EPERM, ERANGE, ETIMEDOUT
);

impl Errno {
    /// Returns the negative number that C callers want.
    #[must_use]
    pub const fn raw(self) -> c_int {
        self.0
    }

    /// Makes a `Result` of what a C function returned: a negative errno, or success.
    ///
    /// # Errors
    ///
    /// The negative errno.
    pub const fn check(ret: c_int) -> Result {
        if ret < 0 { Err(Self(ret)) } else { Ok(()) }
    }

    /// Makes a `Result` of a pointer that may carry an errno (`ERR_PTR`).
    pub(crate) fn check_ptr<T>(ptr: *mut T) -> Result<*mut T> {
        let value = ptr.cast::<c_void>() as isize;
        if ptr.is_null() {
            Err(Self::ENOMEM)
        } else if (-4095..0).contains(&value) {
            Err(Self(value as c_int))
        } else {
            Ok(ptr)
        }
    }

    /// Makes the C return value of a `Result`.
    pub(crate) fn ret(result: Result) -> c_int {
        match result {
            Ok(()) => 0,
            Err(errno) => errno.0,
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
