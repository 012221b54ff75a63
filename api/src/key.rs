// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of knobs.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::channel::{Carrier, napi_number};
use crate::error::ErrorCode;
use crate::nearest::nearest;
use crate::registry::{self, Knob};

/// The name of one knob: a row of the registry, and for an open family such as `feature.NAME` the
/// member that the device defines.
#[derive(Clone, Debug)]
pub struct Key {
    knob: &'static Knob,
    member: Option<Box<str>>,
}

/// Why a text names no knob.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The registry has no such row.
    #[error("no knob is called '{name}'{}", suggestions(.nearest))]
    Unknown {
        /// What was given.
        name: String,
        /// Names that look like it.
        nearest: Vec<String>,
    },
    /// A family without its member, or a member that no device can have.
    #[error("'{name}' is not complete: write {family}.NAME, with a name that the device lists")]
    Member {
        /// What was given.
        name: String,
        /// The family's name.
        family: &'static str,
    },
}

impl KeyError {
    /// Returns the error's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } | Self::Member { .. } => ErrorCode::UnknownKnob,
        }
    }
}

fn suggestions(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "; 'ibctl explain' lists them".to_owned()
    } else {
        format!("; did you mean {}?", nearest.join(" or "))
    }
}

/// The member of a family of queues that is all of them.
const ALL: &str = "all";

/// Longest member: `ETH_GSTRING_LEN` (include/uapi/linux/ethtool.h) less the terminator.
const MEMBER_MAX: usize = 31;

impl Key {
    /// Returns the key of a closed row.
    ///
    /// # Errors
    ///
    /// The row is a family, or there is none.
    pub fn named(name: &str) -> Result<Self, KeyError> {
        name.parse()
    }

    /// Returns the key of a row that is not a family.
    #[must_use]
    pub const fn of(knob: &'static Knob) -> Self {
        Self { knob, member: None }
    }

    /// Returns the key of one member of a family.
    ///
    /// # Errors
    ///
    /// The row is no family, or `member` is empty, over 31 bytes, not printable, or no queue where the
    /// members are queues.
    pub fn member_of(knob: &'static Knob, member: &str) -> Result<Self, KeyError> {
        let printable = member
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'=');
        let fits = knob.carriers.iter().all(|carrier| match carrier {
            Carrier::Queue(field) => member == ALL || field.queue(member).is_some(),
            Carrier::OneNapi(_) => napi_number(member).is_some(),
            _ => true,
        });
        if knob.is_family && printable && fits && (1..=MEMBER_MAX).contains(&member.len()) {
            Ok(Self {
                knob,
                member: Some(member.into()),
            })
        } else {
            Err(KeyError::Member {
                name: format!("{}.{member}", knob.name),
                family: knob.name,
            })
        }
    }

    /// Returns the registry row.
    #[must_use]
    pub const fn knob(&self) -> &'static Knob {
        self.knob
    }

    /// Returns the member of a family, such as `rx-gro` of `feature.rx-gro`.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Says whether it is `all` queues of a family.
    #[must_use]
    pub fn is_all(&self) -> bool {
        let of_queues = |carrier: &Carrier| matches!(carrier, Carrier::Queue(_));
        self.member() == Some(ALL) && self.knob.carriers.iter().any(of_queues)
    }

    /// Returns the family whose members are the parts of what this key sets as a whole: of `all` queues
    /// their own family, and of a knob that every NAPI instance has the family of single instances.
    #[must_use]
    pub fn parts(&self) -> Option<&'static Knob> {
        if self.is_all() {
            return Some(self.knob);
        }
        self.knob.parts.and_then(registry::find)
    }

    fn order(&self) -> (&'static str, Option<&str>) {
        (self.knob.name, self.member())
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        if let Some(knob) = registry::find(name) {
            return if knob.is_family {
                Err(KeyError::Member {
                    name: name.to_owned(),
                    family: knob.name,
                })
            } else {
                Ok(Self::of(knob))
            };
        }
        if let Some((family, member)) = name.split_once('.')
            && let Some(knob) = registry::find(family).filter(|knob| knob.is_family)
        {
            return Self::member_of(knob, member);
        }
        Err(KeyError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, registry::knobs().map(|knob| knob.name)),
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(member) => f.pad(&format!("{}.{member}", self.knob.name)),
            None => f.pad(self.knob.name),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.order().hash(state);
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_to_itself() {
        for knob in registry::knobs().filter(|knob| !knob.is_family) {
            assert_eq!(knob.name.parse::<Key>().unwrap().to_string(), knob.name);
        }
    }

    #[test]
    fn members_of_families_keep_their_name() {
        let key: Key = "feature.rx-gro".parse().unwrap();
        assert_eq!(key.knob().name, "feature");
        assert_eq!(key.member(), Some("rx-gro"));
        assert_eq!(key.to_string(), "feature.rx-gro");
        for name in ["feature", "feature.", "private-flag.a b", "feature.a=b"] {
            assert!(
                matches!(name.parse::<Key>(), Err(KeyError::Member { .. })),
                "{name}"
            );
        }
        for (name, is_one) in [
            ("rps-cpus.rx-0", true),
            ("xps-cpus.tx-12", true),
            ("rps-cpus.tx-0", false),
            ("rps-cpus.0", false),
            ("rps-cpus.rx-", false),
            ("rps-cpus.rx-01", false),
            ("rps-cpus.rx-../x", false),
            ("rps-cpus.all", true),
            ("rps-cpus.none", false),
            ("gro-flush-timeout-of.napi-0", true),
            ("gro-flush-timeout-of.0", false),
            ("gro-flush-timeout-of.all", false),
        ] {
            assert_eq!(name.parse::<Key>().is_ok(), is_one, "{name}");
        }
        let long = format!("feature.{}", "x".repeat(32));
        assert!(long.parse::<Key>().is_err());
    }

    #[test]
    fn wholes_know_their_parts() {
        let parts = |name: &str| name.parse::<Key>().unwrap().parts().map(|knob| knob.name);
        assert_eq!(parts("rps-cpus.all"), Some("rps-cpus"));
        assert_eq!(parts("rps-cpus.rx-0"), None);
        assert_eq!(parts("gro-flush-timeout"), Some("gro-flush-timeout-of"));
        assert_eq!(parts("gro-flush-timeout-of.napi-0"), None);
        assert_eq!(parts("feature.all"), None);
        assert_eq!(parts("mtu"), None);
    }

    #[test]
    fn unknown_names_suggest() {
        let error = "batchin".parse::<Key>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no knob is called 'batchin'; did you mean batching or batch-limit?"
        );
        assert!("mtu.rx".parse::<Key>().is_err());
        assert!("".parse::<Key>().is_err());
    }
}
