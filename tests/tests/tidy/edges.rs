// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which package may depend on which, as `cargo metadata` resolves it.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::problem::Problem;
use crate::tree::top;

/// What one package may depend on.
struct Rule {
    package: &'static str,
    /// Packages of this workspace.
    ours: &'static [&'static str],
    /// Crates of others; `None` leaves the choice to review and cargo-deny.
    others: Option<&'static [&'static str]>,
}

/// The arrows of docs/ARCHITECTURE.md. The pure packages list every crate that they use: what is not
/// listed can't bring in sockets, files or clocks.
const RULES: [Rule; 10] = [
    Rule {
        package: "ipoib-core",
        ours: &[],
        others: Some(&[]),
    },
    Rule {
        package: "ibmgr-api",
        ours: &["ipoib-core"],
        // schemars for the tests that write schemas only.
        others: Some(&["schemars", "serde", "strsim", "thiserror"]),
    },
    Rule {
        package: "ibmgrd-config",
        ours: &["ibmgr-api"],
        others: Some(&[
            "saphyr-parser",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
            "toml_edit",
        ]),
    },
    Rule {
        package: "ibmgrd-engine",
        ours: &["ibmgr-api"],
        others: Some(&["thiserror"]),
    },
    Rule {
        package: "ibmgrd-hw",
        ours: &["ibmgrd-engine", "ibmgr-api"],
        others: None,
    },
    Rule {
        package: "ibmgrd-import",
        ours: &["ibmgr-api"],
        others: Some(&["quick-xml", "saphyr-parser", "serde", "thiserror"]),
    },
    Rule {
        package: "ibmgrd",
        ours: &[
            "ibmgr-api",
            "ibmgrd-config",
            "ibmgrd-engine",
            "ibmgrd-hw",
            "ibmgrd-state",
        ],
        others: None,
    },
    Rule {
        package: "ibmgrd-state",
        ours: &["ibmgrd-engine", "ibmgr-api"],
        others: None,
    },
    Rule {
        package: "ibctl",
        ours: &[
            "ibmgr-api",
            "ibmgrd-config",
            "ibmgrd-engine",
            "ibmgrd-hw",
            "ibmgrd-import",
            "ibmgrd-state",
        ],
        others: None,
    },
    Rule {
        package: "ib-tests",
        ours: &[
            "ipoib-core",
            "ibmgr-api",
            "ibmgrd-config",
            "ibmgrd-engine",
            "ibmgrd-hw",
            "ibmgrd-import",
            "ibmgrd",
            "ibctl",
        ],
        others: None,
    },
];

/// Packages of ours that only tests of others use: the daemon is asked through the command line there.
const PROOFS: [(&str, &str); 1] = [("ibmgrd", "ibctl")];

/// The packages of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// Folder, for a package of this workspace.
    path: Option<String>,
    /// `dev`, `build`, or nothing for a normal one.
    kind: Option<String>,
    /// The platform or flag that it is for.
    target: Option<String>,
}

/// Asks Cargo.
///
/// # Errors
///
/// When it can't be run or does not answer.
pub(crate) fn metadata() -> Result<Metadata> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--locked"])
        .current_dir(top())
        .output()
        .context("can't run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("can't read what cargo metadata says")
}

/// Checks every edge.
pub(crate) fn check(metadata: &Metadata) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let Some(rule) = RULES.iter().find(|rule| rule.package == package.name) else {
            let what =
                "is a new package: say in tidy/edges.rs and docs/ARCHITECTURE.md what it may use";
            problems.push(Problem::new(&package.name, what));
            continue;
        };
        for dependency in &package.dependencies {
            problems.extend(check_edge(rule, dependency));
        }
    }
    problems
}

fn check_edge(rule: &Rule, dependency: &Dependency) -> Option<Problem> {
    let name = dependency.name.as_str();
    // What proves a package is no part of it.
    let is_proof = dependency.kind.as_deref() == Some("dev")
        || dependency.target.as_deref() == Some("cfg(loom)");
    let allowed = match (&dependency.path, rule.others) {
        (Some(_), _) => {
            rule.ours.contains(&name) || is_proof && PROOFS.contains(&(rule.package, name))
        }
        (None, Some(others)) => is_proof || others.contains(&name),
        (None, None) => true,
    };
    let what = format!(
        "may not depend on {name}: move the code to where it may, or change the rule with a record in docs/adr"
    );
    (!allowed).then(|| Problem::new(rule.package, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    fn of(package: &str, dependency: &str, kind: Option<&str>, is_ours: bool) -> Vec<Problem> {
        check(&Metadata {
            packages: vec![Package {
                name: package.to_owned(),
                dependencies: vec![Dependency {
                    name: dependency.to_owned(),
                    path: is_ours.then(|| "x".to_owned()),
                    kind: kind
                        .filter(|kind| !kind.starts_with("cfg"))
                        .map(str::to_owned),
                    target: kind
                        .filter(|kind| kind.starts_with("cfg"))
                        .map(str::to_owned),
                }],
            }],
        })
    }

    #[test]
    fn the_arrows_are_allowed() {
        assert_eq!(of("ibmgrd-hw", "ibmgrd-engine", None, true), []);
        assert_eq!(of("ibmgrd-hw", "rtnetlink", None, false), []);
        assert_eq!(of("ibctl", "ibmgrd-hw", None, true), []);
        assert_eq!(of("ipoib-core", "proptest", Some("dev"), false), []);
        assert_eq!(of("ibmgrd", "ibctl", Some("dev"), true), []);
        assert_eq!(of("ipoib-core", "loom", Some("cfg(loom)"), false), []);
    }

    #[test]
    fn other_edges_are_refused() {
        assert_one(
            &of("ibmgr-api", "ibmgrd-engine", None, true),
            "may not depend",
        );
        assert_one(
            &of("ibmgr-api", "ibmgrd-engine", Some("dev"), true),
            "may not depend",
        );
        assert_one(
            &of("ibmgrd-engine", "ibmgrd-hw", None, true),
            "may not depend",
        );
        assert_one(&of("ibmgrd-engine", "tokio", None, false), "may not depend");
        assert_one(
            &of("ipoib-core", "libc", Some("cfg(unix)"), false),
            "may not depend",
        );
        assert_one(
            &of("ipoib-core", "libm", Some("build"), false),
            "may not depend",
        );
        assert_one(
            &of("ibctl", "ib-tests", Some("dev"), true),
            "may not depend",
        );
        assert_one(&of("ibmgrd", "ibctl", None, true), "may not depend");
        assert_one(&of("ibnew", "serde", None, false), "new package");
    }

    #[test]
    fn cargo_knows_every_rule() {
        let metadata = metadata().unwrap();
        for rule in RULES {
            assert!(
                metadata
                    .packages
                    .iter()
                    .any(|package| package.name == rule.package),
                "{} is gone: strike its rule",
                rule.package
            );
        }
    }
}
