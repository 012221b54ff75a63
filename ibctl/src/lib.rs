// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `ibctl`, on any [`Host`].
//!
//! [`run`] is the whole command: it reads the words, does the work, writes the output and returns the
//! exit status, which comes from [`ErrorCode`](ibmgr_api::ErrorCode) alone. Only what is printed is
//! read from the kernel.

mod apply;
mod check;
mod cli;
mod daemon;
mod driver;
mod error;
mod explain;
mod export;
mod get;
mod host;
mod import;
mod plan;
mod report;
mod request;
mod save;
mod set;
mod show;
mod signals;
mod text;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use ibmgrd_engine::{Host, PortError};
use ibmgrd_state::Store;
use serde::Serialize;

use cli::At;
pub use cli::{Cli, DriverVerb, Format, Verb};
use daemon::Daemon;
pub use error::Error;

/// What a command stands on.
pub struct Environment<'a, P> {
    /// Connects to the kernel; commands that need none do not call it.
    pub open: &'a dyn Fn() -> Result<P, PortError>,
    /// File that keeps two sets from running at once; `None` for a kernel that nobody shares.
    pub lock: Option<&'a Path>,
    /// Returns the kernel's number of the network namespace of a connection.
    pub namespace: &'a dyn Fn(&mut P) -> Result<u64, PortError>,
    /// Returns where changes of whole hosts are kept, for a network namespace.
    pub store: &'a dyn Fn(u64) -> Store,
    /// Where the daemon listens unless the command says otherwise; `None` for a kernel without one.
    pub socket: Option<&'a Path>,
    /// Starts the process that takes a change back which is not confirmed: it runs `await-confirmation`
    /// with the change's id and the time of [`ibmgrd_state::boottime`] that it must be confirmed by.
    pub guard: &'a dyn Fn(&str, Duration) -> io::Result<()>,
    /// Where the output goes, buffered by the caller.
    pub stdout: &'a mut dyn Write,
    /// Where errors go.
    pub stderr: &'a mut dyn Write,
}

/// Runs one command and returns its exit status.
///
/// `args` starts with the name of the program. A reader of the output that went away is no failure.
pub fn run<P: Host>(args: &[OsString], environment: Environment<'_, P>) -> u8 {
    let Environment {
        open,
        lock,
        namespace,
        store,
        socket,
        guard,
        stdout,
        stderr,
    } = environment;
    let kernel = Kernel {
        open,
        lock,
        namespace,
        store,
        socket,
        guard,
    };
    let (result, format) = match Cli::try_parse_from(args) {
        Ok(cli) => {
            let format = cli.output;
            (verb(cli, &kernel, stdout, stderr), format)
        }
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            let result = write!(stdout, "{}", error.render());
            (result.map_err(Error::Output), Format::Table)
        }
        Err(error) => (Err(usage(&error)), format_of(args)),
    };
    let flushed = stdout.flush().map_err(Error::Output);
    // An output that broke does not hide what went wrong before.
    let result = match (result, flushed) {
        (Err(error), Err(_)) | (Err(error), Ok(())) if !error.is_broken_pipe() => Err(error),
        (_, flushed) => flushed,
    };
    match result {
        Err(error) if !error.is_broken_pipe() => {
            // Nobody is left to be told when this fails.
            let _ = error.write(stderr, format);
            error.code().exit_status()
        }
        _ => 0,
    }
}

/// The parts of the environment that verbs work with.
struct Kernel<'a, P> {
    open: &'a dyn Fn() -> Result<P, PortError>,
    lock: Option<&'a Path>,
    namespace: &'a dyn Fn(&mut P) -> Result<u64, PortError>,
    store: &'a dyn Fn(u64) -> Store,
    socket: Option<&'a Path>,
    guard: &'a dyn Fn(&str, Duration) -> io::Result<()>,
}

impl<P: Host> Kernel<'_, P> {
    fn open(&self) -> Result<(P, Store), Error> {
        let mut host = (self.open)()?;
        let namespace = (self.namespace)(&mut host)?;
        Ok((host, (self.store)(namespace)))
    }

    /// Returns the daemon, where one works on this kernel and may be asked.
    fn daemon(&self, at: &At) -> Result<Option<Daemon>, Error> {
        let socket = at.socket.as_deref().or(self.socket);
        let Some(socket) = socket.filter(|socket| !at.direct && socket.exists()) else {
            return Ok(None);
        };
        let namespace = (self.namespace)(&mut (self.open)()?)?;
        Daemon::find(socket, namespace)
    }

    /// Keeps other changes waiting until the answer is dropped.
    fn turn(&self) -> Result<Option<File>, Error> {
        Ok(self
            .lock
            .map(ibmgrd_state::lock::hold)
            .transpose()?
            .flatten())
    }
}

fn verb<P: Host>(
    cli: Cli,
    kernel: &Kernel<'_, P>,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<(), Error> {
    let format = cli.output;
    let open = kernel.open;
    match cli.verb {
        Verb::Show { link: None } => show::all(&mut open()?, format, stdout),
        Verb::Show { link: Some(link) } => {
            let link = link.parse()?;
            show::one(&mut open()?, &link, format, stdout)
        }
        Verb::Get { link, knobs, via } => {
            let (link, keys) = (link.parse()?, request::keys(&knobs)?);
            get::get(&mut open()?, &link, keys, via, format, stdout)
        }
        Verb::Set {
            link,
            assignments,
            via,
            dry_run,
            save,
            at,
        } => {
            let request = request::Request::parse(&link, &assignments, via)?;
            let link = request.link.clone();
            let _postponed = (!dry_run).then(signals::Postponed::until_dropped);
            let set = set::Set {
                request,
                save: save.as_deref(),
                dry_run,
                at,
            };
            let done = set.run(kernel, format, stdout);
            // The report must be out before a postponed signal ends the program.
            let flushed = stdout.flush().map_err(Error::Output);
            done.and(flushed).map_err(|error| match error {
                Error::Output(source) if !dry_run && source.kind() != io::ErrorKind::BrokenPipe => {
                    Error::Unreported { link, source }
                }
                error => error,
            })
        }
        Verb::Check { files } => check::check(&files, format, stdout),
        Verb::Plan { files, at } => plan::run(kernel, &files, &at, format, stdout),
        Verb::Driver { what } => {
            let root = Path::new("/");
            match what {
                DriverVerb::Status => driver::status(&mut open()?, root, format, stdout),
                DriverVerb::Use {
                    driver,
                    now,
                    dry_run,
                } => {
                    let wish = driver::Wish {
                        choice: driver,
                        now,
                        dry_run,
                    };
                    let _turn = kernel.turn()?;
                    let _postponed = signals::Postponed::until_dropped();
                    driver::choose(&mut open()?, root, &wish, format, stdout)
                }
            }
        }
        Verb::Export { links } => {
            let links = links.iter().map(|link| link.parse());
            let links = links.collect::<Result<Vec<_>, _>>()?;
            export::export(&mut open()?, &links, format, stdout)
        }
        Verb::Import {
            from,
            paths,
            to,
            force,
            all_kinds,
        } => {
            let options = ibmgrd_import::Options { all_kinds };
            let request = import::Request {
                from,
                paths,
                to,
                force,
                options,
            };
            import::import(&request, format, stdout, stderr)
        }
        Verb::Apply {
            files,
            confirm_within: _,
            dry_run: true,
            at,
        } => plan::run(kernel, &files, &at, format, stdout),
        Verb::Apply {
            files,
            confirm_within,
            dry_run: false,
            at,
        } => {
            let _postponed = signals::Postponed::until_dropped();
            let done = apply::run(kernel, &files, confirm_within, &at, format, stdout);
            // As for a set.
            let _ = stdout.flush();
            done
        }
        Verb::Confirm { at } => host::confirm(kernel, &at),
        Verb::Rollback { at } => {
            let _postponed = signals::Postponed::until_dropped();
            let done = host::rollback(kernel, &at, format, stdout);
            let _ = stdout.flush();
            done
        }
        Verb::Status { at } => host::status(kernel, &at, format, stdout),
        Verb::Watch { socket } => match socket.as_deref().or(kernel.socket) {
            Some(socket) => daemon::watch(socket, format, stdout),
            None => Err(Error::Usage("there is no daemon here".to_owned())),
        },
        Verb::AwaitConfirmation { id, by } => {
            // Away from the terminal and the session of whoever asked. It fails for a leader of
            // processes only, which a new process is not.
            let _ = nix::unistd::setsid();
            let (_, store) = kernel.open()?;
            // Who started it waits for this line.
            writeln!(stdout, "waiting")?;
            stdout.flush()?;
            apply::guard(open, &store, kernel.lock, &id, Duration::from_nanos(by))
        }
        Verb::Explain { knob: None, .. } => explain::list(format, stdout),
        Verb::Explain {
            knob: Some(knob),
            link: None,
        } => explain::knob(&knob, format, stdout),
        Verb::Explain {
            knob: Some(knob),
            link: Some(link),
        } => {
            let link = link.parse()?;
            explain::on_link(&knob, &link, open, format, stdout)
        }
    }
}

/// Turns an error of the command-line parser into ours: without its prefix and its blank lines.
fn usage(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.filter(|line| !line.starts_with("For more information"));
    Error::Usage(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the form that a command line asks for which could not be parsed.
fn format_of(args: &[OsString]) -> Format {
    let words = || args.iter().map(|word| word.to_str().unwrap_or_default());
    let words = || words().take_while(|word| *word != "--");
    let joined = ["-ojson", "-o=json", "--output=json"];
    let is_joined = words().any(|word| joined.contains(&word));
    let is_split = words()
        .zip(words().skip(1))
        .any(|(option, value)| matches!(option, "-o" | "--output") && value == "json");
    if is_joined || is_split {
        Format::Json
    } else {
        Format::Table
    }
}

fn write_json<T: Serialize + ?Sized>(out: &mut dyn Write, document: &T) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
