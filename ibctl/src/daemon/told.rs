// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the daemon tells: how everything stands, and what happens.

use std::borrow::Cow;
use std::io::{self, BufRead as _, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ibmgr_api::status::{Record, RecordKind, Standing, Status};
use ibmgr_api::{ErrorCode, Failure};

use super::Daemon;
use crate::cli::Format;
use crate::error::Error;
use crate::text::{Table, plain};

/// Prints what happens, until the daemon ends.
pub(crate) fn watch(socket: &Path, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let daemon = Daemon {
        socket: socket.to_owned(),
        namespace: None,
    };
    let stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            let message = format!(
                "no daemon answers at {}: start ibmgrd, which follows what happens",
                socket.display()
            );
            return Err(Failure::new(ErrorCode::Kernel, message).into());
        }
        Err(error) => return Err(daemon.failed(error)),
    };
    let failed = |error| daemon.failed(error);
    // Of whatever namespace: it is only listened to.
    let reply = daemon
        .send(stream, "GET", "/v1/events", None)
        .map_err(failed)?;
    if reply.status != 200 {
        let status = reply.status;
        return Err(failed(io::Error::other(format!(
            "it answers with status {status}"
        ))));
    }
    // Nothing happens for hours, perhaps.
    reply
        .body
        .get_ref()
        .set_read_timeout(None)
        .map_err(failed)?;
    for line in reply.body.lines() {
        let line = line.map_err(failed)?;
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
    if let Some(by) = &record.by {
        text.push_str(&format!("; by {by}"));
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
