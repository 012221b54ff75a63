// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which interfaces a rule is for.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::link::{Guid, Link};
use crate::pkey::Pkey;

/// A pattern for names and paths, as in glob(7): `*` is any text, `/` included; `?` one character;
/// `[ab]`, `[a-z]` one of a set; `[!ab]` one that is not in it. `[*]` is a star.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Glob {
    text: Box<str>,
    parts: Box<[Part]>,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Part {
    Any,
    One,
    Is(char),
    Set {
        is_negated: bool,
        ranges: Box<[(char, char)]>,
    },
}

/// Why a text is no pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// Nothing was given.
    #[error("an empty pattern matches nothing; leave the condition out, or write '*' for any")]
    Empty,
    /// `[` without its `]`.
    #[error("'{0}' has a '[' without a ']'; '[[]' matches the bracket itself")]
    Open(String),
    /// A range whose end comes before its start.
    #[error("'{0}' has the range '{1}-{2}', which is empty")]
    Backwards(String, char, char),
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let part = match c {
                '*' if parts.last() == Some(&Part::Any) => continue,
                '*' => Part::Any,
                '?' => Part::One,
                '[' => {
                    let (part, rest) = set(text, chars.as_str())?;
                    chars = rest.chars();
                    part
                }
                c => Part::Is(c),
            };
            parts.push(part);
        }
        Ok(Self {
            text: text.into(),
            parts: parts.into(),
        })
    }
}

/// Reads a set after its `[`; returns it with what follows its `]`.
fn set<'a>(text: &str, after: &'a str) -> Result<(Part, &'a str), GlobError> {
    let negated = after.strip_prefix('!');
    let inner = negated.unwrap_or(after);
    // A `]` that comes first is a member.
    let first = inner.chars().next().map_or(0, char::len_utf8);
    let end = inner
        .get(first..)
        .and_then(|rest| rest.find(']'))
        .ok_or_else(|| GlobError::Open(text.to_owned()))?
        + first;
    let mut members = inner[..end].chars().peekable();
    let mut ranges = Vec::new();
    while let Some(from) = members.next() {
        let mut ahead = members.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if from <= to => {
                ranges.push((from, to));
                members = ahead;
            }
            (Some('-'), Some(to)) => {
                return Err(GlobError::Backwards(text.to_owned(), from, to));
            }
            _ => ranges.push((from, from)),
        }
    }
    let part = match ranges[..] {
        // So that a pattern equals the one that `Glob::literal` makes.
        [(from, to)] if from == to && negated.is_none() => Part::Is(from),
        _ => Part::Set {
            is_negated: negated.is_some(),
            ranges: ranges.into(),
        },
    };
    Ok((part, &inner[end + 1..]))
}

impl Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Is(is) => *is == c,
            Self::Set { is_negated, ranges } => {
                let is_member = ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                is_member != *is_negated
            }
        }
    }
}

impl Glob {
    /// Returns the pattern that only `text` itself matches.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        let parts: Vec<Part> = text.chars().map(Part::Is).collect();
        // Brackets around what would be a pattern.
        let mut written = String::with_capacity(text.len());
        for c in text.chars() {
            if matches!(c, '*' | '?' | '[') {
                written.extend(['[', c, ']']);
            } else {
                written.push(c);
            }
        }
        Self {
            text: written.into(),
            parts: parts.into(),
        }
    }

    /// Says whether the whole of `text` has this pattern.
    ///
    /// Takes time in proportion to the product of both lengths at most.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        let mut parts = 0;
        let mut rest = text.chars();
        // Where to go on when what follows the last star does not fit.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            if self.parts.get(parts) == Some(&Part::Any) {
                parts += 1;
                retry = Some((parts, rest.clone()));
                continue;
            }
            let mut ahead = rest.clone();
            match (self.parts.get(parts), ahead.next()) {
                (None, None) => return true,
                (Some(part), Some(c)) if part.takes(c) => {
                    parts += 1;
                    rest = ahead;
                }
                _ => {
                    let Some((after, mut from)) = retry else {
                        return false;
                    };
                    if from.next().is_none() {
                        return false;
                    }
                    parts = after;
                    rest = from.clone();
                    retry = Some((after, from));
                }
            }
        }
    }

    /// Returns the pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Conditions on an interface: all that are given must hold, and of each at least one alternative.
///
/// Without any condition it matches nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Match {
    /// Name, or an alternative name.
    pub name: Vec<Glob>,
    /// Driver, as ethtool names it.
    pub driver: Vec<Glob>,
    /// Path of the device below `/sys`, such as `/devices/pci0000:00/0000:03:00.0`.
    pub path: Vec<Glob>,
    /// Port GUID. A bond above the port has it, too, and does not match. Children have it as well: they
    /// match only when a P_Key, a parent or `is_child` is asked for besides.
    pub guid: Vec<Guid>,
    /// Partition, compared without the full-member bit: the kernel sets that bit in every interface.
    pub pkey: Vec<Pkey>,
    /// Name of the interface below.
    pub parent: Vec<Glob>,
    /// rtnl kind, such as `ipoib` or `veth`.
    pub kind: Vec<Glob>,
    /// Whether it is a P_Key child.
    pub is_child: Option<bool>,
}

impl Match {
    /// Says whether there is no condition at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says whether the rule is for `link`.
    #[must_use]
    pub fn takes(&self, link: &Link) -> bool {
        let any = |globs: &[Glob], text: Option<&str>| {
            globs.is_empty()
                || text.is_some_and(|text| globs.iter().any(|glob| glob.is_match(text)))
        };
        !self.is_empty()
            && self.takes_name(link)
            && any(&self.driver, link.driver.as_deref())
            && any(&self.path, link.device_path.as_deref())
            && any(&self.kind, link.kind.as_deref())
            && any(
                &self.parent,
                link.parent_name.as_ref().map(|name| name.as_str()),
            )
            && self
                .is_child
                .is_none_or(|is_child| is_child == link.is_child())
            && self.takes_port(link)
    }

    fn takes_name(&self, link: &Link) -> bool {
        let is_one = |glob: &Glob| {
            glob.is_match(link.name.as_str())
                || link.alt_names.iter().any(|name| glob.is_match(name))
        };
        self.name.is_empty() || self.name.iter().any(is_one)
    }

    fn takes_port(&self, link: &Link) -> bool {
        let partition = link.pkey.map(Pkey::partition);
        if !self.pkey.is_empty()
            && !self
                .pkey
                .iter()
                .any(|pkey| Some(pkey.partition()) == partition)
        {
            return false;
        }
        if self.guid.is_empty() {
            return true;
        }
        let asks_for_children =
            !self.pkey.is_empty() || !self.parent.is_empty() || self.is_child.is_some();
        // Only an interface of the port itself has a P_Key; a bond above it has the address alone.
        link.pkey.is_some()
            && link.guid().is_some_and(|guid| self.guid.contains(&guid))
            && (asks_for_children || !link.is_child())
    }
}

#[cfg(test)]
mod tests;
