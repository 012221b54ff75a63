// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry: one row per knob.
//!
//! Parsing, units, kernel interfaces, planner order, help, completion and reference pages all derive
//! from these rows. To add a knob, add its row and, if its field is new, the codec arm in `ibmgrd-hw`.

mod driver;
mod ethtool;
mod ipoib;
mod link;
mod napi;
mod queues;

use crate::channel::Carrier;
use crate::domain::Domain;

/// One knob that the system can show, set and verify.
#[derive(Debug)]
pub struct Knob {
    /// Public name, or the family's name. Never renamed.
    pub name: &'static str,
    /// Whether the device defines the members, named `name.MEMBER`.
    pub is_family: bool,
    /// What values there are.
    pub domain: Domain,
    /// Kernel interfaces that carry it, the preferred one first.
    pub carriers: &'static [Carrier],
    /// When a plan with several knobs sets it.
    pub phase: Phase,
    /// What a change does to traffic.
    pub effect: Effect,
    /// Knobs that the kernel changes with this one.
    pub disturbs: &'static [&'static str],
    /// The family that sets the same of single NAPI instances, if there is one.
    pub parts: Option<&'static str>,
    /// Whether a list of interfaces has a column for it.
    pub is_brief: bool,
    /// One line for lists, at most 60 characters.
    pub summary: &'static str,
    /// What an administrator should know before changing it.
    pub details: &'static str,
}

/// When a plan sets a knob: earlier phases change what later ones may take.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// The IPoIB mode: it resets the MTU, features and queues.
    Mode,
    /// Bringing the interface up: the multicast join that follows decides the datagram MTU.
    Up,
    /// Attributes of the link itself.
    Link,
    /// Rings and channels: drivers re-create queues and NAPIs for them.
    Queues,
    /// Coalescing, features and flags.
    Tuning,
    /// Settings of NAPIs, after whatever re-creates NAPIs.
    Napi,
    /// Taking the interface down: last, since some settings are taken only while it is up.
    Down,
}

/// What a change does to traffic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Traffic goes on.
    Live,
    /// Packets under way may be lost, connections survive.
    Pause,
    /// Traffic stops until the opposite is set.
    Stops,
}

impl Effect {
    /// Returns the word in JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Pause => "pause",
            Self::Stops => "stops",
        }
    }

    /// Returns the sentence that help and manuals print.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Live => "Traffic goes on during a change.",
            Self::Pause => "Packets under way may be lost during a change.",
            Self::Stops => "Can stop the interface's traffic.",
        }
    }
}

/// Rows that belong together, under the title that lists give them.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The title, such as `interrupt coalescing`.
    pub title: &'static str,
    /// The rows.
    pub knobs: &'static [Knob],
}

const fn group(title: &'static str, knobs: &'static [Knob]) -> Group {
    Group { title, knobs }
}

/// Every group, in the order of the documentation.
pub static GROUPS: [Group; 8] = [
    group("link", link::KNOBS),
    group("IPoIB", ipoib::KNOBS),
    group("NAPI", napi::KNOBS),
    group("interrupt coalescing", ethtool::COALESCING),
    group("rings and channels", ethtool::QUEUES),
    group("CPUs of queues", queues::KNOBS),
    group("features and flags", ethtool::FLAGS),
    group("batching driver", driver::KNOBS),
];

/// Returns every row, in the order of the documentation.
pub fn knobs() -> impl Iterator<Item = &'static Knob> {
    GROUPS.iter().flat_map(|group| group.knobs)
}

/// Returns the row of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Knob> {
    knobs().find(|knob| knob.name == name)
}

/// A row with the fields that most rows share.
const fn live(
    name: &'static str,
    domain: Domain,
    carriers: &'static [Carrier],
    phase: Phase,
    summary: &'static str,
    details: &'static str,
) -> Knob {
    Knob {
        name,
        is_family: false,
        domain,
        carriers,
        phase,
        effect: Effect::Live,
        disturbs: &[],
        parts: None,
        is_brief: false,
        summary,
        details,
    }
}

#[cfg(test)]
mod tests;
