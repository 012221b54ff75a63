// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `console` blocks of documents: each command runs, in the order of the page, and prints what stands
//! below it.

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::netns::Netns;
use super::{Guest, Result};

/// Time limit of one command.
const LIMIT: Duration = Duration::from_secs(30);

/// One command of a page.
#[derive(Debug)]
struct Shown<'a> {
    line: usize,
    command: &'a str,
    output: Vec<&'a str>,
}

/// Runs the commands of `page`, which is the document at `path`, in a namespace.
///
/// # Errors
///
/// When there are fewer than `at_least`; with every command that prints something else than is shown.
pub fn compare(guest: &Guest, ns: &Netns, path: &str, page: &str, at_least: usize) -> Result {
    let commands = shown(page).with_context(|| path.to_owned())?;
    let count = commands.len();
    ensure!(count >= at_least, "{path} has only {count} commands");
    let mut differences = Vec::new();
    for Shown {
        line,
        command,
        output,
    } in commands
    {
        guest.write("/tmp/shown.sh", &format!("exec 2>&1\n{command}\n"))?;
        let printed = ns.attempt("bash /tmp/shown.sh", LIMIT)?.stdout;
        let lines: Vec<&str> = printed.lines().collect();
        if !is_like(&output, &lines) {
            differences.push(format!("{path}:{line}: '{command}' prints\n{printed}"));
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Reads the blocks that start with ```` ```console ````; a command has a prompt before it.
fn shown(page: &str) -> Result<Vec<Shown<'_>>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    let mut is_inside = false;
    for (at, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if !is_inside {
            continue;
        } else if let Some(command) = line.strip_prefix("# ").or_else(|| line.strip_prefix("$ ")) {
            all.push(Shown {
                line: at + 1,
                command,
                output: Vec::new(),
            });
        } else if let Some(last) = all.last_mut() {
            last.output.push(line);
        } else {
            bail!("line {}: output without a command", at + 1);
        }
    }
    Ok(all)
}

/// Replaces what differs from run to run: addresses, indices, and the gap that their width leaves.
fn settled(line: &str) -> String {
    let mut settled = String::with_capacity(line.len());
    let mut is_index = false;
    for word in line.split_whitespace() {
        let bare = word.trim_matches(['"', ',', ':']);
        let is_address = matches!(bare.split(':').count(), 6 | 20);
        settled.push_str(match (is_index, is_address) {
            (true, _) => "INDEX",
            (false, true) => "ADDRESS",
            (false, false) => word,
        });
        settled.push(' ');
        is_index = bare == "index";
    }
    settled
}

/// Says whether `lines` are as `pattern`, where `...` stands for any lines.
fn is_like(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=lines.len()).any(|skip| is_like(rest, lines.get(skip..).unwrap_or_default()))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, more)| settled(first) == settled(line) && is_like(rest, more)),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn patterns_match_lines() {
        assert!(is_like(&["a  b", "..."], &["a b", "c", "d"]));
        assert!(is_like(&["...", "d"], &["a", "d"]));
        assert!(!is_like(&["a"], &["a", "b"]));
        assert!(!is_like(&["a"], &[]));
        assert!(is_like(&["x 02:3b:7f:ab:8a:60"], &["x  aa:22:c3:7a:32:8c"]));
        assert!(is_like(&["veth, index 3"], &["veth, index 7"]));
        assert!(!is_like(&["mtu 1400"], &["mtu 1500"]));
    }

    #[test]
    fn commands_are_found_with_their_output() {
        let page = "text\n```console\n# a b\nx\n...\n$ c\n```\n```sh\nd\n```\n";
        let found = shown(page).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].command), (3, "a b"));
        assert_eq!(found[0].output, ["x", "..."]);
        assert!(found[1].output.is_empty());
        assert!(shown("```console\nx\n```").is_err());
    }
}
