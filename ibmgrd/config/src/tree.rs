// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What TOML and YAML have in common: tables, lists and scalars, each with its place.
//!
//! Scalars are texts here: which type one has, its key decides, and `on` is no boolean by accident.

use crate::text::Spot;

/// Deepest nesting of a file; declarations need five levels.
pub(crate) const DEPTH_MAX: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) spot: Spot,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Nothing at all: YAML's null.
    Nothing,
    Scalar(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) spot: Spot,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the word for messages.
    pub(crate) const fn what(&self) -> &'static str {
        match self.body {
            Body::Nothing => "nothing",
            Body::Scalar(_) => "a value",
            Body::List(_) => "a list",
            Body::Table(_) => "a table",
        }
    }
}
