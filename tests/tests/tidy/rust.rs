// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules for Rust sources, checked on their tokens: what stands in comments and texts does not count.

use anyhow::Result;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::placement;
use crate::problem::Problem;
use crate::tree::{Source, Tree};

/// Files and folders that may hold `unsafe`, and what for. Everything else does without.
const UNSAFE: [(&str, &str); 6] = [
    (
        "driver/core/tests/loom.rs",
        "loom's cells hand out raw pointers",
    ),
    (
        "driver/kernel/",
        "the safe abstractions over the kernel's C interfaces",
    ),
    (
        "driver/module/lib.rs",
        "C calls the entry points by their names",
    ),
    (
        "ibmgrd/hw/src/ioctl.rs",
        "SIOCETHTOOL takes a pointer, and no crate wraps it",
    ),
    (
        "ibmgrd/hw/tests/live/refuse.rs",
        "dropping a capability is a system call without a wrapper",
    ),
    (
        "tests/src/guest/umad.rs",
        "registering a MAD agent is an ioctl without a safe wrapper",
    ),
];

/// Attributes that switch a test off or let it fail in silence.
const ATTRIBUTES: [(&str, &str); 2] = [
    (
        "ignore",
        "a test runs or goes: name it in `cargo lab` if it needs the lab",
    ),
    (
        "should_panic",
        "assert on the error, so that only the expected one passes",
    ),
];

/// Macros that stand for work not done.
const MACROS: [&str; 2] = ["todo", "unimplemented"];

/// Checks one file.
pub(crate) fn check(file: &Source) -> Vec<Problem> {
    let Some(text) = file.rust() else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !text
        .lines()
        .nth(1)
        .is_some_and(|line| line.starts_with("//! "))
    {
        let what = "needs '//!' and its purpose on the line after the licence";
        problems.push(Problem::line(&file.path, 2, what));
    }
    match tokens(file) {
        Ok(tokens) => walk(&tokens, &mut |window| {
            if let Some(what) = bad_name(window).or_else(|| bad_attribute(window)) {
                problems.push(Problem::line(&file.path, line_of(&window[0]), what));
            }
        }),
        Err(problem) => problems.push(problem),
    }
    problems
}

fn bad_name(window: &[TokenTree]) -> Option<String> {
    let [TokenTree::Ident(first), second, ..] = window else {
        return None;
    };
    let word = first.to_string();
    match second {
        TokenTree::Ident(name) if word == "mod" => placement::bad_name(&name.to_string()),
        TokenTree::Punct(mark) if mark.as_char() == '!' && MACROS.contains(&word.as_str()) => {
            Some(format!("has {word}!: do it, or leave the path out"))
        }
        _ => None,
    }
}

fn bad_attribute(window: &[TokenTree]) -> Option<String> {
    let content = attribute(window)?;
    // `cfg_attr(…, ignore)` hides one, too: look at every word.
    let words = words(&content.stream());
    let (name, why) = ATTRIBUTES
        .iter()
        .find(|(name, _)| words.iter().any(|word| word == name))?;
    let is_test_attribute = words[0] == *name || words[0] == "cfg_attr";
    is_test_attribute.then(|| format!("has #[{name}]: {why}"))
}

/// Checks that `unsafe` is where [`UNSAFE`] says, and only there.
pub(crate) fn check_unsafe(tree: &Tree) -> Vec<Problem> {
    unsafe_outside(tree, &UNSAFE)
}

fn unsafe_outside(tree: &Tree, listed: &[(&str, &str)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files.iter().filter(|file| file.rust().is_some()) {
        let first = match tokens(file) {
            Ok(tokens) => first_unsafe(&tokens),
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let is_listed = listed.iter().any(|(path, _)| covers(path, &file.path));
        match first {
            Some(line) if !is_listed => {
                let what = "has unsafe: use a safe crate, or list the file with its reason in tidy/rust.rs";
                problems.push(Problem::line(&file.path, line, what));
            }
            None if listed.iter().any(|(path, _)| *path == file.path) => {
                let what = "has no unsafe any more: strike it from the list in tidy/rust.rs";
                problems.push(Problem::new(&file.path, what));
            }
            _ => {}
        }
    }
    for (path, _) in listed {
        if !tree.files.iter().any(|file| covers(path, &file.path)) {
            let what = "is gone: strike it from the list in tidy/rust.rs";
            problems.push(Problem::new(*path, what));
        }
    }
    problems
}

/// Says whether an entry of the list is the file, or a folder that it lies in.
fn covers(listed: &str, path: &str) -> bool {
    path == listed || listed.ends_with('/') && path.starts_with(listed)
}

fn first_unsafe(tokens: &TokenStream) -> Option<usize> {
    let mut first = None;
    walk(tokens, &mut |window| {
        if matches!(&window[0], TokenTree::Ident(word) if word == "unsafe") {
            first.get_or_insert(line_of(&window[0]));
        }
    });
    first
}

/// Checks that the driver's decisions need neither std nor alloc, nor any other crate.
pub(crate) fn check_core(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let root = "driver/core/src/lib.rs";
    let text = tree.find(root).map_or("", Source::text);
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        if !text.lines().any(|line| line == attribute) {
            problems.push(Problem::new(root, format!("needs {attribute}")));
        }
    }
    let manifest = tree.find("driver/core/Cargo.toml").map_or("", Source::text);
    match toml::from_str::<toml::Table>(manifest) {
        Ok(table) => {
            for kind in ["dependencies", "build-dependencies", "target"] {
                let found = table.get(kind).and_then(toml::Value::as_table);
                // The concurrency proof is built for no kernel.
                let mut keys = found.into_iter().flat_map(toml::Table::keys);
                if keys.any(|key| key != "cfg(loom)") {
                    let what = format!("has [{kind}]: Kbuild compiles this crate alone");
                    problems.push(Problem::new("driver/core/Cargo.toml", what));
                }
            }
        }
        Err(error) => problems.push(Problem::new("driver/core/Cargo.toml", error.to_string())),
    }
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("driver/core/src/"))
    {
        match tokens(file) {
            Ok(tokens) => walk(&without_tests(tokens), &mut |window| {
                if let TokenTree::Ident(word) = &window[0]
                    && (word == "std" || word == "alloc")
                {
                    let what = format!("uses {word}: the kernel has core only");
                    problems.push(Problem::line(&file.path, line_of(&window[0]), what));
                }
            }),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

/// Drops each item under `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek().cloned();
        let window: Vec<_> = std::iter::once(token.clone()).chain(next).collect();
        let is_test =
            attribute(&window).is_some_and(|group| words(&group.stream()) == ["cfg", "test"]);
        if is_test {
            // The attribute's brackets go first; the item ends with its braces or a semicolon.
            tokens.next();
            for token in tokens.by_ref() {
                match token {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                    TokenTree::Punct(mark) if mark.as_char() == ';' => break,
                    _ => {}
                }
            }
        } else {
            kept.push(token);
        }
    }
    kept.into_iter().collect()
}

/// Parses a file into tokens; comments are gone, and doc comments are attributes.
fn tokens(file: &Source) -> Result<TokenStream, Problem> {
    let text = file.text();
    text.parse()
        .map_err(|error| Problem::new(&file.path, format!("does not parse: {error}")))
}

/// Shows `see` each token with all that follow it in its group, groups inside out included.
fn walk(tokens: &TokenStream, see: &mut dyn FnMut(&[TokenTree])) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        see(&tokens[at..]);
        if let TokenTree::Group(group) = token {
            walk(&group.stream(), see);
        }
    }
}

/// Returns the brackets of the attribute that `window` starts with.
fn attribute(window: &[TokenTree]) -> Option<&Group> {
    let (TokenTree::Punct(mark), rest) = window.split_first()? else {
        return None;
    };
    let group = match rest {
        [TokenTree::Punct(inner), TokenTree::Group(group), ..] if inner.as_char() == '!' => group,
        [TokenTree::Group(group), ..] => group,
        _ => return None,
    };
    (mark.as_char() == '#' && group.delimiter() == Delimiter::Bracket).then_some(group)
}

/// Returns all identifiers, those in groups included; never empty.
fn words(tokens: &TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    walk(tokens, &mut |window| {
        if let TokenTree::Ident(word) = &window[0] {
            found.push(word.to_string());
        }
    });
    if found.is_empty() {
        found.push(String::new());
    }
    found
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    const HEAD: &str = "// licence\n//! Purpose.\n";

    fn of(body: &str) -> Vec<Problem> {
        check(&Source::sample("api/src/a.rs", &format!("{HEAD}{body}")))
    }

    #[test]
    fn good_files_pass() {
        assert_eq!(
            of("mod value; // todo!()\nconst A: &str = \"#[ignore]\";\n"),
            []
        );
        assert_eq!(
            of("#[expect(unused, reason = \"we ignore it\")]\nfn ignore() {}\n"),
            []
        );
        assert_eq!(check(&Source::sample("a.c", "int todo;")), []);
    }

    #[test]
    fn a_purpose_is_wanted() {
        assert_one(
            &check(&Source::sample("a.rs", "// licence\nfn f() {}\n")),
            "purpose",
        );
    }

    #[test]
    fn bad_names_attributes_and_macros_are_refused() {
        assert_one(&of("mod tests { mod utils { } }\n"), "utils");
        assert_one(&of("#[test]\n#[ignore]\nfn f() {}\n"), "#[ignore]");
        assert_one(&of("#[ignore = \"slow\"]\nfn f() {}\n"), "#[ignore]");
        assert_one(&of("#[cfg_attr(x, ignore)]\nfn f() {}\n"), "#[ignore]");
        assert_one(
            &of("#[should_panic(expected = \"x\")]\nfn f() {}\n"),
            "#[should_panic]",
        );
        assert_one(&of("fn f() { if x { todo!() } }\n"), "todo!");
        assert_one(
            &of("fn f() { unimplemented!(\"later\") }\n"),
            "unimplemented!",
        );
        assert_one(&of("fn f( {\n"), "does not parse");
        let line = of("\n\nfn f() { todo!() }\n")[0].to_string();
        assert!(line.starts_with("api/src/a.rs:5: "), "{line}");
    }

    #[test]
    fn unsafe_is_held_to_the_list() {
        let tree = Tree::sample(&[
            ("a.rs", "// unsafe\n#![forbid(unsafe_code)]\n"),
            ("b.rs", "fn f() { unsafe { g() } }\n"),
        ]);
        assert_one(&unsafe_outside(&tree, &[]), "b.rs:1");
        assert_eq!(unsafe_outside(&tree, &[("b.rs", "calls g")]), []);
        assert_one(
            &unsafe_outside(&tree, &[("b.rs", ""), ("a.rs", "")]),
            "no unsafe any more",
        );
        assert_one(
            &unsafe_outside(&tree, &[("b.rs", ""), ("c.rs", "")]),
            "is gone",
        );
    }

    #[test]
    fn the_core_is_held_to_core() {
        let core = |lib: &str, manifest: &str| {
            let files = [
                ("driver/core/src/lib.rs", lib),
                ("driver/core/Cargo.toml", manifest),
            ];
            check_core(&Tree::sample(&files))
        };
        let head = "#![no_std]\n#![forbid(unsafe_code)]\n";
        let tests = format!("{head}#[cfg(test)]\nmod tests {{ use std::vec; }}\n");
        assert_eq!(
            core(&tests, "[dependencies]\n[dev-dependencies]\nx = 1\n"),
            []
        );
        let loom = "[dependencies]\n[target.'cfg(loom)'.dependencies]\nloom = '1'\n";
        assert_eq!(core(head, loom), []);
        let import = format!("{head}#[cfg(test)]\nuse std::vec;\n");
        assert_eq!(core(&import, ""), []);
        assert_one(&core(&format!("{tests}use std::fmt;\n"), ""), "uses std");
        assert_one(
            &core(&format!("{head}extern crate alloc;\n"), ""),
            "uses alloc",
        );
        assert_one(&core("#![no_std]\n", ""), "forbid");
        assert_one(&core("#![forbid(unsafe_code)]\n", ""), "no_std");
        assert_one(&core(head, "[dependencies]\nlibm = \"1\"\n"), "Kbuild");
        assert_one(&core(head, &loom.replace("loom)", "unix)")), "Kbuild");
    }
}
