// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who asks, and what they may do. Whatever is not granted is denied.

use ibmgr_api::status::By;
use ibmgr_api::{ErrorCode, Failure, Glob, LinkName};
use nix::unistd::{Gid, User, geteuid, getgrouplist};

/// Through what somebody asks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Surface {
    /// HTTP over the unix socket: the kernel says who it is.
    Socket,
    /// D-Bus: the bus says who it is, and polkit what they may do.
    Bus,
    /// HTTP over TCP: a certificate or a token says who it is and what they may do.
    Tcp,
}

impl Surface {
    /// Returns the word in records and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Bus => "dbus",
            Self::Tcp => "tcp",
        }
    }
}

/// What something takes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Right {
    /// Reading values, status and events.
    Observe,
    /// Changing what is: values, children, checkpoints.
    Change,
    /// Changing what is declared in files, which the next start applies.
    Declare,
}

impl Right {
    const fn deed(self) -> &'static str {
        match self {
            Self::Observe => "reading",
            Self::Change => "changing",
            Self::Declare => "changing declarations",
        }
    }
}

/// For which interfaces a right holds.
#[derive(Clone, Debug, Default)]
pub enum Scope {
    /// For none.
    #[default]
    Nothing,
    /// For those whose name one of these takes.
    Links(Vec<Glob>),
    /// For all, and for what is about no interface.
    Everything,
}

impl Scope {
    fn takes(&self, link: Option<&LinkName>) -> bool {
        match (self, link) {
            (Self::Everything, _) => true,
            (Self::Links(globs), Some(link)) => {
                globs.iter().any(|glob| glob.is_match(link.as_str()))
            }
            (Self::Links(_), None) | (Self::Nothing, _) => false,
        }
    }
}

/// What somebody may do. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Where they may read.
    pub observe: Scope,
    /// Where they may change what is.
    pub change: Scope,
    /// Where they may change what is declared.
    pub declare: Scope,
}

impl Grants {
    /// Returns the right to read everything.
    #[must_use]
    pub const fn observer() -> Self {
        Self {
            observe: Scope::Everything,
            change: Scope::Nothing,
            declare: Scope::Nothing,
        }
    }

    /// Returns all rights.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            observe: Scope::Everything,
            change: Scope::Everything,
            declare: Scope::Everything,
        }
    }

    const fn scope(&self, right: Right) -> &Scope {
        match right {
            Right::Observe => &self.observe,
            Right::Change => &self.change,
            Right::Declare => &self.declare,
        }
    }
}

/// Who asks: made by the surface that they ask through, and carried along to the record of the change.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Through what they ask.
    pub surface: Surface,
    /// The user, as the kernel or the bus says.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The process.
    pub pid: Option<u32>,
    /// The name of the certificate or of the token.
    pub name: Option<String>,
    /// What they may do.
    pub grants: Grants,
    /// What they would need for more, such as `root`: it ends the message of a denial.
    pub needs: String,
}

impl Caller {
    /// Says whether they may do that to `link`, or to what is about no interface.
    ///
    /// # Errors
    ///
    /// They may not: [`ErrorCode::Permission`], with who they are and what it takes.
    pub fn check(&self, right: Right, link: Option<&LinkName>) -> Result<(), Failure> {
        if self.grants.scope(right).takes(link) {
            return Ok(());
        }
        let who = match (&self.name, self.uid) {
            (Some(name), _) => format!("'{name}'"),
            (None, Some(uid)) => format!("user {uid}"),
            (None, None) => "the caller is not known and".to_owned(),
        };
        let on = link.map(|link| format!("{link}: ")).unwrap_or_default();
        let may = match self.grants.observe {
            Scope::Nothing => "may do nothing",
            Scope::Links(_) | Scope::Everything if right == Right::Observe => "may not read this",
            Scope::Links(_) | Scope::Everything => "may read only",
        };
        let (deed, needs) = (right.deed(), &self.needs);
        let message = format!("{on}{who} {may}: {deed} takes {needs}");
        Err(Failure::new(ErrorCode::Permission, message).about(link, None::<&str>))
    }

    /// Returns what records tell of them.
    #[must_use]
    pub fn by(&self) -> By {
        By {
            surface: self.surface.name().to_owned(),
            uid: self.uid,
            gid: self.gid,
            pid: self.pid,
            name: self.name.clone(),
        }
    }
}

/// Who may change something over the unix socket, besides root and the daemon's own user.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Users, by number.
    pub users: Vec<u32>,
    /// Groups, by number: as the caller's own group, or as one of those that its user is in.
    pub groups: Vec<u32>,
}

impl Access {
    /// Returns the caller at the other end of a unix socket (`SO_PEERCRED`, unix(7)): everybody who may
    /// connect may read.
    #[must_use]
    pub fn peer(&self, uid: Option<u32>, gid: Option<u32>, pid: Option<u32>) -> Caller {
        let may_change = uid.is_some_and(|uid| {
            uid == 0
                || uid == geteuid().as_raw()
                || self.users.contains(&uid)
                || gid.is_some_and(|gid| self.has_group(uid, gid))
        });
        let mut needs = "root".to_owned();
        if !self.users.is_empty() || !self.groups.is_empty() {
            needs.push_str(", or a user or group that ibmgrd was started with");
        }
        Caller {
            surface: Surface::Socket,
            uid,
            gid,
            pid,
            name: None,
            grants: if may_change {
                Grants::all()
            } else {
                Grants::observer()
            },
            needs,
        }
    }

    fn has_group(&self, uid: u32, gid: u32) -> bool {
        if self.groups.is_empty() {
            return false;
        }
        // The kernel tells the primary group only (unix(7)); the others are in the user database.
        let others = || {
            let user = User::from_uid(uid.into()).ok()??;
            let name = std::ffi::CString::new(user.name).ok()?;
            getgrouplist(&name, Gid::from_raw(gid)).ok()
        };
        let is_ours = |gid: &u32| self.groups.contains(gid);
        is_ours(&gid) || others().is_some_and(|all| all.iter().any(|gid| is_ours(&gid.as_raw())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> LinkName {
        name.parse().unwrap()
    }

    #[test]
    fn whatever_is_not_granted_is_denied() {
        let mut caller = Access::default().peer(Some(1000), Some(100), Some(1));
        assert!(caller.check(Right::Observe, Some(&link("ib0"))).is_ok());
        let denied = caller.check(Right::Change, Some(&link("ib0"))).unwrap_err();
        assert_eq!(denied.code, ErrorCode::Permission);
        assert_eq!(
            denied.message,
            "ib0: user 1000 may read only: changing takes root"
        );
        caller.grants.change = Scope::Links(vec![Glob::literal("ib0")]);
        assert!(caller.check(Right::Change, Some(&link("ib0"))).is_ok());
        assert!(caller.check(Right::Change, Some(&link("ib1"))).is_err());
        assert!(caller.check(Right::Change, None).is_err());
        assert!(caller.check(Right::Declare, Some(&link("ib0"))).is_err());
        caller.grants = Grants::default();
        assert!(caller.check(Right::Observe, None).is_err());
    }

    #[test]
    fn users_and_groups_that_were_named_may_change() {
        let access = Access {
            users: vec![1000],
            groups: vec![44],
        };
        let may = |uid, gid| access.peer(uid, gid, None).check(Right::Change, None);
        assert!(may(Some(0), Some(0)).is_ok());
        assert!(may(Some(1000), Some(1)).is_ok());
        assert!(may(Some(1001), Some(44)).is_ok());
        let denied = may(Some(1001), Some(45)).unwrap_err().message;
        assert!(denied.contains("that ibmgrd was started with"), "{denied}");
        assert!(may(None, None).is_err());
    }
}
