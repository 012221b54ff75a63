// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of the daemon.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use ibmgrd_state::ROOT;

use crate::supervisor::POLL;

/// Keeps network interfaces at their declared settings
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ibmgrd",
    version,
    after_help = "\
Signals: HUP reads the declarations again, TERM and INT end the daemon.
The interfaces stay as they are when it ends."
)]
pub struct Options {
    /// Folder with declarations, instead of the usual three; may be given several times, the one
    /// that counts least first
    #[arg(long = "config-dir", value_name = "DIR")]
    pub folders: Vec<PathBuf>,

    /// Socket to listen on
    #[arg(long, value_name = "PATH", default_value = "/run/ibmgr/http.sock")]
    pub socket: PathBuf,

    /// Folder for the journal and for changes that wait to be confirmed
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    pub state_dir: PathBuf,

    /// File that keeps other programs of ibmgr from setting anything meanwhile
    #[arg(long, value_name = "PATH", default_value = "/run/ibmgr/lock")]
    pub lock: PathBuf,

    /// Time between two polls of values that the kernel sends no notification of
    #[arg(long, value_name = "SECONDS", default_value_t = POLL.as_secs_f64(), value_parser = seconds)]
    pub poll: f64,

    /// Log each notification, too
    #[arg(long)]
    pub verbose: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86400.0).contains(&seconds) => Ok(seconds),
        _ => Err("write a number of seconds from 0.01 to 86400".to_owned()),
    }
}

impl Options {
    /// Returns the time between two polls.
    #[must_use]
    pub fn poll_interval(&self) -> Duration {
        Duration::from_secs_f64(self.poll)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        assert!(Options::try_parse_from(["ibmgrd", "--poll", "0"]).is_err());
        assert!(Options::try_parse_from(["ibmgrd", "--poll", "nan"]).is_err());
        let options = Options::try_parse_from(["ibmgrd"]).unwrap();
        assert_eq!(options.poll_interval(), POLL);
    }
}
