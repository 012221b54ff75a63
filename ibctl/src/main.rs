// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entry of `ibctl`: the kernel of this network namespace, standard output and standard error.

use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use ibctl::Environment;
use ibmgrd_engine::PortError;
use ibmgrd_hw::port::KernelPort;

/// One for all network namespaces: a set takes milliseconds.
const LOCK: &str = "/run/ibmgr/lock";

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let environment = Environment {
        open: &|| Ok::<_, PortError>(KernelPort::new()),
        lock: Some(Path::new(LOCK)),
        stdout: &mut BufWriter::with_capacity(32 * 1024, io::stdout().lock()),
        stderr: &mut io::stderr().lock(),
    };
    ExitCode::from(ibctl::run(&args, environment))
}
