// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon, where one runs: how everything stands, and what happens.
//!
//! It is asked over its unix socket, in HTTP/1.0: an answer is then a body that ends with the connection.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ibmgr_api::status::{Record, RecordKind, Standing, Status};
use ibmgr_api::{ErrorCode, Failure};

use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain};

/// How long an answer may take: the daemon may be changing a mode, which takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns how everything stands; `None` where no daemon runs.
///
/// # Errors
///
/// One runs and does not answer as it should, or this user may not ask.
pub(crate) fn status(socket: &Path) -> Result<Option<Status>, Error> {
    let Some(mut answer) = ask(socket, "/v1/status")? else {
        return Ok(None);
    };
    let mut body = Vec::new();
    answer.read_to_end(&mut body).map_err(failed(socket))?;
    let status = serde_json::from_slice(&body).map_err(io::Error::from);
    status.map(Some).map_err(failed(socket))
}

/// Prints what happens, until the daemon ends.
pub(crate) fn watch(socket: &Path, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let Some(answer) = ask(socket, "/v1/events")? else {
        let message = format!(
            "no daemon answers at {}: start ibmgrd, which follows what happens",
            socket.display()
        );
        return Err(Failure::new(ErrorCode::Kernel, message).into());
    };
    // Nothing happens for hours, perhaps.
    answer
        .get_ref()
        .set_read_timeout(None)
        .map_err(failed(socket))?;
    for line in answer.lines() {
        let line = line.map_err(failed(socket))?;
        let Some(data) = line.strip_prefix("data:") else {
            continue;
        };
        match format {
            Format::Json => writeln!(out, "{}", data.trim())?,
            Format::Table => match serde_json::from_str::<Record>(data) {
                Ok(record) => writeln!(out, "{}", plain(&sentence(&record)))?,
                Err(_) => writeln!(out, "{}", plain(data.trim()))?,
            },
        }
        out.flush()?;
    }
    Ok(())
}

/// Returns `ib0: mtu 1500 -> 2044 (changed: somebody changed it; /etc/ibmgr/conf.d/ib.toml:3:1)`.
fn sentence(record: &Record) -> String {
    let mut text = String::new();
    if let Some(link) = &record.link {
        text.push_str(&format!("{link}: "));
    }
    if let Some(knob) = &record.knob {
        text.push_str(&format!("{knob} "));
    }
    match (&record.from, &record.to) {
        // What was wanted did not come about.
        (_, Some(to)) if record.kind == RecordKind::Failed => text.push_str(&format!("{to} ")),
        (Some(from), Some(to)) => text.push_str(&format!("{from} -> {to} ")),
        (None, Some(one)) | (Some(one), None) => text.push_str(&format!("{one} ")),
        (None, None) => {}
    }
    text.push_str(&format!("({}: {}", record.kind.name(), record.reason));
    if let Some(origin) = &record.origin {
        text.push_str(&format!("; {origin}"));
    }
    text.push(')');
    text
}

/// Prints what is not as declared, after one line for the whole.
pub(crate) fn print(status: &Status, out: &mut dyn Write) -> Result<(), Error> {
    let mut table = Table::default();
    let links = status.links.len();
    let state = if status.ok {
        "everything is as declared"
    } else {
        "not everything is as declared"
    };
    let files = status.files.len();
    table.row([
        Cow::from("daemon"),
        format!("{state}: {links} interfaces by {files} files").into(),
    ]);
    table.write(out)?;
    for problem in &status.problems {
        let text = format!(
            "{}: {}: {}",
            problem.origin, problem.severity, problem.message
        );
        writeln!(out, "{}", plain(&text))?;
    }
    let mut table = Table::default();
    table.row(["LINK", "KNOB", "STANDING", "DECLARED", "VALUE", "NOTE"].map(Cow::from));
    let mut count = 0;
    for link in &status.links {
        for (knob, it) in link
            .knobs
            .iter()
            .filter(|(_, it)| it.standing != Standing::Holds)
        {
            count += 1;
            table.row([
                Cow::from(&link.link),
                knob.into(),
                it.standing.name().into(),
                it.declared.as_str().into(),
                it.value.as_deref().unwrap_or("-").into(),
                it.why.as_deref().unwrap_or_default().into(),
            ]);
        }
        for child in link
            .children
            .iter()
            .filter(|it| it.standing != Standing::Holds)
        {
            count += 1;
            table.row([
                Cow::from(&link.link),
                format!("child {}", child.pkey).into(),
                child.standing.name().into(),
                if child.declared { "present" } else { "absent" }.into(),
                child.present.join(" ").into(),
                child.why.as_deref().unwrap_or_default().into(),
            ]);
        }
    }
    if count > 0 {
        writeln!(out)?;
        table.write(out)?;
    }
    for link in &status.links {
        for owner in &link.owners {
            let text = format!("{}: {} {}", link.link, owner.program, owner.what);
            writeln!(out, "{}", plain(&text))?;
        }
    }
    Ok(())
}

fn failed(socket: &Path) -> impl Fn(io::Error) -> Error {
    let socket = socket.display().to_string();
    move |source| Error::Files {
        message: format!("the daemon at {socket} does not answer"),
        hint: None,
        code: match source.kind() {
            io::ErrorKind::PermissionDenied => ErrorCode::Permission,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ErrorCode::Timeout,
            _ => ErrorCode::Kernel,
        },
        source: Some(source),
    }
}

/// Sends a request, and returns the body of the answer; `None` where no daemon runs.
fn ask(socket: &Path, path: &str) -> Result<Option<BufReader<UnixStream>>, Error> {
    let mut stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(socket)(error)),
    };
    let answer = (|| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: ibmgr\r\n\r\n").as_bytes())?;
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line)?;
        let code = line
            .split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        while !line.trim_end().is_empty() {
            line.clear();
            answer.read_line(&mut line)?;
        }
        if code != "200" {
            return Err(io::Error::other(format!("it answers with status {code}")));
        }
        Ok(answer)
    })();
    answer.map(Some).map_err(failed(socket))
}
