// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `docs/ibctl.md`: every command in a `console` block runs, and prints what stands below it.

use std::fs;
use std::path::Path;

use crate::support::{Net, ibctl_path};

/// One command of the guide.
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// Reads the blocks that start with ```` ```console ````.
fn shown(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if is_inside {
            match line.strip_prefix("# ").or_else(|| line.strip_prefix("$ ")) {
                Some(command) => all.push(Shown {
                    line: at + 1,
                    command: command.to_owned(),
                    output: Vec::new(),
                }),
                None => {
                    let last = all.last_mut().expect("a block starts with a command");
                    last.output.push(line.to_owned());
                }
            }
        }
    }
    all
}

/// Replaces what differs from run to run: addresses, indices, and the gap that their width leaves.
fn settled(line: &str) -> String {
    let mut settled = String::with_capacity(line.len());
    let mut is_index = false;
    for word in line.split_whitespace() {
        let bare = word.trim_matches(['"', ',', ':']);
        let is_address = bare.split(':').count() == 6;
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
fn is_like(pattern: &[String], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=lines.len()).any(|skip| is_like(rest, &lines[skip..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, more)| settled(first) == settled(line) && is_like(rest, more)),
    }
}

#[test]
fn the_guide_shows_what_happens() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ibctl.md");
    let text = fs::read_to_string(&path).expect("docs/ibctl.md is there");
    let commands = shown(&text);
    assert!(commands.len() >= 15, "{} commands", commands.len());
    let net = Net::new();
    let folder = ibctl_path().parent().expect("it has a folder");
    let search = std::env::var("PATH").unwrap_or_default();
    for Shown {
        line,
        command,
        output,
    } in commands
    {
        let done = net
            .command("bash", ["-c", &format!("exec 2>&1; {command}")])
            .env(
                "PATH",
                format!("{}:{search}:/usr/sbin:/sbin", folder.display()),
            )
            .output()
            .expect("bash runs");
        let printed = String::from_utf8(done.stdout).expect("UTF-8");
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            is_like(&output, &lines),
            "docs/ibctl.md:{line}: $ {command}\nprints\n{printed}"
        );
    }
}

#[test]
fn patterns_match_lines() {
    let pattern = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_like(&pattern("a  b\n..."), &["a b", "c", "d"]));
    assert!(is_like(&pattern("...\nd"), &["a", "d"]));
    assert!(!is_like(&pattern("a"), &["a", "b"]));
    assert!(!is_like(&pattern("a"), &[]));
    assert!(is_like(
        &pattern("x 02:3b:7f:ab:8a:60"),
        &["x  aa:22:c3:7a:32:8c"]
    ));
    assert!(is_like(&pattern("veth, index 3"), &["veth, index 7"]));
    assert!(!is_like(&pattern("mtu 1400"), &["mtu 1500"]));
}
