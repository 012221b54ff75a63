// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of knobs.

use crate::domain::Domain;

/// A value in the form that the kernel keeps: parse and print it through its knob's [`Domain`].
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Value {
    /// A number, a choice's kernel number, or a time in nanoseconds.
    Number(u64),
    /// Free text.
    Text(String),
}

impl Value {
    /// Returns the number, or `None` for text.
    #[must_use]
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    /// Returns the value as `domain` writes it, such as `20us`, `on` or `2044`.
    #[must_use]
    pub fn show(&self, domain: &Domain) -> String {
        domain.show(self)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(u64::from(number))
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Number(u64::from(on))
    }
}
