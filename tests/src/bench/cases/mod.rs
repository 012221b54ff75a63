// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of cases.

mod apply;
mod boot;
mod cm;
mod daemon;
mod gro;
mod gso;
mod http;
mod ibctl;
mod icount;
mod lab;
mod matrix;
mod plan;
mod rr;
mod stock;

use super::Case;

/// Every case, in the order in which they are measured. A new case adds its line here.
pub(super) const ALL: &[Case] = &[
    lab::CASE,
    stock::CASE,
    gso::CASE,
    icount::CASE,
    rr::CASE,
    gro::CASE,
    cm::CASE,
    matrix::CASE,
    ibctl::CASE,
    plan::CASE,
    apply::CASE,
    daemon::DRIFT,
    daemon::DAEMON,
    http::HTTP,
    http::EVENTS,
    boot::CASE,
];
