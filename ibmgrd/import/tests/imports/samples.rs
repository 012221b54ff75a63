// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files below `tests/samples`.

use std::path::{Path, PathBuf};

use ibmgrd_import::{Format, Source};

/// Files of one host.
pub(crate) struct Sample {
    pub(crate) format: Format,
    /// `FORMAT-CASE`.
    pub(crate) name: String,
    pub(crate) sources: Vec<Source>,
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("a name")
}

/// Returns all samples, each file named from its case's folder on.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = Vec::new();
    for of_format in entries(&top()) {
        let format: Format = file_name(&of_format).parse().expect("a format");
        for case in entries(&of_format) {
            let source = |path: PathBuf| {
                let name = path
                    .strip_prefix(&case)
                    .expect("below")
                    .to_str()
                    .expect("UTF-8");
                Source::new(name, std::fs::read(&path).expect("a file")).expect("UTF-8")
            };
            samples.push(Sample {
                format,
                name: format!("{format}-{}", file_name(&case)),
                sources: files(&case).into_iter().map(source).collect(),
            });
        }
    }
    samples
}
