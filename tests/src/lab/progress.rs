// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Says on standard error what is going on, and for how long.
//!
//! On a terminal the running step has a live line; elsewhere it says a word
//! now and then, so that a log shows life without filling up.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a step without a terminal shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Prints one line for the person who watches.
pub fn say(text: &str) {
    // A closed standard error must not stop the work.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How many steps are under way; only the innermost one paints.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Something that takes a while. Steps may lie inside each other.
pub struct Step {
    what: String,
    started: Instant,
    notes: Option<Sender<String>>,
    painter: Option<JoinHandle<()>>,
}

impl Step {
    /// Announces it.
    #[must_use]
    pub fn begin(what: impl Into<String>) -> Self {
        let what = what.into();
        say(&format!("==> {what}"));
        let (notes, incoming) = mpsc::channel();
        let started = Instant::now();
        let depth = DEPTH.fetch_add(1, Ordering::Relaxed) + 1;
        let painter = thread::spawn(move || paint(&incoming, started, depth));
        Self {
            what,
            started,
            notes: Some(notes),
            painter: Some(painter),
        }
    }

    /// Tells how far it is.
    pub fn note(&self, text: impl Into<String>) {
        if let Some(notes) = &self.notes {
            // The painter only ends after this sender is gone.
            let _ = notes.send(text.into());
        }
    }

    /// Announces the end, with the time that it took.
    pub fn done(mut self) {
        self.stop();
        say(&format!(
            "    {}: done in {}",
            self.what,
            seconds(self.started.elapsed())
        ));
    }

    fn stop(&mut self) {
        self.notes = None;
        if let Some(painter) = self.painter.take() {
            let _ = painter.join();
            DEPTH.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.stop();
    }
}

fn paint(incoming: &mpsc::Receiver<String>, started: Instant, depth: usize) {
    let live = io::stderr().is_terminal();
    let innermost = || DEPTH.load(Ordering::Relaxed) == depth;
    let mut note = String::new();
    let mut last_said = Instant::now();
    loop {
        let wait = if live {
            Duration::from_millis(500)
        } else {
            HEARTBEAT
        };
        match incoming.recv_timeout(wait) {
            Ok(text) => {
                if !live && text != note && last_said.elapsed() >= Duration::from_millis(200) {
                    say(&format!("    {text}"));
                    last_said = Instant::now();
                }
                note = text;
            }
            Err(RecvTimeoutError::Timeout) if !live && innermost() => {
                let pause = if note.is_empty() { "" } else { ", " };
                say(&format!(
                    "    … {}{pause}{note}",
                    seconds(started.elapsed())
                ));
                last_said = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if live && innermost() {
            let shown: String = note.chars().take(60).collect();
            let line = format!("\r\x1b[K    {} {shown}", seconds(started.elapsed()));
            let _ = write!(io::stderr().lock(), "{line}");
        }
    }
    if live {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// Formats a duration as people say it: `0.4 s`, `12 s`, `3 min 05 s`.
#[must_use]
pub fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{whole} s"),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(seconds(Duration::from_millis(420)), "0.4 s");
        assert_eq!(seconds(Duration::from_secs(12)), "12 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }
}
