// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `capture DIRECTORY LINK...`: records messages of this machine's kernel, one file per exchange.

use std::path::Path;

use anyhow::{Context, Result};
use ib_tests::capture::Recorder;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().context("usage: capture DIRECTORY LINK...")?;
    std::fs::create_dir_all(&directory)?;
    let mut failed = None;
    let mut keep = |name: &str, text: &str| {
        let path = Path::new(&directory).join(format!("{name}.hex"));
        failed = std::fs::write(path, text).err().or(failed.take());
    };
    let mut recorder = Recorder::new(&mut keep);
    recorder.links("links");
    recorder.everything();
    for link in args {
        recorder.link(&link)?;
    }
    failed.map_or(Ok(()), |error| Err(error).context("writing a record"))
}
