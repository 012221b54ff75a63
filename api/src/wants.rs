// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the declarations mean for the interfaces that are there.

use std::collections::BTreeMap;

use crate::desired::{ChildKind, Declared, Origin, Policy};
use crate::key::Key;
use crate::link::LinkName;
use crate::pkey::Pkey;
use crate::plan::Assignment;

/// The declaration of a knob that counts, and those that it overrides.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Want {
    /// The last declaration.
    pub declared: Declared,
    /// Earlier ones, in their order.
    pub overridden: Vec<Declared>,
}

/// What one interface shall be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkWants {
    /// Its name when it was observed.
    pub link: LinkName,
    /// Its kernel index.
    pub index: u32,
    /// Values by knob.
    pub settings: BTreeMap<Key, Want>,
    /// P_Key children, by partition and name. Never of an interface that is a child itself.
    pub children: Vec<ChildWants>,
}

/// A declared P_Key child of one interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChildWants {
    /// P_Key as declared.
    pub pkey: Pkey,
    /// How it shall be made; `None` takes either kind.
    pub kind: Option<ChildKind>,
    /// Its declared name.
    pub name: Option<LinkName>,
    /// The name that a missing one gets: the declared one, or the kernel's pattern. `None` when that
    /// pattern makes no name that the kernel takes.
    pub name_to_be: Option<LinkName>,
    /// Whether it shall be there.
    pub is_present: bool,
    /// What happens on drift.
    pub policy: Policy,
    /// The declaration that counts.
    pub origin: Origin,
    /// Earlier declarations of the same child.
    pub overridden: Vec<Origin>,
    /// Names and indices of the interfaces that are this child, by index. Without a declared name there
    /// may be several of one partition.
    pub present: Vec<(LinkName, u32)>,
    /// Values that a missing one gets once it is there; those of a present one are in its own
    /// [`LinkWants`].
    pub settings: BTreeMap<Key, Want>,
}

impl LinkWants {
    /// Returns the wanted values.
    #[must_use]
    pub fn assignments(&self) -> Vec<Assignment> {
        assignments(&self.settings)
    }
}

impl ChildWants {
    /// Returns the values that a missing child gets.
    #[must_use]
    pub fn assignments(&self) -> Vec<Assignment> {
        assignments(&self.settings)
    }
}

fn assignments(settings: &BTreeMap<Key, Want>) -> Vec<Assignment> {
    let assignment = |(key, want): (&Key, &Want)| Assignment {
        key: key.clone(),
        value: want.declared.value.clone(),
    };
    settings.iter().map(assignment).collect()
}
