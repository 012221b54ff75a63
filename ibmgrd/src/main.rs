// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entry of `ibmgrd`.

use std::process::ExitCode;

use clap::Parser;
use ibmgrd::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    ibmgrd::log::start(options.verbose);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no event loop");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(ibmgrd::daemon::run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(cause, "{error}");
            ExitCode::from(error.code().exit_status())
        }
    }
}
