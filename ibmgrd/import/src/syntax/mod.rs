// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The texts that formats are written in, with the line of everything.

pub(crate) mod ini;
pub(crate) mod shell;
pub(crate) mod xml;
pub(crate) mod yaml;

/// Deepest nesting that is read. Real files have less than ten.
const DEEPEST: usize = 64;

/// Most nodes that are read from one file; aliases of YAML count as what they stand for.
const MOST_NODES: usize = 100_000;
