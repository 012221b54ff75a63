// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds for any text: sizes, words left behind, places that exist on one machine only.

use crate::problem::Problem;
use crate::tree::{Source, Tree};

/// Most lines of one source file.
const MOST_LINES: usize = 800;

/// What nine in ten Rust files outside tests stay under.
const USUAL_LINES: usize = 400;

/// Most lines of documents that are to be read in one go.
const DOCUMENTS: [(&str, usize); 3] = [
    ("README.md", 250),
    ("docs/ARCHITECTURE.md", 300),
    ("docs/CONVENTIONS.md", 200),
];

/// Most lines of one decision record: a page.
const RECORD_LINES: usize = 60;

/// Words that promise work instead of doing it. In two parts, so that this file does not hold them.
const LEFT_BEHIND: [(&str, &str); 4] = [("FIX", "ME"), ("XX", "X"), ("TO", "DO"), ("HA", "CK")];

/// Folders of somebody's machine.
const MACHINE_PATHS: [(&str, &str); 4] = [
    ("/ho", "me/"),
    ("/Us", "ers/"),
    ("/wo", "rk/"),
    ("/fa", "rm"),
];

/// Hosts of package registries. Clients know theirs, and many sites have mirrors: a name in the repo
/// would work on some machines only.
const REGISTRY_HOSTS: [(&str, &str); 9] = [
    ("crates", ".io"),
    ("pypi", ".org"),
    ("python", "hosted.org"),
    ("deb.", "debian.org"),
    ("ftp.", "debian.org"),
    ("snapshot.", "debian.org"),
    ("npm", "js.org"),
    ("proxy.", "golang.org"),
    ("arti", "factory"),
];

/// Checks one file line by line.
pub(crate) fn check(file: &Source) -> Vec<Problem> {
    // Cargo writes its lock file, and names the registry in it.
    if file.name() == "Cargo.lock" || file.path.starts_with("docs/LICENSES/") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (number, line) in file.lines() {
        let mut add = |what: String| problems.push(Problem::line(&file.path, number, what));
        for word in LEFT_BEHIND.map(join) {
            if has_word(line, &word) {
                add(format!("says {word}: do it, or open an issue"));
            }
        }
        for place in MACHINE_PATHS.map(join) {
            if starts_path(line, &place) {
                add(format!(
                    "names {place}, a folder of one machine: ask for it or find it"
                ));
            }
        }
        for host in REGISTRY_HOSTS.map(join) {
            if line.to_ascii_lowercase().contains(&host) {
                add(format!("names {host}: leave it to the registry's client"));
            }
        }
        if line.ends_with([' ', '\t', '\r']) && file.extension() != "txt" {
            add("ends in white space: remove it".to_owned());
        }
    }
    if !file.text().is_empty() && !file.text().ends_with('\n') {
        problems.push(Problem::new(
            &file.path,
            "does not end in a line feed: add it",
        ));
    }
    problems
}

/// Checks the sizes of all files.
pub(crate) fn check_sizes(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut rust = Vec::new();
    for file in &tree.files {
        let lines = file.text().lines().count();
        if let Some(most) = most_lines(file)
            && lines > most
        {
            let what = format!("has {lines} lines, the most is {most}: split it by topic");
            problems.push(Problem::new(&file.path, what));
        }
        if file.rust().is_some() && !is_test(&file.path) {
            rust.push((lines, file.path.as_str()));
        }
    }
    rust.sort_unstable();
    if let Some((lines, _)) = rust.get(rust.len() * 9 / 10)
        && *lines >= USUAL_LINES
    {
        let longest: Vec<_> = rust.iter().rev().take(5).collect();
        let what = format!(
            "one in ten has {lines} lines or more, the aim is under {USUAL_LINES}: split the longest, {longest:?}"
        );
        problems.push(Problem::new("Rust files outside tests", what));
    }
    problems
}

fn most_lines(file: &Source) -> Option<usize> {
    if let Some((_, most)) = DOCUMENTS.iter().find(|(path, _)| *path == file.path) {
        return Some(*most);
    }
    if file.path.starts_with("docs/adr/") {
        return Some(RECORD_LINES);
    }
    ["rs", "c", "h", "sh", "py"]
        .contains(&file.extension())
        .then_some(MOST_LINES)
}

/// Says whether a Rust file holds tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

fn join(parts: (&str, &str)) -> String {
    format!("{}{}", parts.0, parts.1)
}

fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !inside(before) && !inside(after)
    })
}

/// Says whether `place` begins an absolute path, rather than being a later part of one.
fn starts_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"_.-~}*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    fn of(line: &str) -> Vec<Problem> {
        check(&Source::sample("a.rs", &format!("{line}\n")))
    }

    #[test]
    fn clean_lines_pass() {
        for line in [
            "mktemp lab.XXXXXX",
            "a/work/b",
            "Registries have hosts.",
            "todo",
            "~/work/x",
        ] {
            assert_eq!(of(line), [], "{line}");
        }
    }

    #[test]
    fn words_paths_and_hosts_are_refused() {
        for parts in LEFT_BEHIND {
            assert_one(&of(&format!("// {}: later", join(parts))), "open an issue");
        }
        for parts in MACHINE_PATHS {
            assert_one(&of(&format!("see '{}x'", join(parts))), "one machine");
        }
        for parts in REGISTRY_HOSTS {
            assert_one(
                &of(&format!("https://{}/x", join(parts).to_uppercase())),
                "client",
            );
        }
    }

    #[test]
    fn white_space_at_the_end_is_refused() {
        assert_one(&of("let a = 1; "), "white space");
        assert_one(&check(&Source::sample("a.rs", "no end")), "line feed");
    }

    #[test]
    fn long_files_are_refused() {
        let lines = |count: usize| "x\n".repeat(count);
        let at = |path: &str, count| check_sizes(&Tree::sample(&[(path, &lines(count))]));
        assert_eq!(at("tests/vhca/a.c", 800), []);
        assert_one(&at("tests/vhca/a.c", 801), "split it");
        assert_one(&at("docs/ARCHITECTURE.md", 301), "split it");
        assert_one(&at("docs/adr/0001-a.md", 61), "split it");
        assert_eq!(at("api/src/a/tests.rs", 700), []);
        assert_one(&at("api/src/a.rs", 400), "one in ten");
    }
}
