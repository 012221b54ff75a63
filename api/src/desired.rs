// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What files and requests declare: ordered rules, each with the interfaces that it is for, the values
//! that they shall have, and the P_Key children that shall be there.
//!
//! Defaults and profiles are already part of each rule here. A later rule wins over an earlier one, knob
//! by knob.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::key::Key;
use crate::link::LinkName;
use crate::matching::Match;
use crate::pkey::Pkey;
use crate::value::Value;

/// Where something was declared.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// Path of the file, or what else declared it, such as `command line`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Arc<str>,
    /// Line, from 1; 0 when it is no text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// Column in characters, from 1; 0 when it is no text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub column: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Origin {
    /// Returns the origin of what stands in no text.
    #[must_use]
    pub fn whole(file: &str) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.pad(&self.file);
        }
        f.pad(&format!("{}:{}:{}", self.file, self.line, self.column))
    }
}

/// What happens when somebody else changes a declared value. `apply` sets it whatever the policy.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// It is set again.
    #[default]
    Heal,
    /// It is reported and left as it is.
    Report,
    /// It is neither set nor reported.
    Ignore,
}

impl Policy {
    /// Every policy, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Heal, Self::Report, Self::Ignore];

    /// Returns the word in files and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heal => "heal",
            Self::Report => "report",
            Self::Ignore => "ignore",
        }
    }

    /// Returns the policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A declared value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Declared {
    /// The value; a set of CPUs may still be `local`.
    pub value: Value,
    /// What happens on drift.
    pub policy: Policy,
    /// Where it stands.
    pub origin: Origin,
}

/// How a P_Key child is made, which decides how it can be removed.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ChildKind {
    /// `RTM_NEWLINK` with kind `ipoib`, as `ip link add` does.
    Netlink,
    /// The parent's sysfs file `create_child`; `delete_child` removes it.
    Legacy,
}

impl ChildKind {
    /// Both kinds, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Netlink, Self::Legacy];

    /// Returns the word in files and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Netlink => "netlink",
            Self::Legacy => "legacy",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Serialize for ChildKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A P_Key child that shall, or shall not, be there.
///
/// Its identity below one parent is the partition (the P_Key without its full-member bit) together with
/// the declared name: without a name, any child of that partition is it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Child {
    /// P_Key as declared. The kernel sets the full-member bit whether it stands here or not.
    pub pkey: Pkey,
    /// How it shall be made; `None` takes either kind, and makes a missing one through netlink.
    pub kind: Option<ChildKind>,
    /// Its name; `None` takes any, and lets the kernel's pattern name a missing one.
    pub name: Option<LinkName>,
    /// Whether it shall be there.
    pub is_present: bool,
    /// What happens when somebody else adds or removes it.
    pub policy: Policy,
    /// Where it stands.
    pub origin: Origin,
    /// Its own values.
    pub settings: BTreeMap<Key, Declared>,
}

impl Child {
    /// Returns the name that the kernel gives a child of `parent` made through `create_child`: at most
    /// 10 bytes of the parent's name and the P_Key as it was given
    /// (drivers/infiniband/ulp/ipoib/ipoib_vlan.c).
    #[must_use]
    pub fn name_below(&self, parent: &LinkName) -> String {
        if let Some(name) = &self.name {
            return name.to_string();
        }
        let parent = parent.as_str();
        let end = (0..=parent.len().min(10))
            .rev()
            .find(|at| parent.is_char_boundary(*at))
            .unwrap_or(0);
        format!("{}.{:04x}", &parent[..end], self.pkey.raw())
    }
}

/// Values and children for the interfaces that a match picks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    /// Where it begins.
    pub origin: Origin,
    /// Which interfaces it is for.
    pub matches: Match,
    /// Values by knob.
    pub settings: BTreeMap<Key, Declared>,
    /// P_Key children of each of these interfaces.
    pub children: Vec<Child>,
}

/// All that is declared, in ascending precedence.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Desired {
    /// Rules; a later one wins.
    pub rules: Vec<Rule>,
}

impl Desired {
    /// Appends the rules of `other`, which win over those before.
    pub fn extend(&mut self, other: Self) {
        self.rules.extend(other.rules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(pkey: u16, name: Option<&str>) -> Child {
        Child {
            pkey: Pkey::new(pkey).unwrap(),
            kind: None,
            name: name.map(|name| name.parse().unwrap()),
            is_present: true,
            policy: Policy::Heal,
            origin: Origin::whole("test"),
            settings: BTreeMap::new(),
        }
    }

    #[test]
    fn children_are_named_as_the_kernel_names_them() {
        let below = |child: Child, parent: &str| child.name_below(&parent.parse().unwrap());
        assert_eq!(below(child(0x8001, None), "ib0"), "ib0.8001");
        // The full-member bit is not added to the name (NetworkManager's ib0.000a carries 0x800a).
        assert_eq!(below(child(0x000a, None), "ib0"), "ib0.000a");
        assert_eq!(
            below(child(0x8001, None), "ibp129s0f1np1"),
            "ibp129s0f1.8001"
        );
        assert_eq!(below(child(0x8001, Some("storage")), "ib0"), "storage");
        assert_eq!(
            below(child(1, None), "ib\u{fc}ber\u{fc}ber"),
            "ib\u{fc}ber\u{fc}b.0001"
        );
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for policy in Policy::ALL {
            assert_eq!(Policy::named(policy.name()), Some(policy));
        }
        for kind in ChildKind::ALL {
            assert_eq!(ChildKind::named(kind.name()), Some(kind));
        }
        assert_eq!(Policy::named("Heal"), None);
    }

    #[test]
    fn origins_print_as_compilers_do() {
        let origin = Origin {
            file: "/etc/ibmgr/conf.d/10-rail.toml".into(),
            line: 3,
            column: 7,
        };
        assert_eq!(origin.to_string(), "/etc/ibmgr/conf.d/10-rail.toml:3:7");
        assert_eq!(Origin::whole("command line").to_string(), "command line");
    }
}
