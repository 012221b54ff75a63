// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entry of `ibctl`: this network namespace's kernel, standard output and standard error.
fn main() {}
