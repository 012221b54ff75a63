// SPDX-License-Identifier: Apache-2.0 OR MIT
//! P_Key children: which kind one is, making and removing both kinds.
//!
//! In-tree ib_ipoib's rules are in drivers/infiniband/ulp/ipoib/ipoib_vlan.c and ipoib_netlink.c.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use ibmgr_api::{ChildKind, ErrorCode, LinkName, Pkey};
use ibmgrd_engine::{Host, NewChild, OldChild, PortError, Target};

use super::KernelPort;
use super::errors::{NET_ADMIN, ROOT, unanswered};
use crate::nl::{NlError, describe};
use crate::rtnl::{Link, NewIpoib};

/// How long a removal through `delete_child` is waited for: the kernel does it in a work queue.
const REMOVAL: Duration = Duration::from_secs(5);

impl Host for KernelPort {
    fn create_child(&mut self, child: &NewChild) -> Result<(), PortError> {
        let what = format!(
            "making it with P_Key {} on {}",
            child.pkey, child.parent.name
        );
        let parent = self.same(&child.parent)?;
        let tell = |error| refusal(&child.name, &what, NET_ADMIN, error);
        match child.kind {
            ChildKind::Netlink => {
                let child = NewIpoib {
                    name: child.name.to_string(),
                    parent: parent.index,
                    kind: parent.kind.unwrap_or_else(|| "ipoib".to_owned()),
                    pkey: child.pkey.raw(),
                };
                self.kernel.rtnl.create(&child).map(|_| ()).map_err(tell)
            }
            ChildKind::Legacy => {
                let given = legacy_name(&child.parent.name, child.pkey);
                if given != child.name.as_str() {
                    let message = format!("create_child would call it '{given}'");
                    return Err(refused(&child.name, &what, libc::EINVAL, message));
                }
                let text = format!("{:#06x}\n", child.pkey.raw());
                self.write_file(&child.parent, &parent, "create_child", &text)
                    .map_err(|error| file_refusal(&child.name, &what, error))
            }
        }
    }

    fn delete_child(&mut self, child: &OldChild) -> Result<(), PortError> {
        let name = &child.child.name;
        let what = format!("removing it with P_Key {}", child.pkey);
        self.same(&child.child)?;
        match child.via {
            ChildKind::Netlink => {
                let deleted = self.kernel.rtnl.delete(child.child.index);
                deleted
                    .map(|_| ())
                    .map_err(|error| refusal(name, &what, NET_ADMIN, error))
            }
            ChildKind::Legacy => {
                let parent = self.same(&child.parent)?;
                let text = format!("{:#06x}\n", child.pkey.raw());
                self.write_file(&child.parent, &parent, "delete_child", &text)
                    .map_err(|error| file_refusal(name, &what, error))?;
                self.await_removal(&child.child)
            }
        }
    }

    fn pause(&mut self, attempt: u32) -> bool {
        let goes_on = attempt < PAUSES;
        if goes_on {
            thread::sleep(Duration::from_millis(1 << attempt.min(LONGEST_PAUSE)));
        }
        goes_on
    }
}

/// Longest single wait for a value that is not there yet; the waits before it double from 1 ms.
const LONGEST_PAUSE: u32 = 7;
/// How often it is waited: 0.4 s in all. Drivers that work in the background need a few milliseconds;
/// a value that is refused in silence should not be waited for much longer.
const PAUSES: u32 = 9;

impl KernelPort {
    /// Returns the interface, if its index and name still belong together.
    fn same(&mut self, target: &Target) -> Result<Link, PortError> {
        let found = self.kernel.rtnl.link_at(target.index);
        let failed = |error| unanswered(&format!("asking for {}", target.name), error);
        let same = |link: &Link| link.name == target.name.as_str();
        found
            .map_err(failed)?
            .filter(same)
            .ok_or_else(|| PortError::Gone {
                link: target.name.clone(),
            })
    }

    fn write_file(
        &mut self,
        target: &Target,
        link: &Link,
        file: &'static str,
        text: &str,
    ) -> io::Result<()> {
        let sysfs = self
            .kernel
            .sysfs_of(&target.name, link.index, &link.address);
        let sysfs = sysfs.map_err(io::Error::other)?;
        sysfs.write(&target.name, file, text)
    }

    fn await_removal(&mut self, target: &Target) -> Result<(), PortError> {
        let start = Instant::now();
        loop {
            match self.same(target) {
                Err(PortError::Gone { .. }) => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) if start.elapsed() >= REMOVAL => {
                    return Err(PortError::Timeout {
                        what: format!("{}: waiting for its removal", target.name),
                        seconds: REMOVAL.as_secs(),
                    });
                }
                Ok(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// Returns the name that `create_child` gives: `"%.10s.%04x"` of the parent's name and the P_Key as
/// written.
fn legacy_name(parent: &LinkName, pkey: Pkey) -> String {
    let bytes = parent.as_str().as_bytes();
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(10)]).into_owned();
    format!("{start}.{:04x}", pkey.raw())
}

fn refused(link: &LinkName, what: &str, errno: i32, message: impl Into<String>) -> PortError {
    let message = message.into();
    let code = match errno {
        libc::EPERM | libc::EACCES => ErrorCode::Permission,
        libc::EOPNOTSUPP => ErrorCode::Unsupported,
        _ => ErrorCode::Refused,
    };
    // What the numbers mean here, which the kernel does not say.
    let means = match errno {
        libc::ENOTUNIQ => Some("the parent has a child with that P_Key, or has it itself"),
        libc::EEXIST => Some("the name, or the P_Key on that parent, is taken"),
        libc::EBUSY => Some("the parent is going away"),
        _ => None,
    };
    let message = match means {
        Some(means) => format!("{message}: {means}"),
        None => message,
    };
    PortError::ChildRefused {
        link: link.clone(),
        what: what.to_owned(),
        errno,
        message,
        code,
    }
}

fn refusal(link: &LinkName, what: &str, needs: &str, error: NlError) -> PortError {
    match error {
        NlError::Refused(refusal) => {
            let is_bare = refusal.message.is_none();
            match refusal.errno {
                libc::ENODEV => PortError::Gone { link: link.clone() },
                libc::EPERM if is_bare => {
                    refused(link, what, libc::EPERM, format!("it takes {needs}"))
                }
                errno => refused(link, what, errno, refusal.to_string()),
            }
        }
        error => unanswered(&format!("{link}: {what}"), error),
    }
}

fn file_refusal(link: &LinkName, what: &str, error: io::Error) -> PortError {
    match error.raw_os_error() {
        Some(errno @ (libc::EPERM | libc::EACCES)) => {
            refused(link, what, errno, format!("it takes {ROOT}"))
        }
        Some(libc::ENOENT) => refused(
            link,
            what,
            libc::EOPNOTSUPP,
            "the parent has no such file: its driver makes no legacy children",
        ),
        Some(errno) => refused(link, what, errno, describe(errno)),
        None => refused(link, what, libc::EOPNOTSUPP, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_child_cuts_the_parents_name() {
        let name =
            |parent: &str, raw| legacy_name(&parent.parse().unwrap(), Pkey::new(raw).unwrap());
        assert_eq!(name("ib0", 0x8001), "ib0.8001");
        assert_eq!(name("ib0", 1), "ib0.0001");
        assert_eq!(name("infiniband12", 0xffff), "infiniband.ffff");
    }

    #[test]
    fn refusals_say_what_they_mean() {
        let ib0: LinkName = "ib0.8001".parse().unwrap();
        let text = |errno| refused(&ib0, "making it", errno, describe(errno)).to_string();
        assert!(text(libc::ENOTUNIQ).contains("child with that P_Key"));
        assert!(text(libc::EINVAL).ends_with("Invalid argument (EINVAL)"));
        let error = file_refusal(
            &ib0,
            "making it",
            io::Error::from_raw_os_error(libc::EACCES),
        );
        assert_eq!(error.code(), ErrorCode::Permission);
    }
}
