// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Content hashes that name what the lab caches.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Name of a cached item, made from everything that goes into it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Collects the ingredients of a [`Key`].
///
/// Each ingredient is hashed with its label and its length, so that moving a
/// byte from one ingredient to the next gives another key.
#[derive(Default)]
pub struct KeyMaker(Sha256);

impl KeyMaker {
    /// Starts with no ingredient.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes under a label.
    #[must_use]
    pub fn add(mut self, label: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        for part in [label.as_bytes(), bytes] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    /// Adds a list of words under a label.
    #[must_use]
    pub fn add_words(mut self, label: &str, words: &[&str]) -> Self {
        for word in words {
            self = self.add(label, word);
        }
        self
    }

    /// Adds the files below `dir`, by relative path and content, in name order.
    ///
    /// # Errors
    ///
    /// When a file can't be read.
    pub fn add_tree(self, dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<Self> {
        let mut files = Vec::new();
        list(dir, &mut files)?;
        files.sort();
        let mut maker = self;
        for file in files {
            let name = file.strip_prefix(dir).unwrap_or(&file);
            if wanted(name) {
                maker = maker.add(&name.to_string_lossy(), fs::read(&file)?);
            }
        }
        Ok(maker)
    }

    /// Ends the list.
    #[must_use]
    pub fn finish(self) -> Key {
        let digest = self.0.finalize();
        Key(digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

fn list(dir: &Path, files: &mut Vec<std::path::PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_between_ingredients_count() {
        let one = KeyMaker::new().add("x", "ab").add("x", "c").finish();
        let two = KeyMaker::new().add("x", "a").add("x", "bc").finish();
        assert_ne!(one, two);
        assert_eq!(one.to_string().len(), 16);
    }

    #[test]
    fn a_tree_is_hashed_by_name_and_content() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.c"), "1").unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/b.o"), "2").unwrap();
        let all = |_: &Path| true;
        let sources = |p: &Path| p.extension().is_some_and(|e| e == "c");
        let key = |wanted: &dyn Fn(&Path) -> bool| {
            KeyMaker::new()
                .add_tree(dir.path(), wanted)
                .unwrap()
                .finish()
        };
        let (every, some) = (key(&all), key(&sources));
        assert_ne!(every, some);
        fs::write(dir.path().join("sub/b.o"), "3").unwrap();
        assert_ne!(key(&all), every);
        assert_eq!(key(&sources), some);
        fs::rename(dir.path().join("a.c"), dir.path().join("z.c")).unwrap();
        assert_ne!(key(&sources), some);
    }
}
