// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One file as it is written: profiles are names still.

use std::collections::BTreeMap;

use ibmgr_api::{ChildKind, Key, LinkName, Match, Pkey, Policy, Value};

use crate::text::{Spot, Text};

/// A value, and where its name stands.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) policy: Option<Policy>,
    pub(crate) spot: Spot,
}

pub(crate) type Settings = BTreeMap<Key, Setting>;

/// Values, with the policy of those that have none of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) policy: Option<Policy>,
    pub(crate) settings: Settings,
    /// Profiles that come before the own values, in their order.
    pub(crate) profiles: Vec<Use>,
}

/// The name of a profile where it is used.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) spot: Spot,
}

#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) bundle: Bundle,
}

#[derive(Clone, Debug)]
pub(crate) struct LinkRule {
    pub(crate) spot: Spot,
    pub(crate) matches: Match,
    pub(crate) bundle: Bundle,
    pub(crate) children: Vec<ChildRule>,
}

#[derive(Clone, Debug)]
pub(crate) struct ChildRule {
    pub(crate) spot: Spot,
    pub(crate) pkey: Pkey,
    pub(crate) kind: Option<ChildKind>,
    pub(crate) name: Option<LinkName>,
    pub(crate) is_present: bool,
    pub(crate) bundle: Bundle,
}

/// A file without errors of its own.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) text: Text,
    pub(crate) defaults: Option<(Spot, Bundle)>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) rules: Vec<LinkRule>,
}
