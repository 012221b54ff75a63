// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that documents show: each is one that the programs take today.
//!
//! `sh` blocks and code spans are parsed by the programs' own command lines. `console` blocks also
//! show output: they stand only where a test runs them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser as _;
use ib_tests::lab::{cli, place};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde_json::Value;

/// Documents whose `console` blocks are run, and by which test.
const RUN: [(&str, &str); 4] = [
    ("README.md", "tests/src/guest/tests/readme.rs"),
    ("docs/ibctl.md", "tests/src/guest/tests/ibctl/guide.rs"),
    ("docs/dbus.md", "ibmgrd/tests/on_host/dbus.rs"),
    ("docs/security.md", "ibmgrd/tests/on_host/tls.rs"),
];

/// Documents whose `sh` blocks a test runs as they are, in a machine that has more than our programs.
const RUN_INSTALLED: [&str; 4] = [
    "README.md",
    "docs/administration.md",
    "docs/driver.md",
    "docs/orchestration.md",
];

/// The test that does.
const INSTALLED: &str = "tests/src/lab/installed/mod.rs";

/// Kinds of blocks that show nothing to type.
const OTHER_BLOCKS: [&str; 6] = ["text", "toml", "yaml", "json", "c", "rust"];

/// Programs whose command lines are checked wherever they are named.
const OURS: [&str; 3] = ["cargo lab ", "cargo test ", "ibctl "];

/// One shown command.
#[derive(Debug, Eq, PartialEq)]
struct Shown {
    line: usize,
    command: String,
}

/// Reads the commands of a document, or says which block is of no use.
fn read(path: &str, text: &str) -> Result<Vec<Shown>> {
    let mut shown = Vec::new();
    let mut block: Option<String> = None;
    for (event, range) in Parser::new(text).into_offset_iter() {
        let line = text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                let is_run = RUN.iter().any(|(document, _)| *document == path);
                match kind.as_ref() {
                    "sh" => {}
                    "console" if is_run => {}
                    "console" => {
                        bail!("{path}:{line}: no test runs the console blocks of this page")
                    }
                    kind if OTHER_BLOCKS.contains(&kind) => {}
                    kind => {
                        bail!("{path}:{line}: a block of kind '{kind}'; write sh, console or text")
                    }
                }
                block = Some(kind.into_string());
            }
            Event::End(TagEnd::CodeBlock) => block = None,
            Event::Text(commands) if block.as_deref() == Some("sh") => {
                for (at, command) in commands.lines().enumerate() {
                    let command = command.split(" #").next().unwrap_or_default().trim();
                    if !command.is_empty() && !command.starts_with('#') {
                        shown.push(Shown {
                            line: line + at,
                            command: command.to_owned(),
                        });
                    }
                }
            }
            Event::Code(span)
                if OURS
                    .iter()
                    .any(|ours| without_variables(&span).starts_with(ours)) =>
            {
                shown.push(Shown {
                    line,
                    command: span.into_string(),
                });
            }
            _ => {}
        }
    }
    Ok(shown)
}

/// Drops `NAME=VALUE` before a command.
fn without_variables(command: &str) -> &str {
    let is_variable = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    match command.split_once(' ') {
        Some((word, rest)) if is_variable(word) => without_variables(rest),
        _ => command,
    }
}

/// Says why a command is not one that works.
fn check(command: &str, metadata: &Value) -> Result<()> {
    let words: Vec<&str> = without_variables(command).split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "lab", rest @ ..] => {
            let words = ["cargo lab"].iter().chain(rest);
            cli::command().try_get_matches_from(words)?;
        }
        // The name of a verb, in running text.
        ["ibctl", verb] if !verb.starts_with('-') => {
            parse(&["ibctl", verb, "--help"])?;
        }
        ["ibctl", ..] => {
            parse(&words)?;
        }
        ["cargo", "test", "-p", package, rest @ ..] => {
            let packages = metadata["packages"].as_array().context("no packages")?;
            let package = packages.iter().find(|known| known["name"] == **package);
            let targets = package.context("there is no such package")?["targets"].as_array();
            if let ["--test", target] = rest {
                let is_there = |known: &Value| known["name"] == **target;
                if !targets.is_some_and(|targets| targets.iter().any(is_there)) {
                    bail!("the package has no such test target");
                }
            } else if !rest.is_empty() {
                bail!("this test knows '-p PACKAGE' and '--test TARGET' only");
            }
        }
        _ => bail!("this test does not know the program: teach it, or show the command as text"),
    }
    Ok(())
}

/// Parses the words of an `ibctl` command; asking for help is right, too.
fn parse(words: &[&str]) -> Result<(), clap::Error> {
    match ibctl::Cli::try_parse_from(words) {
        Err(error) if error.exit_code() != 0 => Err(error),
        _ => Ok(()),
    }
}

fn metadata() -> Result<Value> {
    let mut cargo: Command = place::cargo();
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    Ok(serde_json::from_slice(&cargo.output()?.stdout)?)
}

#[test]
fn documents_show_what_the_programs_take() -> Result<()> {
    let metadata = metadata()?;
    let mut count = 0;
    for entry in ignore::Walk::new(place::repo()) {
        let entry = entry?;
        if entry
            .path()
            .extension()
            .is_none_or(|extension| extension != "md")
        {
            continue;
        }
        let path = entry
            .path()
            .strip_prefix(place::repo())?
            .display()
            .to_string();
        let is_run = RUN_INSTALLED.contains(&path.as_str());
        for Shown { line, command } in read(&path, &fs::read_to_string(entry.path())?)? {
            // Commands of others, and lines of shell around ours: running them is the better check.
            let is_ours = OURS.iter().any(|ours| command.starts_with(ours));
            if is_run && (!is_ours || command.contains(" | ")) {
                continue;
            }
            let command = if is_run {
                command.split(" > ").next().unwrap_or_default().to_owned()
            } else {
                command
            };
            check(&command, &metadata).with_context(|| format!("{path}:{line}: '{command}'"))?;
            count += 1;
        }
    }
    for (_, test) in RUN {
        if !place::repo().join(test).exists() {
            bail!("{test} is gone, and ran the console blocks of a page");
        }
    }
    let installed = fs::read_to_string(place::repo().join(INSTALLED))?;
    for page in RUN_INSTALLED {
        if !installed.contains(page) {
            bail!("{INSTALLED} does not run the blocks of {page}");
        }
    }
    if count < 10 {
        bail!("only {count} commands found: this test would prove nothing");
    }
    Ok(())
}

#[test]
fn ci_runs_what_the_readme_says() -> Result<()> {
    let text = fs::read_to_string(place::repo().join(".ci/run"))?;
    let runs: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("cargo "))
        .collect();
    let readme = read(
        "README.md",
        &fs::read_to_string(place::repo().join("README.md"))?,
    )?;
    let is_shown = |run: &&str| readme.iter().any(|shown| shown.command == *run);
    if runs.is_empty() || !runs.iter().all(is_shown) {
        bail!(".ci/run runs {runs:?}, which README.md does not show");
    }
    Ok(())
}

#[test]
fn commands_are_found() -> Result<()> {
    let text = "Type `ibctl show`, not `ls`:\n\n```sh\n# first\nUPDATE=1 cargo test -p x   # all\n\ncargo lab demo\n```\n";
    let shown = read("a.md", text)?;
    let commands: Vec<_> = shown
        .iter()
        .map(|shown| (shown.line, shown.command.as_str()))
        .collect();
    assert_eq!(
        commands,
        [
            (1, "ibctl show"),
            (5, "UPDATE=1 cargo test -p x"),
            (7, "cargo lab demo")
        ]
    );
    assert!(read("docs/ibctl.md", "```console\n$ ibctl show\n```\n")?.is_empty());
    assert!(read("a.md", "```console\n$ ibctl show\n```\n").is_err());
    assert!(read("a.md", "```\nls\n```\n").is_err());
    Ok(())
}

#[test]
fn wrong_commands_are_refused() -> Result<()> {
    let metadata = metadata()?;
    for good in [
        "cargo lab bench ibctl --json",
        "ibctl set ib0 mode=connected mtu=65520",
        "ibctl set",
        "UPDATE=1 cargo test -p ib-tests --test shown",
    ] {
        check(good, &metadata).with_context(|| good)?;
    }
    for bad in [
        "cargo lab demon",
        "cargo lab demo --fast",
        "ibctl sett ib0 mtu=1",
        "ibctl sett",
        "ibctl set ib0",
        "cargo test -p ib-test",
        "cargo test -p ib-tests --test show",
        "rm -rf x",
    ] {
        assert!(check(bad, &metadata).is_err(), "{bad}");
    }
    Ok(())
}
