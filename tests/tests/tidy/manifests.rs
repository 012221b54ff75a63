// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manifests: one table of versions and one table of lints, in the workspace.

use toml::{Table, Value};

use crate::problem::Problem;
use crate::tree::Tree;

/// What each package takes from the workspace.
const INHERITED: [&str; 5] = [
    "version",
    "edition",
    "rust-version",
    "repository",
    "publish",
];

/// Checks every manifest.
pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut members = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() == "Cargo.toml") {
        let table: Table = match toml::from_str(file.text()) {
            Ok(table) => table,
            Err(error) => {
                problems.push(Problem::new(&file.path, error.to_string()));
                continue;
            }
        };
        match file.path.strip_suffix("/Cargo.toml") {
            Some(folder) => {
                members.push(folder.to_owned());
                problems.extend(check_member(&file.path, &table));
            }
            None => problems.extend(check_members_list(&table, tree)),
        }
    }
    problems
}

fn check_members_list(workspace: &Table, tree: &Tree) -> Vec<Problem> {
    let list = at(workspace, &["workspace", "members"]).and_then(Value::as_array);
    let listed: Vec<&str> = list
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_listed = |folder: &str| listed.contains(&folder);
    let manifests = tree
        .files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    manifests
        .filter(|folder| !is_listed(folder))
        .map(|folder| Problem::new(folder, "is not in workspace.members: list it in Cargo.toml"))
        .collect()
}

fn check_member(path: &str, manifest: &Table) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_true = |keys: &[&str]| at(manifest, keys).and_then(Value::as_bool) == Some(true);
    if !is_true(&["lints", "workspace"]) {
        problems.push(Problem::new(
            path,
            "needs '[lints]' with 'workspace = true'",
        ));
    }
    for field in INHERITED {
        if !is_true(&["package", field, "workspace"]) {
            problems.push(Problem::new(
                path,
                format!("needs '{field}.workspace = true' in [package]"),
            ));
        }
    }
    if at(manifest, &["package", "description"])
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        problems.push(Problem::new(
            path,
            "needs a description in [package]: one line on its job",
        ));
    }
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    for table in std::iter::once(manifest).chain(targets) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let found = table.get(kind).and_then(Value::as_table);
            for (name, value) in found.into_iter().flatten() {
                if value.get("workspace").and_then(Value::as_bool) != Some(true) {
                    let what = format!(
                        "{kind}.{name} has a version or path of its own: move it to \
                         [workspace.dependencies] and write '{name}.workspace = true'"
                    );
                    problems.push(Problem::new(path, what));
                }
            }
        }
    }
    problems
}

fn at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter()
        .try_fold(table.get(*first)?, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    const GOOD: &str = "lints.workspace = true\n[package]\nname = 'a'\ndescription = 'A.'\n\
                        version.workspace = true\nedition.workspace = true\n\
                        rust-version.workspace = true\nrepository.workspace = true\n\
                        publish.workspace = true\n";

    fn of(member: &str) -> Vec<Problem> {
        let workspace = "[workspace]\nmembers = ['a']\n";
        check(&Tree::sample(&[
            ("Cargo.toml", workspace),
            ("a/Cargo.toml", member),
        ]))
    }

    #[test]
    fn good_manifests_pass() {
        let more = "[dependencies]\nserde.workspace = true\nnix = { workspace = true, features = ['fs'] }\n";
        assert_eq!(of(&format!("{GOOD}{more}")), []);
    }

    #[test]
    fn bad_manifests_are_refused() {
        assert_one(&of(&GOOD.replace("lints.workspace = true", "")), "[lints]");
        assert_one(
            &of(&GOOD.replace("edition.workspace = true", "edition = '2024'")),
            "edition",
        );
        assert_one(&of(&GOOD.replace("description = 'A.'", "")), "description");
        assert_one(
            &of(&format!("{GOOD}[dependencies]\nserde = '1'\n")),
            "dependencies.serde",
        );
        assert_one(
            &of(&format!(
                "{GOOD}[dev-dependencies]\nx = {{ path = '../x' }}\n"
            )),
            "dev-dep",
        );
        let target = format!("{GOOD}[target.'cfg(unix)'.dependencies]\nlibc = '0.2'\n");
        assert_one(&of(&target), "dependencies.libc");
        assert_one(&of("not toml"), "TOML");
    }

    #[test]
    fn packages_outside_the_workspace_are_refused() {
        let tree = Tree::sample(&[
            ("Cargo.toml", "[workspace]\nmembers = []\n"),
            ("a/Cargo.toml", GOOD),
        ]);
        assert_one(&check(&tree), "workspace.members");
    }
}
