// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Log lines on standard error: for people, or with the priorities that journald reads
//! (sd-daemon(3)).

use std::fmt;
use std::os::linux::fs::MetadataExt as _;

use ibmgr_api::status::{Record, RecordKind};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Begins logging.
pub fn start(is_verbose: bool) {
    let level = if is_verbose {
        Level::DEBUG
    } else {
        Level::INFO
    };
    let lines = Lines {
        for_journal: is_journal(),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .event_format(lines)
        .finish();
    // A test may have begun one already.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Says whether standard error goes to the journal: `JOURNAL_STREAM` names its device and inode
/// (systemd.exec(5)).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    std::fs::metadata("/proc/self/fd/2")
        .is_ok_and(|file| stream == format!("{}:{}", file.st_dev(), file.st_ino()))
}

struct Lines {
    for_journal: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = event.metadata().level();
        if self.for_journal {
            let priority = match *level {
                Level::ERROR => 3,
                Level::WARN => 4,
                Level::INFO => 6,
                Level::DEBUG | Level::TRACE => 7,
            };
            write!(writer, "<{priority}>")?;
        } else {
            write!(writer, "{level:>5} ")?;
        }
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Logs what happened, with everything that is known of it.
pub fn record(record: &Record) {
    let text = |text: &Option<String>| text.clone().map(|text| text.escape_debug().to_string());
    let link = text(&record.link);
    let (knob, code) = (record.knob.as_deref(), record.code.as_deref());
    let (from, to) = (text(&record.from), text(&record.to));
    let origin = record.origin.as_ref().map(ToString::to_string);
    let by = record.by.as_ref().map(ToString::to_string);
    let (kind, reason) = (record.kind.name(), record.reason.as_str());
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                link = link.as_deref(),
                knob,
                from = from.as_deref(),
                to = to.as_deref(),
                reason,
                code,
                origin = origin.as_deref(),
                by = by.as_deref(),
                "{kind}"
            )
        };
    }
    match record.kind {
        RecordKind::Failed | RecordKind::Waiting | RecordKind::Lost | RecordKind::Denied => {
            log!(warn);
        }
        RecordKind::Drift
        | RecordKind::Changed
        | RecordKind::Settled
        | RecordKind::Appeared
        | RecordKind::Disappeared
        | RecordKind::Renamed
        | RecordKind::ChildMade
        | RecordKind::ChildRemoved
        | RecordKind::Loaded
        | RecordKind::Checkpoint => log!(info),
    }
}
