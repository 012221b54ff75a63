// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files: from TOML and YAML to [`Desired`](ibmgr_api::Desired), and back.
//!
//! A [`Store`] takes the bytes of all files and returns what they declare together, with a
//! [`Diagnostic`] for everything that is wrong: file, line, column, and what would be right. A broken
//! file never stops the others, and what it said when it was last right counts on. [`read_folders`]
//! and [`load_paths`] find the files; nothing else
//! here reads any. [`to_toml`] writes declarations as a file, [`save`] puts values into one.

mod diagnostic;
mod edit;
mod expand;
mod export;
mod folder;
mod json;
mod model;
mod read;
mod schema;
mod store;
mod text;
mod toml;
mod tree;
mod words;
mod write;
mod yaml;

pub use diagnostic::{Diagnostic, Severity};
pub use edit::save;
pub use export::{Exported, export, exported_to_json, exported_to_toml};
pub use folder::{FOLDERS, Listing, SIZE_MAX, read_file, read_folders};
pub use json::to_json;
pub use schema::schema;
pub use store::{FileState, Loaded, Source, State, Store, load_paths, load_read, read_paths};
pub use write::{match_for, rule_to_toml, to_toml};
