// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `import`: the samples of `ibmgrd-import` as files of ours, and what goes wrong with files.

use std::fs;
use std::path::{Path, PathBuf};

use ibmgrd_import::Format;

use crate::fake::Fake;
use crate::{Done, golden, run};

/// The samples, from the folder that tests of this package run in.
const SAMPLES: &str = "../ibmgrd/import/tests/samples";

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

/// Returns each sample as a command line, with its format.
pub(crate) fn lines() -> Vec<(Format, String)> {
    let mut lines = Vec::new();
    for format in Format::ALL {
        for case in folders(&Path::new(SAMPLES).join(format.name())) {
            let line = format!("import --from {format} {}", case.display());
            lines.push((format, line));
        }
    }
    lines
}

#[test]
fn every_sample_becomes_a_file() {
    for format in Format::ALL {
        let lines: Vec<String> = lines()
            .into_iter()
            .filter(|(of, _)| *of == format)
            .map(|(_, line)| line)
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        golden(&format!("import-{format}"), &Fake::host(), &lines);
    }
}

#[test]
fn rules_and_report_are_one_document() {
    let path = format!("{SAMPLES}/ifcfg/suse");
    golden(
        "import-json",
        &Fake::host(),
        &[
            &format!("import --from ifcfg {path} -o json"),
            &format!("import --from openib {SAMPLES}/openib/modprobe -o json"),
        ],
    );
}

#[test]
fn what_is_wrong_with_files_is_told() {
    golden(
        "import-wrong",
        &Fake::host(),
        &[
            "import --from ifcfg tests/none",
            "import --from nmstate Cargo.toml",
            "import --from netplan Cargo.toml ../ibmgrd/import/Cargo.toml",
            "import --from wicked Cargo.toml",
            "import --from ifcfg src",
            "import --from ifcg src",
            "import --from ifcfg",
            "import src",
            "import --from ifcfg src --force",
            "import --from ifcfg src --to src",
            "import --from ifcfg src --to Cargo.toml",
            "import --from nmstate Cargo.toml -o json",
        ],
    );
}

fn import(to: &Path, more: &str) -> Done {
    let line = format!(
        "import --from ifcfg {SAMPLES}/ifcfg/suse --to {} {more}",
        to.display()
    );
    run(&Fake::host(), &line)
}

#[test]
fn a_file_is_written_and_never_replaced_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("50-ib.toml");
    let done = import(&to, "");
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, ""),
        "{}",
        done.stderr
    );
    let text = fs::read_to_string(&to).expect("the file");
    let shown = run(
        &Fake::host(),
        &format!("import --from ifcfg {SAMPLES}/ifcfg/suse"),
    );
    assert_eq!(text, shown.stdout);
    fs::write(&to, "mine\n").expect("a write");
    let done = import(&to, "");
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("--force replaces it"),
        "{}",
        done.stderr
    );
    assert_eq!(fs::read_to_string(&to).expect("the file"), "mine\n");
    assert_eq!(import(&to, "--force").status, 0);
    assert_eq!(fs::read_to_string(&to).expect("the file"), text);
    let left = folders(folder.path());
    assert_eq!(left, [to]);
}

#[test]
fn a_file_of_nothing_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("a.toml");
    let line = format!(
        "import --from openib {SAMPLES}/openib/modprobe --to {}",
        to.display()
    );
    let done = run(&Fake::host(), &line);
    assert_eq!((done.status, done.stdout.as_str()), (5, ""));
    assert!(
        done.stderr.contains("send_queue_size=512"),
        "{}",
        done.stderr
    );
    assert!(folders(folder.path()).is_empty());
}

#[test]
fn huge_and_binary_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ifcfg-ib0");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("a write");
    let line = format!("import --from ifcfg {}", path.display());
    let done = run(&Fake::host(), &line);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("more than 1048576 bytes"),
        "{}",
        done.stderr
    );
    fs::write(&path, b"DEVICE=ib0\nMTU=\xff\n").expect("a write");
    let done = run(&Fake::host(), &line);
    assert_eq!(done.status, 5);
    assert!(
        done.stderr.contains("ifcfg-ib0:2: is not UTF-8 text"),
        "{}",
        done.stderr
    );
}
