// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads other tools' configuration of IPoIB interfaces and turns it into rules of ours.
//!
//! [`import`] takes texts and returns [`Desired`](ibmgr_api::Desired) with a [`Note`] for each setting:
//! carried, carried with a change of meaning, not carried and why, or left to the tool that owns it.
//! Nothing is evaluated, no file is opened, and what a text holds can't make it panic or run for ever.
//!
//! Each format has a table of [`Row`]s that says what its keys become. The reader of the format looks
//! keys up in it, and docs/import.md is written from it.

mod assemble;
mod ethtool;
mod format;
mod found;
mod note;
mod rows;
mod spelling;
mod syntax;

pub use format::{Format, Import, ImportError, Options, Source, import};
pub use note::{Note, Outcome, Place};
pub use rows::{Row, Table};
