// SPDX-License-Identifier: Apache-2.0 OR MIT
//! House rules that no compiler or linter checks: `docs/CONVENTIONS.md`, as far as a program can tell.
//!
//! Each module holds pure checkers over paths and texts, with samples that they must refuse; the tests
//! below run them over the tree. What the tree holds is found on disk, less what `.gitignore` names:
//! the outcome does not depend on what is committed.

mod edges;
mod manifests;
mod markdown;
mod placement;
mod problem;
mod rust;
mod spdx;
mod text;
mod tree;

use anyhow::Result;

use problem::refuse;
use tree::Tree;

#[test]
fn each_file_names_its_licence() -> Result<()> {
    refuse(Tree::read()?.each(spdx::check))
}

#[test]
fn each_package_names_its_licence() -> Result<()> {
    refuse(Tree::read()?.each(spdx::check_manifest))
}

#[test]
fn texts_are_clean() -> Result<()> {
    refuse(Tree::read()?.each(text::check))
}

#[test]
fn files_are_short() -> Result<()> {
    refuse(text::check_sizes(&Tree::read()?))
}

#[test]
fn rust_follows_the_house_rules() -> Result<()> {
    refuse(Tree::read()?.each(rust::check))
}

#[test]
fn unsafe_stays_where_it_is_listed() -> Result<()> {
    refuse(rust::check_unsafe(&Tree::read()?))
}

#[test]
fn the_driver_core_stands_alone() -> Result<()> {
    refuse(rust::check_core(&Tree::read()?))
}

#[test]
fn files_lie_where_a_reader_looks() -> Result<()> {
    refuse(placement::check(&Tree::read()?))
}

#[test]
fn manifests_share_lints_and_versions() -> Result<()> {
    refuse(manifests::check(&Tree::read()?))
}

#[test]
fn packages_depend_on_what_they_may() -> Result<()> {
    refuse(edges::check(&edges::metadata()?))
}

#[test]
fn documents_are_linked_and_links_lead_somewhere() -> Result<()> {
    refuse(markdown::check(&Tree::read()?))
}
