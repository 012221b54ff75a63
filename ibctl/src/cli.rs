// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: verbs, options and their help.
//!
//! Knobs and their values are plain arguments here: the registry knows them, and no list of them
//! stands in this file. Help texts are at most 80 columns wide as written.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ibmgr_api::{Channel, Domain, DriverChoice, ErrorCode, Unit};

use crate::save;
use ibmgrd_import::Format as Import;

/// Shows, changes and explains the knobs of network interfaces, IPoIB first of all.
#[derive(Debug, Parser)]
#[command(
    name = "ibctl",
    version,
    about = "Show, change and explain the knobs of network interfaces, IPoIB first of all",
    after_help = exit_statuses(),
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,

    /// Form of the output: table (the default) or json
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub output: Format,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// The documented JSON form.
    Json,
}

/// How the daemon is asked, if it is.
#[derive(Clone, Debug, Default, Args)]
pub struct At {
    /// Do it without the daemon
    #[arg(long)]
    pub direct: bool,
    /// Socket of the daemon
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List all interfaces, or show one with every knob
    #[command(after_help = "\
Examples:
  ibctl show
  ibctl show ib0
  ibctl show ib0 -o json")]
    Show {
        /// Interface; without it, a line for each, IPoIB first
        link: Option<String>,
    },

    /// Print the present values of knobs
    #[command(after_help = "\
Examples:
  ibctl get ib0
  ibctl get ib0 mtu mode feature.rx-gro
  ibctl get ib0 gro-flush-timeout --via sysfs
  ibctl get ib0 mtu -o json | jq -r .knobs.mtu.value")]
    Get {
        /// Interface
        link: String,
        /// Knobs to print; without them, all that the interface has
        #[arg(value_name = "KNOB")]
        knobs: Vec<String>,
        /// Read through one kernel interface only
        #[arg(
            long,
            value_name = "CHANNEL",
            value_parser = channels(),
            hide_possible_values = true,
            help = via("Read by this only")
        )]
        via: Option<Channel>,
    },

    /// Change knobs: all of them, verified by reading back, or none
    #[command(after_help = "\
Values have units where they are times or sizes: 20us, 1ms, 2044, 64KiB.
The order of the arguments does not matter: knobs are set in the order that
the kernel needs, and put back when one of them is refused.

Examples:
  ibctl set ib0 batching=on
  ibctl set ib0 mode=connected mtu=65520
  ibctl set ib0 rx-usecs=16us rx-frames=44 --dry-run
  ibctl set ib0 gro-flush-timeout=20us --via sysfs
  ibctl set ib0 feature.rx-gro=on private-flag.tx-batching=off
  ibctl set ib0 alias='storage rail 1' -o json
  ibctl set ib0 mtu=4092 --save")]
    Set {
        /// Interface
        link: String,
        /// What to set; 'ibctl explain' lists the knobs
        #[arg(required = true, value_name = "KNOB=VALUE")]
        assignments: Vec<String>,
        /// Write and read through one kernel interface only
        #[arg(
            long,
            value_name = "CHANNEL",
            value_parser = channels(),
            hide_possible_values = true,
            help = via("Use this only")
        )]
        via: Option<Channel>,
        /// Print the steps in their order, change nothing
        #[arg(long)]
        dry_run: bool,
        /// Declare the values in a file, too
        #[arg(
            long,
            value_name = "FILE",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = save::FILE,
            conflicts_with = "dry_run",
            help = saved()
        )]
        save: Option<PathBuf>,
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Tell what is wrong with configuration files, without the kernel
    #[command(after_help = "\
Everything that is wrong is told at once, with its place and what would be
right. Without files, those of this host are checked.

Examples:
  ibctl check
  ibctl check fabric.toml
  ibctl check /etc/ibmgr/conf.d -o json")]
    Check {
        /// Files, or folders of them
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },

    /// Print the steps to what files declare, change nothing
    #[command(
        visible_alias = "diff",
        after_help = "\
Each step tells the declaration that wants it, and what that one overrides.
Without files, those of this host are taken; later ones win.

Examples:
  ibctl plan
  ibctl plan fabric.toml
  ibctl plan /etc/ibmgr/conf.d extra.yaml -o json"
    )]
    Plan {
        /// Files, or folders of them
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Print the present state as a file that plans to nothing
    #[command(after_help = "\
With -o json the same in JSON, which can be read as a file, too.

Examples:
  ibctl export
  ibctl export ib0 ib1")]
    Export {
        /// Interfaces; without them, all of IPoIB
        #[arg(value_name = "LINK")]
        links: Vec<String>,
    },

    /// Turn other tools' configuration into a file of rules, and report
    #[command(after_help = "\
The rules are TOML, on standard output or in FILE. The report is on standard
error: of each setting what became of it, and why. With -o json, rules and
report are one document. Nothing of the files is run, and nothing is applied.
Of a folder, the files of the format are read.

Examples:
  ibctl import --from ifcfg /etc/sysconfig/network-scripts
  ibctl import --from nm-keyfile ib0.nmconnection --to 50-ib.toml
  ibctl import --from netplan /etc/netplan -o json
  ibctl import --from networkd /etc/systemd/network --all-kinds")]
    Import {
        /// Format of the files
        #[arg(
            long,
            value_name = "FORMAT",
            value_parser = formats(),
            hide_possible_values = true,
            help = formats_help()
        )]
        from: Import,
        /// Files, or folders of them
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Write the rules here; a file that is there stays
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// Replace the file that --to names
        #[arg(long, requires = "to")]
        force: bool,
        /// Take interfaces of every kind, not only InfiniBand
        #[arg(long)]
        all_kinds: bool,
    },

    /// Bring interfaces to what files declare: all of it, or nothing
    #[command(after_help = "\
Folders stand for their .toml and .yaml files. Everything is planned first,
and put back when one thing fails. With --confirm-within it is put back, too,
unless 'ibctl confirm' comes in time: even if this program is gone by then.

Examples:
  ibctl apply fabric.toml
  ibctl apply /etc/ibmgr/conf.d --dry-run
  ibctl apply fabric.toml --confirm-within 60s")]
    Apply {
        /// Files, or folders of them; later ones win
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Put all back unless confirmed within this time
        #[arg(long, value_name = "TIME", value_parser = time)]
        confirm_within: Option<Duration>,
        /// Print the steps in their order, change nothing
        #[arg(long, conflicts_with = "confirm_within")]
        dry_run: bool,
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Keep what 'apply --confirm-within' changed
    Confirm {
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Take back a change that waits to be confirmed, or was interrupted
    Rollback {
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Tell whether a change is pending, how the last one went, what drifts
    #[command(after_help = "\
What is not as declared, the daemon knows: without one, or with --direct, only
the last change is told.

Examples:
  ibctl status
  ibctl status -o json
  ibctl status --direct")]
    Status {
        /// Where the daemon is
        #[command(flatten)]
        at: At,
    },

    /// Print what happens, as the daemon sees it, until it ends
    #[command(after_help = "\
Each change with its interface, knob, old and new value, the reason and where
it is declared. With -o json, one document a line.

Examples:
  ibctl watch
  ibctl watch -o json")]
    Watch {
        /// Socket of the daemon
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },

    /// Waits for a change to be confirmed, and takes it back when it was not
    #[command(hide = true)]
    AwaitConfirmation {
        /// The change
        id: String,
        /// Nanoseconds since boot
        by: u64,
    },

    /// Tell which IPoIB driver owns each port and why, or choose another
    #[command(
        subcommand_required = true,
        disable_help_subcommand = true,
        after_help = "\
'stock' is the kernel's ib_ipoib, 'batch' is ipoib_batch. Where the chosen
one cannot be loaded, the kernel's is: interfaces come up in any case.

Examples:
  ibctl driver status
  ibctl driver status -o json
  ibctl driver use batch
  ibctl driver use batch --now --dry-run
  ibctl driver use stock --now"
    )]
    Driver {
        /// What to do
        #[command(subcommand)]
        what: DriverVerb,
    },

    /// Tell what a knob is, which values it takes and what a change does
    #[command(after_help = "\
Examples:
  ibctl explain
  ibctl explain mode
  ibctl explain gro-flush-timeout ib0
  ibctl explain feature ib0")]
    Explain {
        /// Knob; without it, a line for each
        knob: Option<String>,
        /// Interface: tells its value, its limits and whether it takes the knob
        link: Option<String>,
    },
}

/// What can be done about drivers.
#[derive(Debug, Subcommand)]
pub enum DriverVerb {
    /// List the InfiniBand ports with their drivers, and what is chosen
    Status,
    /// Choose the driver for the next boot, or with --now at once
    Use {
        /// stock or batch
        #[arg(value_parser = drivers(), hide_possible_values = true)]
        driver: DriverChoice,
        /// Switch at once: interfaces go away and come anew
        #[arg(long)]
        now: bool,
        /// Print the steps in their order, change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

fn drivers() -> impl TypedValueParser<Value = DriverChoice> {
    PossibleValuesParser::new(DriverChoice::ALL.map(DriverChoice::name)).map(|name| {
        let is_named = |choice: &DriverChoice| choice.name() == name;
        // The parser before this step admits these names only.
        DriverChoice::ALL
            .into_iter()
            .find(is_named)
            .unwrap_or(DriverChoice::Stock)
    })
}

fn formats() -> impl TypedValueParser<Value = Import> {
    PossibleValuesParser::new(Import::ALL.map(Import::name)).try_map(|name| name.parse::<Import>())
}

fn formats_help() -> String {
    let names = Import::ALL.map(Import::name);
    // In two lines, for narrow terminals.
    let (first, second) = names.split_at(names.len() / 2);
    format!("{},\n{}", first.join(", "), second.join(", "))
}

/// Reads a time of at least a second and at most a day, such as `60s`.
fn time(text: &str) -> Result<Duration, String> {
    const TIME: Domain = Domain::Duration {
        unit: Unit::Nanoseconds,
        max: 24 * 3600 * 1_000_000_000,
    };
    let value = TIME.parse(text).map_err(|error| error.to_string())?;
    let time = Duration::from_nanos(value.number().unwrap_or_default());
    if time < Duration::from_secs(1) {
        return Err("nobody can confirm within less than a second; write 60s".to_owned());
    }
    Ok(time)
}

fn channels() -> impl TypedValueParser<Value = Channel> {
    PossibleValuesParser::new(Channel::ALL.map(Channel::name))
        .try_map(|name| name.parse::<Channel>())
}

fn saved() -> String {
    format!("Declare them, too, in {}", save::FILE)
}

fn via(what: &str) -> String {
    format!("{what}: {}", Channel::ALL.map(Channel::name).join(", "))
}

fn exit_statuses() -> String {
    let mut text = "Exit status:\n   0  Done, or all was so already\n".to_owned();
    for code in ErrorCode::all() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:>2}  {} ({})",
            code.exit_status(),
            code.title(),
            code.name()
        );
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_into_eighty_columns() {
        let mut command = Cli::command();
        let verbs: Vec<String> = command
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        let mut texts = vec![command.render_long_help().to_string()];
        for verb in &verbs {
            let verb = command.find_subcommand_mut(verb).unwrap();
            texts.push(verb.render_long_help().to_string());
            texts.push(verb.render_help().to_string());
        }
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn every_exit_status_stands_in_the_help() {
        let help = Cli::command().render_help().to_string();
        for code in ErrorCode::all() {
            let line = format!(
                "{:>2}  {} ({})",
                code.exit_status(),
                code.title(),
                code.name()
            );
            assert!(help.contains(&line), "{line}");
        }
    }

    #[test]
    fn verbs_and_options_are_not_abbreviated() {
        for args in [&["ibctl", "sho"][..], &["ibctl", "show", "--out", "json"]] {
            assert!(Cli::try_parse_from(args).is_err(), "{args:?}");
        }
    }
}
