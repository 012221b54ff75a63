// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The virtual HCA itself: verbs by the book, and every fault under IPoIB traffic.

mod faults;
mod verbs;

use crate::guest::task::Task;

/// The tests, one table per file.
pub const TABLES: &[&[Task]] = &[verbs::TESTS, faults::TESTS];
