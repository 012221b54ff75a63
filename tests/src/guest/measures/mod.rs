// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `cargo lab bench` runs in a machine. A measure reports figures;
//! the case in `bench/` that runs it turns them into bars.

pub mod batch;
pub mod lab;
pub mod stock;

use super::task::Task;

/// Tables of measures, one per area. A new area adds its table here.
pub const MEASURES: &[&[Task]] = &[
    lab::MEASURES,
    stock::MEASURES,
    batch::cm::MEASURES,
    batch::gro::MEASURES,
    batch::gso::MEASURES,
    batch::icount::MEASURES,
    batch::rr::MEASURES,
    batch::matrix::MEASURES,
];
