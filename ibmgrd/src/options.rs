// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of the daemon.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use ibmgrd_state::ROOT;
use nix::unistd::{Group, User};

use crate::files::KEPT;
use crate::http::TcpOptions;
use crate::office::Access;
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

    /// Folder for what the files said when they were last right, which outlives a reboot
    #[arg(long, value_name = "DIR", default_value = KEPT)]
    pub keep_dir: PathBuf,

    /// File that keeps other programs of ibmgr from setting anything meanwhile
    #[arg(long, value_name = "PATH", default_value = "/run/ibmgr/lock")]
    pub lock: PathBuf,

    /// Time between two polls of values that the kernel sends no notification of
    #[arg(long, value_name = "SECONDS", default_value_t = POLL.as_secs_f64(), value_parser = seconds)]
    pub poll: f64,

    /// User who may change something over the socket, besides root: a name or a number; may be given
    /// several times
    #[arg(long = "change-user", value_name = "USER", value_parser = user)]
    pub users: Vec<u32>,

    /// Group whose members may, too
    #[arg(long = "change-group", value_name = "GROUP", value_parser = group)]
    pub groups: Vec<u32>,

    /// Answer on the system bus, too, as org.ibmgr1
    #[arg(long)]
    pub dbus: bool,

    /// Where to answer over TLS.
    #[command(flatten)]
    pub tcp: TcpOptions,

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

fn user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match User::from_name(text) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err("there is no such user".to_owned()),
        Err(error) => Err(format!("the user database can't be read: {error}")),
    }
}

fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("there is no such group".to_owned()),
        Err(error) => Err(format!("the user database can't be read: {error}")),
    }
}

impl Options {
    /// Returns who may change something over the socket.
    #[must_use]
    pub fn access(&self) -> Access {
        Access {
            users: self.users.clone(),
            groups: self.groups.clone(),
        }
    }

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
        let words = ["ibmgrd", "--change-user", "root", "--change-group", "44"];
        let access = Options::try_parse_from(words).unwrap().access();
        assert_eq!((access.users, access.groups), (vec![0], vec![44]));
        assert!(Options::try_parse_from(["ibmgrd", "--change-user", "no such user"]).is_err());
    }
}
