// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatter, linter, documentation builder and cargo-deny over the whole workspace: no complaint is left.
//!
//! Cargo gives its lock on the build folder back before it runs tests, so these take it in turn. They
//! share the folder with the outer build, and a second run costs seconds.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use ib_tests::lab::cache::Cache;
use ib_tests::lab::deny::Deny;
use ib_tests::lab::place;

/// Runs Cargo in the repo and fails with what it said.
#[track_caller]
fn cargo(args: &[&str], envs: &[(&str, &str)], remedy: &str) {
    let mut command = place::cargo();
    command.args(args).envs(envs.iter().copied());
    succeed(command, &format!("cargo {}", args.join(" ")), remedy);
}

#[track_caller]
fn succeed(mut command: Command, what: &str, remedy: &str) {
    match command.env("CARGO_TERM_COLOR", "never").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!(
            "{what} failed: {remedy}\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => panic!("can't run {what}: {error}"),
    }
}

#[test]
fn sources_are_formatted() {
    cargo(&["fmt", "--all", "--check"], &[], "run 'cargo fmt --all'");
}

/// Kbuild compiles these, and Cargo does not know them.
#[test]
fn sources_of_the_module_are_formatted() {
    let mut command = Command::new("rustfmt");
    command.args(["--check", "--edition", "2024"]);
    let mut count = 0;
    for folder in ["driver/kernel", "driver/ipoib", "driver/module"] {
        let walk = ignore::Walk::new(place::repo().join(folder)).flatten();
        for entry in walk.filter(|entry| entry.path().extension().is_some_and(|last| last == "rs"))
        {
            command.arg(entry.path());
            count += 1;
        }
    }
    assert!(count > 0, "no sources of the module found");
    succeed(
        command,
        "rustfmt",
        "run 'rustfmt --edition 2024' on the files that it names",
    );
}

#[test]
fn clippy_has_nothing_to_say() {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-Dwarnings",
    ];
    cargo(
        &args,
        &[],
        "follow its advice, or '#[expect(…, reason = …)]'",
    );
}

#[test]
fn documentation_builds_without_warnings() {
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    let flags = [("RUSTDOCFLAGS", "-Dwarnings")];
    cargo(&args, &flags, "mend the links and headings that it names");
}

/// Returns the check of bans, licences and sources under a policy of one's own, or the repo's.
fn deny(policy: Option<&Path>) -> Result<Command> {
    let deny = Deny::ensure(&Cache::open()?)?;
    let mut command = Command::new(deny.program());
    command.arg("--locked").current_dir(place::repo());
    if let Some(policy) = policy {
        command.arg("--config").arg(policy);
    }
    // The database of advisories is no package of a registry: see docs/RELEASING.md.
    command.args([
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]);
    Ok(command)
}

#[test]
fn dependencies_keep_the_policy() -> Result<()> {
    succeed(deny(None)?, "cargo-deny", "see .cargo/deny.toml");
    Ok(())
}

#[test]
fn a_policy_that_dependencies_break_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let policy = folder.path().join("deny.toml");
    fs::write(&policy, "[licenses]\nallow = [\"Zlib\"]\n")?;
    let output = deny(Some(&policy))?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("error[rejected]"),
        "{said}"
    );
    Ok(())
}
