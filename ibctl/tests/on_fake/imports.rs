// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `import`: the samples of `ibmgrd-import` as files of ours, and what goes wrong with files.

use std::fs;
use std::path::{Path, PathBuf};

use ibmgr_api::{Desired, Origin, Plan};
use ibmgrd_config::Store;
use ibmgrd_import::{Format, Options, Source};

use crate::fake::Fake;
use crate::{Done, golden, run};

/// The samples, from the folder that tests of this package run in.
const SAMPLES: &str = "../ibmgrd/import/tests/samples";

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

/// Returns each sample as a command line, with its format.
pub(crate) fn lines() -> Vec<(Format, String)> {
    let mut lines = Vec::new();
    for format in Format::ALL {
        for case in folders(&Path::new(SAMPLES).join(format.name())) {
            let line = format!("import --from {format} {}", case.display());
            lines.push((format, line));
        }
    }
    lines
}

#[test]
fn every_sample_becomes_a_file() {
    for format in Format::ALL {
        let lines: Vec<String> = lines()
            .into_iter()
            .filter(|(of, _)| *of == format)
            .map(|(_, line)| line)
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        golden(&format!("import-{format}"), &Fake::host(), &lines);
    }
}

/// Reads a file of ours, which must be right in every way.
#[track_caller]
fn checked(text: &str) -> Desired {
    let source = ibmgrd_config::Source {
        file: "50-import.toml".into(),
        content: Ok(text.as_bytes().to_vec()),
    };
    let loaded = Store::new().load(vec![source]);
    let wrong: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{text}\n{}", wrong.join("\n"));
    loaded.desired
}

/// Returns the declarations as if all of them stood in one place.
fn without_places(mut desired: Desired) -> Desired {
    let nowhere = Origin::whole("nowhere");
    for rule in &mut desired.rules {
        rule.origin = nowhere.clone();
        for declared in rule.settings.values_mut() {
            declared.origin = nowhere.clone();
        }
        for child in &mut rule.children {
            child.origin = nowhere.clone();
            for declared in child.settings.values_mut() {
                declared.origin = nowhere.clone();
            }
        }
    }
    desired
}

fn files(path: &Path) -> Vec<Source> {
    if path.is_dir() {
        return folders(path).iter().flat_map(|path| files(path)).collect();
    }
    let bytes = fs::read(path).expect("a file");
    vec![Source::new(&path.to_string_lossy(), bytes).expect("UTF-8")]
}

#[test]
fn a_file_of_an_import_says_what_was_imported() {
    let mut count = 0;
    for (format, line) in lines() {
        let path = line.rsplit(' ').next().expect("a path");
        let sources = files(Path::new(path));
        let import = ibmgrd_import::import(format, &sources, Options::default()).expect(path);
        let done = run(&Fake::host(), &line);
        if import.desired.rules.is_empty() {
            assert_eq!(done.stdout, "", "{path}");
            continue;
        }
        let read = without_places(checked(&done.stdout));
        assert_eq!(
            read,
            without_places(import.desired),
            "{path}\n{}",
            done.stdout
        );
        count += 1;
    }
    assert!(count > 15, "only {count} samples with rules");
}

/// Imports one file and plans what it declares, for the only interface of the fake that it is for.
#[track_caller]
fn planned(format: Format, name: &str, text: &str) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a write");
    let line = format!("import --from {format} --all-kinds {}", path.display());
    let done = run(&Fake::host(), &line);
    let desired = checked(&done.stdout);
    let links: Vec<_> = Fake::host().links.into_values().collect();
    let wants = ibmgrd_engine::resolve(&desired, &links);
    let [wants] = &wants[..] else {
        panic!("{wants:?}");
    };
    let link = links
        .iter()
        .find(|link| link.index == wants.index)
        .expect("it is there");
    ibmgrd_engine::plan(link, &wants.assignments()).expect("a plan")
}

fn steps(plan: &Plan) -> Vec<String> {
    let step = |step: &ibmgr_api::Step| {
        format!("{} = {}", step.key, step.to.show(&step.key.knob().domain))
    };
    plan.steps.iter().map(step).collect()
}

#[test]
fn an_import_for_ipoib_plans() {
    let text = "DEVICE=ib0\nTYPE=InfiniBand\nCONNECTED_MODE=yes\nMTU=65520\n\
                ETHTOOL_OPTS=\"-C ib0 rx-usecs 20; -K ib0 gro on\"\n";
    let plan = planned(Format::Ifcfg, "ifcfg-ib0", text);
    assert_eq!(plan.link.as_str(), "ib0");
    assert_eq!(
        steps(&plan),
        ["mode = connected", "mtu = 65520", "rx-usecs = 20us"]
    );
    assert_eq!(plan.skips.len(), 1, "{:?}", plan.skips);
}

#[test]
fn an_import_for_veth_plans() {
    let text = "[Match]\nOriginalName=storage0\n[Link]\nMTUBytes=8K\nAlias=rail 0\n";
    let plan = planned(Format::Networkd, "10-a.link", text);
    assert_eq!(plan.link.as_str(), "storage0");
    assert_eq!(steps(&plan), ["mtu = 8192", "alias = rail 0"]);
}

#[test]
fn rules_and_report_are_one_document() {
    let path = format!("{SAMPLES}/ifcfg/suse");
    golden(
        "import-json",
        &Fake::host(),
        &[
            &format!("import --from ifcfg {path} -o json"),
            &format!("import --from openib {SAMPLES}/openib/modprobe -o json"),
        ],
    );
}

#[test]
fn what_is_wrong_with_files_is_told() {
    golden(
        "import-wrong",
        &Fake::host(),
        &[
            "import --from ifcfg tests/none",
            "import --from nmstate Cargo.toml",
            "import --from netplan Cargo.toml ../ibmgrd/import/Cargo.toml",
            "import --from wicked Cargo.toml",
            "import --from ifcfg src",
            "import --from ifcg src",
            "import --from ifcfg",
            "import src",
            "import --from ifcfg src --force",
            "import --from ifcfg src --to src",
            "import --from ifcfg src --to Cargo.toml",
            "import --from nmstate Cargo.toml -o json",
        ],
    );
}

fn import(to: &Path, more: &str) -> Done {
    let line = format!(
        "import --from ifcfg {SAMPLES}/ifcfg/suse --to {} {more}",
        to.display()
    );
    run(&Fake::host(), &line)
}

#[test]
fn a_file_is_written_and_never_replaced_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("50-ib.toml");
    let done = import(&to, "");
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, ""),
        "{}",
        done.stderr
    );
    let text = fs::read_to_string(&to).expect("the file");
    let shown = run(
        &Fake::host(),
        &format!("import --from ifcfg {SAMPLES}/ifcfg/suse"),
    );
    assert_eq!(text, shown.stdout);
    fs::write(&to, "mine\n").expect("a write");
    let done = import(&to, "");
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("--force replaces it"),
        "{}",
        done.stderr
    );
    assert_eq!(fs::read_to_string(&to).expect("the file"), "mine\n");
    assert_eq!(import(&to, "--force").status, 0);
    assert_eq!(fs::read_to_string(&to).expect("the file"), text);
    let left = folders(folder.path());
    assert_eq!(left, [to]);
}

#[test]
fn a_file_of_nothing_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("a.toml");
    let line = format!(
        "import --from openib {SAMPLES}/openib/modprobe --to {}",
        to.display()
    );
    let done = run(&Fake::host(), &line);
    assert_eq!((done.status, done.stdout.as_str()), (5, ""));
    assert!(
        done.stderr.contains("send_queue_size=512"),
        "{}",
        done.stderr
    );
    assert!(folders(folder.path()).is_empty());
}

#[test]
fn huge_and_binary_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ifcfg-ib0");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("a write");
    let line = format!("import --from ifcfg {}", path.display());
    let done = run(&Fake::host(), &line);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("more than 1048576 bytes"),
        "{}",
        done.stderr
    );
    fs::write(&path, b"DEVICE=ib0\nMTU=\xff\n").expect("a write");
    let done = run(&Fake::host(), &line);
    assert_eq!(done.status, 5);
    assert!(
        done.stderr.contains("ifcfg-ib0:2: is not UTF-8 text"),
        "{}",
        done.stderr
    );
}
