// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entry of `lab`, on the host and inside the virtual machine.

use std::process::ExitCode;

fn main() -> ExitCode {
    if ib_tests::guest::is_guest() {
        ib_tests::guest::main()
    } else {
        ib_tests::lab::cli::main()
    }
}
