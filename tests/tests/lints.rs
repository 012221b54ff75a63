// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatter, linter, documentation builder and cargo-deny over the whole workspace: no complaint is left.
//!
//! Cargo gives its lock on the build folder back before it runs tests, so these take it in turn. They
//! share the folder with the outer build, and a second run costs seconds.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use ib_tests::lab::cache::Cache;
use ib_tests::lab::deny::Deny;
use ib_tests::lab::{modules, place, roots};

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

/// Kbuild compiles them with `rustc`: here they are given to Clippy, with the workspace's table of lints.
#[test]
fn clippy_has_nothing_to_say_of_the_module() -> Result<()> {
    let cache = Cache::open()?;
    let root = roots::TRIXIE.ensure(&cache)?;
    let module = modules::OWN
        .iter()
        .find(|module| module.name == "ipoib_batch");
    let built = module
        .context("the driver is a module")?
        .ensure(&cache, &root)?;
    let out = tempfile::tempdir()?;
    // Distributions build it with the oldest compiler that Kbuild takes, which is older than the workspace's.
    fs::write(out.path().join("clippy.toml"), "msrv = \"1.85\"\n")?;
    let library = |tool: &str, name: &str, source: &str, more: &[String]| {
        let mut command = Command::new(tool);
        command.args(["--crate-type=rlib", "--emit=metadata", "--crate-name", name]);
        command.arg("--out-dir").arg(out.path());
        command.arg("-L").arg(out.path()).args(more);
        command.arg(place::repo().join("driver").join(source));
        command.env("CLIPPY_CONF_DIR", out.path());
        command.env("IPOIB_BINDINGS", built.path().join(modules::BINDINGS));
        let remedy = "follow its advice, or '#[expect(…, reason = …)]'";
        succeed(command, &format!("{tool} of driver/{source}"), remedy);
    };
    let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let quiet = |edition: &str| words(&format!("--edition={edition} --cap-lints=allow"));
    library("rustc", "bindings", "kernel/bindings.rs", &quiet("2021"));
    library("rustc", "ipoib_core", "core/src/lib.rs", &quiet("2024"));
    let lints = lint_flags()?;
    for (name, source, uses) in [
        ("kernel", "kernel/src/lib.rs", "bindings ipoib_core"),
        ("ipoib", "ipoib/src/lib.rs", "kernel ipoib_core"),
        ("module", "module/lib.rs", "ipoib kernel"),
    ] {
        let mut flags = words("--edition=2024 -Dwarnings");
        for used in uses.split(' ') {
            let file = out.path().join(format!("lib{used}.rmeta"));
            flags.extend(["--extern".to_owned(), format!("{used}={}", file.display())]);
        }
        flags.extend(lints.iter().cloned());
        if name != "ipoib" {
            flags.push("-Aunsafe_code".to_owned());
        }
        // The types of the kernel's constants are not the same with each kernel and bindgen.
        if name == "kernel" {
            flags.extend(words(
                "-Aclippy::unnecessary_cast -Aclippy::useless_conversion",
            ));
        }
        library("clippy-driver", name, source, &flags);
    }
    Ok(())
}

/// Returns the workspace's table of lints as flags.
fn lint_flags() -> Result<Vec<String>> {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(place::repo().join("Cargo.toml"))?)?;
    let mut flags = Vec::new();
    for (tool, prefix) in [("rust", ""), ("clippy", "clippy::")] {
        let table = manifest
            .get("workspace")
            .and_then(|workspace| workspace.get("lints")?.get(tool)?.as_table())
            .with_context(|| format!("no lints of {tool}"))?;
        for (name, level) in table {
            let name = format!("{prefix}{name}");
            match (level.as_str(), level.get("check-cfg")) {
                (Some("deny"), _) => flags.push(format!("-D{name}")),
                (Some("warn"), _) => flags.push(format!("-W{name}")),
                (None, Some(known)) => {
                    for cfg in known.as_array().into_iter().flatten() {
                        let cfg = cfg.as_str().context("a cfg is text")?;
                        flags.extend(["--check-cfg".to_owned(), cfg.to_owned()]);
                    }
                }
                other => anyhow::bail!("lint {name}: level {other:?} is not known here"),
            }
        }
    }
    Ok(flags)
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
