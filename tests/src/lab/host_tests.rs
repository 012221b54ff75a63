// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Host tests: builds the workspace's test programs and runs each test in a
//! process of its own, so that every test has its time, its limit and its output.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::place;
use super::progress::Step;
use super::report::Verdict;

/// Time limit of one host test. The slowest lint the whole workspace.
const LIMIT: Duration = Duration::from_secs(900);

/// Time limit of one host test in its long form.
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// Variable that asks host tests for their long forms.
pub const LONG_VARIABLE: &str = "IB_TESTS_LONG";

/// A test program of the workspace.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Program {
    package: String,
    target: String,
    folder: PathBuf,
    path: PathBuf,
}

/// One host test.
#[derive(Clone, Debug)]
pub struct HostTest {
    /// `package::target::path::to::test`.
    pub name: String,
    program: Program,
    filter: String,
}

/// Builds all test programs and lists their tests.
///
/// # Errors
///
/// When something doesn't compile.
pub fn build() -> Result<Vec<HostTest>> {
    let step = Step::begin("building the workspace's tests");
    let mut command = place::cargo();
    command.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("can't run cargo")?;
    if !output.status.success() {
        bail!("the workspace's tests don't build; see above");
    }
    let mut tests = Vec::new();
    for program in programs(&String::from_utf8_lossy(&output.stdout)) {
        let listing = run_command(&program, &["--list", "--format", "terse"]);
        let listing = { listing }
            .output()
            .with_context(|| format!("can't run {}", program.target))?;
        if !listing.status.success() {
            bail!("{} can't list its tests", program.path.display());
        }
        for filter in listed(&String::from_utf8_lossy(&listing.stdout)) {
            let name = if program.package == program.target {
                format!("{}::{filter}", program.package)
            } else {
                format!("{}::{}::{filter}", program.package, program.target)
            };
            tests.push(HostTest {
                name,
                program: program.clone(),
                filter,
            });
        }
    }
    step.done();
    Ok(tests)
}

/// Finds test programs in Cargo's messages.
fn programs(messages: &str) -> Vec<Program> {
    let mut found = BTreeMap::new();
    for message in messages.lines() {
        let Ok(value) = serde_json::from_str::<Value>(message) else {
            continue;
        };
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let (Some(path), Some(manifest)) = (text("/executable"), text("/manifest_path")) else {
            continue;
        };
        if value.pointer("/profile/test") != Some(&Value::Bool(true)) {
            continue;
        }
        let folder = Path::new(manifest)
            .parent()
            .unwrap_or(Path::new("/"))
            .to_owned();
        let package = text("/package_id").map(package_name).unwrap_or_default();
        let target = text("/target/name").unwrap_or_default().replace('_', "-");
        let path = PathBuf::from(path);
        found.insert(
            path.clone(),
            Program {
                package,
                target,
                folder,
                path,
            },
        );
    }
    found.into_values().collect()
}

/// Takes the name out of `path+file:///…/folder#name@1.0` or `…/name#1.0`.
fn package_name(id: &str) -> String {
    let (before, after) = id.rsplit_once('#').unwrap_or((id, ""));
    let name = match after.split_once('@') {
        Some((name, _)) => name,
        None => before.rsplit('/').next().unwrap_or_default(),
    };
    name.to_owned()
}

/// Takes the names out of `--list --format terse`.
fn listed(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

fn run_command(program: &Program, args: &[&str]) -> Command {
    let mut command = Command::new(&program.path);
    command
        .args(args)
        .current_dir(&program.folder)
        .stdin(Stdio::null());
    command
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("CARGO_PKG_NAME", &program.package);
    command.env("RUST_BACKTRACE", "1");
    command
}

/// Runs tests, as many at once as there are processors; hands each verdict to `report`.
///
/// # Errors
///
/// When the folder for outputs can't be made.
pub fn run(
    tests: &[HostTest],
    long: bool,
    logs: &Path,
    report: &mut (dyn FnMut(Verdict) + Send),
) -> Result<()> {
    let dir = logs.join("host");
    fs::create_dir_all(&dir)?;
    let next = AtomicUsize::new(0);
    let report = Mutex::new(report);
    let workers = thread::available_parallelism().map_or(2, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = run_one(test, long, &dir);
                    let mut report = report
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    (*report)(verdict);
                }
            });
        }
    });
    Ok(())
}

fn run_one(test: &HostTest, long: bool, dir: &Path) -> Verdict {
    let started = Instant::now();
    let log = dir.join(format!("{}.txt", test.name.replace("::", ".")));
    let limit = if long { LONG_LIMIT } else { LIMIT };
    // Ignored tests run too: what can't run must fail, not vanish.
    let mut command = run_command(
        &test.program,
        &["--exact", &test.filter, "--include-ignored", "--nocapture"],
    );
    if long {
        command.env(LONG_VARIABLE, "1");
    }
    let ended = attempt(command, &log, limit);
    let output = fs::read_to_string(&log).unwrap_or_default();
    let failure = match ended {
        // A filter that matches nothing succeeds, too.
        Ok(Some(status)) if status.success() && output.contains("1 passed") => None,
        Ok(Some(status)) => Some(format!("{status}\n{output}")),
        Ok(None) => Some(format!("not done after {limit:?}, killed\n{output}")),
        Err(error) => Some(format!("{error:#}")),
    };
    let logs = if failure.is_some() {
        vec![log]
    } else {
        Vec::new()
    };
    Verdict {
        name: test.name.clone(),
        time: started.elapsed(),
        failure,
        logs,
    }
}

/// Runs a command with its output in a file; none when it had to be killed.
fn attempt(mut command: Command, log: &Path, limit: Duration) -> Result<Option<ExitStatus>> {
    let file = File::create(log)?;
    command.stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("can't start the test program")?;
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Runs the examples in documentation, all together: they have no names to pick by.
///
/// # Errors
///
/// When Cargo can't be run.
pub fn run_doc_tests(logs: &Path, report: &mut dyn FnMut(Verdict)) -> Result<()> {
    let step = Step::begin("running the examples in documentation");
    let started = Instant::now();
    let log = logs.join("doctests.txt");
    let mut command = place::cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    let ended = attempt(command, &log, LONG_LIMIT)?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let failure = match ended {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("{status}\n{text}")),
        None => Some("not done in an hour, killed".to_owned()),
    };
    step.done();
    let name = "documentation examples".to_owned();
    report(Verdict {
        name,
        time: started.elapsed(),
        failure,
        logs: vec![log],
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///r/api#ibmgr-api@0.1.0","#,
            r#""manifest_path":"/r/api/Cargo.toml","target":{"name":"ibmgr_api"},"#,
            r#""profile":{"test":true},"executable":"/t/debug/deps/ibmgr_api-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///r/ibctl#0.1.0","#,
            r#""manifest_path":"/r/ibctl/Cargo.toml","target":{"name":"ibctl"},"#,
            r#""profile":{"test":false},"executable":"/t/debug/ibctl"}"#,
        );
        let found = programs(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].package.as_str(), found[0].target.as_str()),
            ("ibmgr-api", "ibmgr-api")
        );
        assert_eq!(found[0].folder, Path::new("/r/api"));
        assert_eq!(package_name("path+file:///r/ibctl#0.1.0"), "ibctl");
    }

    #[test]
    fn listings_are_read() {
        assert_eq!(listed("a::b: test\nc: benchmark\nd: test\n"), ["a::b", "d"]);
    }

    #[test]
    fn a_hanging_program_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("30");
        let log = dir.path().join("log");
        let ended = attempt(command, &log, Duration::from_millis(50)).unwrap();
        assert!(ended.is_none());
    }
}
