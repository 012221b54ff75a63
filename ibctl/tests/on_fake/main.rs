// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every output of `ibctl` against a file of `tests/golden/`, on a kernel in memory.
//!
//! `UPDATE=1 cargo test -p ibctl` writes the files anew; read the difference before you commit it.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod cases;
mod failures;
mod fake;
mod imports;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use ibctl::Environment;
use ibmgrd_engine::PortError;
use ibmgrd_state::Store;

use crate::fake::Fake;

/// What a command did.
pub(crate) struct Done {
    pub(crate) status: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `ibctl` with `line`, split at spaces, on `fake`.
pub(crate) fn run(fake: &Fake, line: &str) -> Done {
    let args: Vec<OsString> = ["ibctl"]
        .into_iter()
        .chain(line.split_whitespace())
        .map(OsString::from)
        .collect();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let open = || Ok::<_, PortError>(fake.clone());
    let environment = Environment {
        open: &open,
        lock: None,
        namespace: &|_| Ok(1),
        store: &|namespace| Store::new(Path::new("/nowhere"), namespace),
        socket: None,
        guard: &|_, _| Ok(()),
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    let status = ibctl::run(&args, environment);
    Done {
        status,
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// Compares the transcript of commands with `tests/golden/NAME.txt`.
#[track_caller]
pub(crate) fn golden(name: &str, fake: &Fake, lines: &[&str]) {
    let mut transcript = String::new();
    for line in lines {
        let done = run(fake, line);
        let _ = write!(transcript, "$ ibctl {line}\n{}", done.stdout);
        for line in done.stderr.lines() {
            let _ = writeln!(transcript, "! {line}");
        }
        let _ = writeln!(transcript, "= {}\n", done.status);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &transcript).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if transcript != expected {
        let at = transcript
            .lines()
            .zip(expected.lines())
            .position(|(ours, theirs)| ours != theirs)
            .unwrap_or_else(|| transcript.lines().count().min(expected.lines().count()));
        panic!(
            "{} differs from line {}; UPDATE=1 rewrites it\n  now:      {:?}\n  expected: {:?}",
            path.display(),
            at + 1,
            transcript.lines().nth(at),
            expected.lines().nth(at),
        );
    }
}
