// SPDX-License-Identifier: GPL-2.0-only
//! Children by P_Key: made and removed by the files `create_child` and `delete_child`, up and down with their parent.
//! RTNL is held.

use core::ffi::CStr;
use core::fmt::Write;

use kernel::client;
use kernel::error::{Errno, Result};

use crate::port::{Dev, Port};

/// Bytes of an interface's name, the terminating NUL included (`IFNAMSIZ`).
const NAME: usize = 16;

/// A name under construction.
struct Name {
    text: [u8; NAME],
    len: usize,
}

impl Write for Name {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let end = self.len.saturating_add(s.len());
        // The last byte stays NUL.
        let free = self
            .text
            .get_mut(self.len..end)
            .filter(|_| end < NAME)
            .ok_or(core::fmt::Error)?;
        for (to, from) in free.iter_mut().zip(s.bytes()) {
            *to = from;
        }
        self.len = end;
        Ok(())
    }
}

/// Makes the child `<parent>.<P_Key>`.
///
/// # Errors
///
/// `EINVAL` for a child, `EEXIST` when the P_Key is the parent's or that of another child, `ERANGE` when the name is too
/// long.
pub(crate) fn create(parent: &Dev, pkey: u16) -> Result {
    let port = parent.data();
    if port.parent.is_some() {
        return Err(Errno::EINVAL);
    }
    if port.link.lock().pkey == pkey || client::find_child(parent, false, has(pkey)) {
        return Err(Errno::EEXIST);
    }
    let mut name = Name {
        text: [0; NAME],
        len: 0,
    };
    write!(name, "{}.{pkey:04x}", parent.name()).map_err(|_| Errno::ERANGE)?;
    let name = CStr::from_bytes_until_nul(&name.text).map_err(|_| Errno::ERANGE)?;
    client::create_child(parent, name, || {
        let (mut port, tx) = Port::child(parent, pkey)?;
        port.by_file = true;
        Ok((port, tx))
    })
}

/// Removes a child of that P_Key.
///
/// # Errors
///
/// `ENODEV` when there is none.
pub(crate) fn delete(parent: &Dev, pkey: u16) -> Result {
    if client::find_child(parent, true, has(pkey)) {
        Ok(())
    } else {
        Err(Errno::ENODEV)
    }
}

fn has(pkey: u16) -> impl Fn(&Port) -> bool {
    move |port| port.link.lock().pkey == pkey
}

/// Brings all children up or down with their parent, as in-tree does. A child that can't come up is logged.
pub(crate) fn set_up(parent: &Dev, up: bool) {
    client::for_children(parent, |child| {
        if let Err(errno) = child.set_up(up) {
            kernel::warning!(
                "{}: can't follow its parent {} {}, {errno}",
                child.name(),
                parent.name(),
                if up { "up" } else { "down" }
            );
        }
    });
}
