// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole hosts: many interfaces and their P_Key children, planned together and changed together.
//!
//! [`plan_host`] orders what is to be done, [`apply()`] does it with a [`Journal`] kept ahead of each
//! write, and [`recover`] finishes or takes back what a crash has interrupted.

mod apply;
mod children;
mod end;
mod journal;
mod plan;
mod subject;
mod survey;
mod undo;
mod verify;

pub use apply::apply;
pub use journal::{Journal, JournalError, Record, Recovery, Story, recover, roll_back};
pub use plan::{keys_of, plan_declared, plan_host};

use ibmgr_api::{NewChild, OldChild};

use crate::port::{Port, PortError};

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

    /// Waits a little before a value is read once more that is not there yet, and says whether that is
    /// still of use. `attempt` counts from 0 and starts anew for each thing that is waited for.
    ///
    /// Without this the engine takes the first reading as final.
    fn pause(&mut self, attempt: u32) -> bool {
        let _ = attempt;
        false
    }
}
