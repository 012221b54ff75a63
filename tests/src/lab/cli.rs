// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `lab` on the host.

use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory, Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::cache::Cache;
use super::progress::say;
use super::{demo, dist, place, report, roots, test};
use crate::bench;

/// InfiniBand without InfiniBand: virtual HCAs in a virtual machine, set up by itself.
#[derive(Debug, Parser)]
#[command(name = "cargo lab", bin_name = "cargo lab")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Boot a machine with two HCAs and show ibctl on a real ib0
    Demo,
    /// Run the tests, all or those that match a NAME (part of a name, or a glob)
    Test {
        /// Part of a test's name, or a glob
        names: Vec<String>,
        /// Run long forms, and record their figures
        #[arg(long)]
        long: bool,
        /// Run each test of the machines so many times, to find one that fails now and then
        #[arg(long, default_value_t = 1)]
        repeat: usize,
    },
    /// List the tests
    List,
    /// Open a shell in a machine with the fabric up
    Shell,
    /// Measure; prints a line per figure
    Bench {
        /// First word of the figures' names; all cases when left out
        case: Option<String>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
        /// The long forms of those that have one
        #[arg(long)]
        long: bool,
    },
    /// Build the packages, .deb and .rpm, into the target folder
    Dist,
    /// Remove what the lab has cached
    Clean {
        /// Only roots that this version doesn't use any more, and leftovers
        #[arg(long)]
        stale: bool,
    },
}

/// Returns the verbs and their options, for the test that reads the documents.
#[must_use]
pub fn command() -> Command {
    Cli::command()
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = die_of_signals().and_then(|()| match cli.verb {
        Verb::Demo => demo::run(),
        Verb::Test {
            names,
            long,
            repeat,
        } => test::run(&names, long, repeat),
        Verb::List => test::list().map(|()| true),
        Verb::Shell => demo::shell(),
        Verb::Bench { case, json, long } => bench::run(case.as_deref(), json, long),
        Verb::Dist => dist::run_dist(),
        Verb::Clean { stale } => clean(stale).map(|()| true),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("\nlab: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Ends the program on Ctrl-C and the like, with a word about it.
///
/// Machines and mounts end with this process by themselves; half-made items
/// of the cache are removed by the next run.
fn die_of_signals() -> Result<()> {
    // Caught, not blocked: programs inherit what is blocked, and tests send signals to theirs.
    let caught = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(caught).context("can't catch signals")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            place::tidy_up();
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            say(&format!("\nlab: {name}; stopped"));
            // As a shell reports a program that a signal ended.
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn clean(stale: bool) -> Result<()> {
    let cache = Cache::open()?;
    let current: Vec<String> = [roots::TRIXIE, roots::SID, roots::WORKSHOP]
        .iter()
        .map(|spec| format!("{}-{}", spec.suite, spec.key()))
        .collect();
    // Layers and modules are remade in seconds; only roots are worth keeping.
    let keep =
        |kind: &str, name: &str| stale && kind == "root" && current.iter().any(|c| c == name);
    let (removed, busy) = cache.remove(&keep)?;
    for path in &removed {
        report::line(&format!("removed {}", path.display()));
    }
    for path in &busy {
        report::line(&format!("in use, kept: {}", path.display()));
    }
    report::line(&format!("{} removed, {} in use", removed.len(), busy.len()));
    Ok(())
}
