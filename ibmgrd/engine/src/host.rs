// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the engine needs from a kernel beyond single interfaces: P_Key children.

use ibmgr_api::{ChildKind, LinkName, Pkey};

use crate::port::{Port, PortError, Target};

/// A P_Key child to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewChild {
    /// The interface that it belongs to.
    pub parent: Target,
    /// Its name.
    pub name: LinkName,
    /// Its P_Key. The drivers store it with the full-member bit set, whatever is asked for:
    /// whether the port is a full or a limited member is in the port's own table.
    pub pkey: Pkey,
    /// How to make it.
    pub kind: ChildKind,
}

/// A P_Key child to remove.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OldChild {
    /// The child.
    pub child: Target,
    /// The interface that it belongs to; asked by name only for [`ChildKind::Legacy`].
    pub parent: Target,
    /// Its P_Key, as the driver tells it.
    pub pkey: Pkey,
    /// How to remove it: over rtnetlink for both kinds of child, or through the parent's file
    /// `delete_child`, which knows legacy children only.
    pub via: ChildKind,
}

/// Makes and removes P_Key children, and reads and writes interfaces, of one network namespace.
pub trait Host: Port {
    /// Makes a child. Success says that the kernel took the request; observe to see the child.
    ///
    /// The mode is left at the driver's default: a child that is asked for with a mode is lost when
    /// in-tree ib_ipoib says `EBUSY` to a mode change that it made
    /// (drivers/infiniband/ulp/ipoib/ipoib_netlink.c).
    ///
    /// # Errors
    ///
    /// [`PortError::ChildRefused`] with what the kernel said, or [`PortError::Gone`] for the parent.
    fn create_child(&mut self, child: &NewChild) -> Result<(), PortError>;

    /// Removes a child, and returns when it is gone: through `delete_child` the kernel removes it later.
    ///
    /// # Errors
    ///
    /// [`PortError::ChildRefused`] with what the kernel said, or [`PortError::Gone`] when it, or its
    /// parent, is not what it was.
    fn delete_child(&mut self, child: &OldChild) -> Result<(), PortError>;
}
