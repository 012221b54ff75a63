// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of interfaces.

use ibmgr_api::{Knob, LinkName};

/// Something that happened to interfaces. One whose name `LinkName` does not take has no events.
#[derive(Clone, Debug)]
pub enum Event {
    /// An interface appeared: new, moved in from another namespace, or under a name that can be used.
    Created {
        /// Its index.
        index: u32,
        /// Its name.
        name: LinkName,
    },
    /// An interface disappeared.
    Removed {
        /// The index that it had.
        index: u32,
        /// The name that it had.
        name: LinkName,
    },
    /// An interface got another name.
    Renamed {
        /// Its index.
        index: u32,
        /// The name before.
        from: LinkName,
        /// The name now.
        to: LinkName,
    },
    /// Something of an interface changed, or may have.
    Changed {
        /// Its index.
        index: u32,
        /// Its name.
        name: LinkName,
        /// Rows of the registry that may have another value or other bounds now, in its order.
        knobs: Vec<&'static Knob>,
        /// Whether what it can be matched by changed: address, P_Key, kind, parent or other names.
        identity: bool,
        /// Whether the carrier came or went; a datagram MTU depends on the join that brings it.
        carrier: bool,
    },
    /// Notifications were lost. Observe all interfaces: events that follow at once tell only of those
    /// that came, went or were renamed meanwhile, not of every changed knob.
    Resync {
        /// How they were lost.
        why: Why,
    },
}

/// How notifications were lost.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Why {
    /// More came than the socket's buffer holds (`ENOBUFS`).
    #[error("more notifications came than the socket's buffer holds")]
    Overrun,
    /// One could not be read.
    #[error("a notification could not be read: {0}")]
    Malformed(String),
}
