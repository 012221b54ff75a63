// SPDX-License-Identifier: GPL-2.0-only
//! sysfs: in-tree's files, and ours in a folder.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use ipoib_core::batch::Mode;
use ipoib_core::limits::{BATCH_LIMIT, CM_COPYBREAK};
use kernel::error::{Errno, Result};
use kernel::rtnl;
use kernel::sysfs::{File, Files, number};

use crate::cm::mode;
use crate::port::Port;
use crate::{child, settings};

/// Prepares the files.
pub(crate) fn files() -> Result<Files<Port>> {
    let plain: [File<Port>; 5] = [
        File {
            name: c"mode",
            show: Some(|dev, text| {
                text.write_str(if dev.data().is_connected() {
                    "connected\n"
                } else {
                    "datagram\n"
                })
            }),
            store: Some(|dev, value| match value {
                "datagram" => mode::set(dev, false),
                "connected" => mode::set(dev, true),
                _ => Err(Errno::EINVAL),
            }),
        },
        File {
            name: c"pkey",
            show: Some(|dev, text| writeln!(text, "{:#06x}", dev.data().link.lock().pkey)),
            store: None,
        },
        File {
            name: c"create_child",
            show: None,
            store: Some(|dev, value| child::create(dev, pkey(value)?)),
        },
        File {
            name: c"delete_child",
            show: None,
            store: Some(|dev, value| child::delete(dev, pkey(value)?)),
        },
        File {
            name: c"umcast",
            show: Some(|dev, text| {
                writeln!(
                    text,
                    "{}",
                    u8::from(dev.data().umcast.load(Ordering::Relaxed))
                )
            }),
            store: Some(|dev, value| {
                let on = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(Errno::EINVAL),
                };
                settings::set_umcast(dev, on);
                rtnl::notify(dev);
                Ok(())
            }),
        },
    ];
    let ours: [File<Port>; 3] = [
        File {
            name: c"cm_copybreak",
            show: Some(|dev, text| writeln!(text, "{}", settings::copybreak(dev))),
            store: Some(|dev, value| {
                let bytes = number(value).ok_or(Errno::EINVAL)?;
                if !CM_COPYBREAK.contains(bytes) {
                    return Err(Errno::ERANGE);
                }
                settings::set_copybreak(dev, bytes);
                rtnl::notify(dev);
                Ok(())
            }),
        },
        File {
            name: c"batching",
            show: Some(|dev, text| writeln!(text, "{}", settings::batch(dev).mode.name())),
            store: Some(|dev, value| {
                let mode = Mode::ALL
                    .into_iter()
                    .find(|mode| mode.name() == value)
                    .ok_or(Errno::EINVAL)?;
                settings::set_mode(dev, mode);
                rtnl::notify(dev);
                Ok(())
            }),
        },
        File {
            name: c"batch_limit",
            show: Some(|dev, text| writeln!(text, "{}", settings::batch(dev).limit)),
            store: Some(|dev, value| {
                let limit = number(value).ok_or(Errno::EINVAL)?;
                if !BATCH_LIMIT.contains(limit) {
                    return Err(Errno::ERANGE);
                }
                settings::set_limit(dev, limit);
                rtnl::notify(dev);
                Ok(())
            }),
        },
    ];
    // As in-tree: it tells how a child was made.
    let some: [File<Port>; 1] = [File {
        name: c"parent",
        show: Some(|dev, text| match &dev.data().parent {
            Some(parent) => writeln!(text, "{}", parent.name()),
            None => Ok(()),
        }),
        store: None,
    }];
    Files::new(&plain, &some, |dev| dev.data().by_file, c"ipoib", &ours)
}

/// Reads a P_Key, with or without the bit of full membership.
fn pkey(value: &str) -> Result<u16> {
    let pkey = number(value)
        .and_then(|pkey| u16::try_from(pkey).ok())
        .ok_or(Errno::EINVAL)?;
    if pkey & 0x7fff == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(pkey | 0x8000)
}
