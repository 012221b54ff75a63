// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends events to the host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

use crate::wire::{EVENT_PORT, Event, JOB_PATH, Job};

/// Bytes of a file per event.
const PIECE: usize = 24 * 1024;

/// Most bytes of one file that are carried out; the rest is cut off, with a word about it.
const LIMIT: usize = 2 * 1024 * 1024;

/// The way to the host. Any thread may send.
#[derive(Debug)]
pub struct Port(Mutex<File>);

impl Port {
    /// Opens it. Bytes pass unchanged from here on.
    ///
    /// # Errors
    ///
    /// When the serial port is missing.
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new().write(true).open(EVENT_PORT)?;
        let mut settings = tcgetattr(&file)?;
        cfmakeraw(&mut settings);
        tcsetattr(&file, SetArg::TCSANOW, &settings)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Sends one event. A host that doesn't listen any more can't be told so.
    pub fn send(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else {
            return;
        };
        line.push(b'\n');
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = file.write_all(&line);
    }

    /// Sends a file's content under `name`.
    pub fn send_file(&self, name: &str, content: &[u8]) {
        let (kept, cut) = content.split_at(content.len().min(LIMIT));
        for piece in kept.chunks(PIECE) {
            self.send(&Event::Artefact {
                name: name.to_owned(),
                data: STANDARD.encode(piece),
            });
        }
        if !cut.is_empty() {
            let text = format!("{name}: the last {} bytes were not carried out", cut.len());
            self.send(&Event::Say { text });
        }
    }
}

/// Reads what this machine was booted for.
///
/// # Errors
///
/// When the job file is missing or not understood.
pub fn read_job() -> io::Result<Job> {
    Ok(serde_json::from_slice(&fs::read(JOB_PATH)?)?)
}
