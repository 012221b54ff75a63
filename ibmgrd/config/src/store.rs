// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the bytes of all files to what they declare together; a broken file keeps what it said last.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ibmgr_api::{Desired, Rule};
use serde::Serialize;

use crate::diagnostic::{Diagnostic, FOUND_MAX};
use crate::expand::{Profiles, expand};
use crate::folder::{FOLDERS, Listing, SIZE_MAX, read_file, read_folders};
use crate::model::Model;
use crate::text::Text;
use crate::{read, toml, yaml};

/// A file, or why it could not be read.
#[derive(Debug)]
pub struct Source {
    /// Its path. Its ending tells the language: `.yaml`, `.yml` and `.json` are YAML, all else is TOML.
    pub file: Arc<str>,
    /// What is in it.
    pub content: io::Result<Vec<u8>>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It counts as it is.
    Used,
    /// It is broken; what it said when it was last right counts on.
    KeptLastGood,
    /// It is broken and has never been right: nothing of it counts.
    Unused,
}

/// A file and what became of it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FileState {
    /// Its path.
    pub file: Arc<str>,
    /// What became of it.
    pub state: State,
}

/// What some files declare together.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The rules of all files that count, in ascending precedence.
    pub desired: Desired,
    /// What is wrong, file by file.
    pub diagnostics: Vec<Diagnostic>,
    /// Every file, in ascending precedence.
    pub files: Vec<FileState>,
}

impl Loaded {
    /// Says whether a file is broken.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// What a file said when it was last right.
#[derive(Clone, Debug)]
struct Good {
    bytes: Arc<[u8]>,
    model: Model,
    /// Its rules then; `None` before profiles of other files were looked for.
    rules: Option<Vec<Rule>>,
}

/// Reads files again and again, and remembers what each said when it was last right.
#[derive(Clone, Debug, Default)]
pub struct Store {
    good: BTreeMap<Arc<str>, Good>,
}

impl Store {
    /// Returns a store that remembers nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what a file said when it was last right, as [`Store::remembered`] told it before a restart.
    /// What is not right is not taken.
    pub fn remember(&mut self, file: &str, bytes: &[u8]) {
        let file: Arc<str> = file.into();
        if let Ok(model) = parse(&file, bytes, &mut Vec::new()) {
            let good = Good {
                bytes: bytes.into(),
                model,
                rules: None,
            };
            self.good.insert(file, good);
        }
    }

    /// Returns each file with what it said when it was last right.
    pub fn remembered(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.good
            .iter()
            .map(|(file, good)| (file.as_ref(), good.bytes.as_ref()))
    }

    /// Reads what folders hold. When one cannot be listed, its files count as they were last.
    pub fn load_listing(&mut self, listing: Listing) -> Loaded {
        let Listing {
            mut sources,
            unlisted,
        } = listing;
        let mut diagnostics = Vec::new();
        for one in unlisted {
            diagnostics.push(self::unlisted(&one).help("its files count as they were last"));
            let (folder, _) = one;
            for (file, good) in &self.good {
                if Path::new(file.as_ref()).parent() == Some(folder.as_path()) {
                    sources.push(Source {
                        file: file.clone(),
                        content: Ok(good.bytes.to_vec()),
                    });
                }
            }
        }
        sources.sort_by(|a, b| name(&a.file).cmp(name(&b.file)));
        let mut loaded = self.load(sources);
        diagnostics.append(&mut loaded.diagnostics);
        loaded.diagnostics = diagnostics;
        loaded
    }

    /// Reads files, which stand in ascending precedence. Files that are no longer among them are
    /// forgotten.
    pub fn load(&mut self, sources: Vec<Source>) -> Loaded {
        let mut loaded = Loaded::default();
        let mut good: Vec<(Good, State)> = Vec::with_capacity(sources.len());
        let mut present: HashSet<Arc<str>> = HashSet::new();
        for source in sources {
            present.insert(source.file.clone());
            let mut found = Vec::new();
            let read = self.read(&source, &mut found);
            let state = match &read {
                Some((_, state)) => *state,
                None => State::Unused,
            };
            loaded.files.push(FileState {
                file: source.file.clone(),
                state,
            });
            good.extend(read);
            tell(&mut loaded.diagnostics, found);
        }
        self.good.retain(|file, _| present.contains(file));

        let profiles = Profiles::of(good.iter().map(|(good, _)| &good.model));
        let mut kept = Vec::with_capacity(good.len());
        for (good, state) in &good {
            let mut found = Vec::new();
            let rules = expand(&good.model, &profiles, &mut found);
            let is_right = !found.iter().any(Diagnostic::is_error);
            let file = &good.model.text.file;
            tell(&mut loaded.diagnostics, found);
            let (rules, state) = if is_right {
                (Some(rules), *state)
            } else {
                let last = self.good.get(file).and_then(|good| good.rules.clone());
                let state = if last.is_some() {
                    State::KeptLastGood
                } else {
                    State::Unused
                };
                (last, state)
            };
            let of_file = loaded.files.iter_mut().find(|other| other.file == *file);
            if let Some(of_file) = of_file {
                of_file.state = state;
            }
            if let Some(rules) = rules {
                loaded.desired.rules.extend(rules.iter().cloned());
                if is_right {
                    let rules = Some(rules);
                    kept.push(Good {
                        rules,
                        ..good.clone()
                    });
                }
            }
        }
        for good in kept {
            self.good.insert(good.model.text.file.clone(), good);
        }
        loaded
    }

    /// Reads one file by itself: a profile that it does not have is left out, and no mistake.
    pub(crate) fn load_alone(&mut self, source: Source) -> Loaded {
        let mut loaded = Loaded::default();
        if let Some((good, State::Used)) = self.read(&source, &mut loaded.diagnostics) {
            let profiles = Profiles::of([&good.model]);
            loaded.desired.rules = expand(&good.model, &profiles, &mut Vec::new());
        }
        loaded
    }

    /// Reads one file, or takes what it said last.
    fn read(&self, source: &Source, found: &mut Vec<Diagnostic>) -> Option<(Good, State)> {
        let parsed = match &source.content {
            Ok(bytes) => parse(&source.file, bytes, found).map(|model| Good {
                bytes: bytes.as_slice().into(),
                model,
                rules: None,
            }),
            Err(error) => {
                let message = format!("the file can't be read: {error}");
                found.push(Diagnostic::of_file(&source.file, message));
                Err(())
            }
        };
        match parsed {
            Ok(good) => Some((good, State::Used)),
            Err(()) => {
                let last = self.good.get(&source.file)?;
                Some((last.clone(), State::KeptLastGood))
            }
        }
    }
}

/// Reads the files and folders that a command names, in their order, or without any the files of
/// [`FOLDERS`], and what they declare together. A folder stands for its files, in the order of their
/// names.
#[must_use]
pub fn load_paths<P: AsRef<Path>>(paths: &[P]) -> Loaded {
    load_read(read_paths(paths))
}

/// Reads what [`load_paths`] takes.
#[must_use]
pub fn read_paths<P: AsRef<Path>>(paths: &[P]) -> Listing {
    let mut all = Listing::default();
    let mut list = |listing: Listing| {
        all.sources.extend(listing.sources);
        all.unlisted.extend(listing.unlisted);
    };
    if paths.is_empty() {
        list(read_folders(FOLDERS));
    }
    for path in paths {
        let path = path.as_ref();
        if path.is_dir() {
            list(read_folders([path]));
        } else {
            list(Listing {
                sources: vec![read_file(path)],
                unlisted: Vec::new(),
            });
        }
    }
    all
}

/// Returns what was read declares together.
#[must_use]
pub fn load_read(listing: Listing) -> Loaded {
    let mut diagnostics: Vec<_> = listing.unlisted.iter().map(unlisted).collect();
    let mut loaded = Store::new().load(listing.sources);
    diagnostics.append(&mut loaded.diagnostics);
    loaded.diagnostics = diagnostics;
    loaded
}

fn unlisted((folder, error): &(PathBuf, io::Error)) -> Diagnostic {
    let name: Arc<str> = folder.to_string_lossy().into();
    Diagnostic::of_file(&name, format!("the folder can't be listed: {error}"))
}

/// Returns the last part of a path, in bytes as folders are sorted.
fn name(file: &str) -> &[u8] {
    file.rsplit('/').next().unwrap_or(file).as_bytes()
}

/// Adds findings, the graver first where there are too many, in the order of their lines.
fn tell(all: &mut Vec<Diagnostic>, mut found: Vec<Diagnostic>) {
    let count = found.len();
    if count > FOUND_MAX {
        found.sort_by_key(|one| std::cmp::Reverse(one.severity));
        found.truncate(FOUND_MAX);
    }
    found.sort_by_key(|one| (one.origin.line, one.origin.column));
    let more = found.last().filter(|_| count > FOUND_MAX).map(|last| {
        let message = format!("{} findings more", count - FOUND_MAX);
        Diagnostic::of_file(&last.origin.file, message)
    });
    all.extend(found);
    all.extend(more);
}

/// Reads the bytes of a file. With an error the file is broken as a whole.
fn parse(file: &Arc<str>, bytes: &[u8], found: &mut Vec<Diagnostic>) -> Result<Model, ()> {
    let before = found.len();
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > SIZE_MAX {
        let message = format!("the file has {} bytes, more than {SIZE_MAX}", bytes.len());
        found.push(Diagnostic::of_file(file, message));
        return Err(());
    }
    let text = match std::str::from_utf8(bytes) {
        // A byte order mark is no part of the text.
        Ok(text) => Text::new(file.clone(), text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let lossy = Text::new(file.clone(), &String::from_utf8_lossy(bytes));
            let spot = lossy.spot(error.valid_up_to()..error.valid_up_to() + 1);
            found.push(Diagnostic::at(&lossy, spot, "this is no UTF-8"));
            return Err(());
        }
    };
    let is_yaml = [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| file.ends_with(ending));
    let tree = if is_yaml {
        yaml::read(&text, found)
    } else {
        Some(toml::read(&text, found))
    };
    // After a syntax error, what was understood of the rest may be misunderstood: only say what is
    // certainly wrong.
    let is_broken = found[before..].iter().any(Diagnostic::is_error);
    let empty = || crate::tree::Node {
        spot: text.spot(0..0),
        body: crate::tree::Body::Nothing,
    };
    let tree = tree.unwrap_or_else(empty);
    let mut of_content = Vec::new();
    let model = read::read(&text, tree, &mut of_content);
    if !is_broken {
        found.append(&mut of_content);
    }
    if found[before..].iter().any(Diagnostic::is_error) {
        Err(())
    } else {
        Ok(model)
    }
}
