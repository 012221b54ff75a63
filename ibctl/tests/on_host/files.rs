// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `check`, `plan`, `export` and `set --save` on real interfaces.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Done, Net, ibctl_path, value};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Writes a file, and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("it can be written");
        self.path(name).display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn ibctl(net: &Net, words: &[&str]) -> Done {
    net.program(ibctl_path(), words)
}

const RULES: &str = "\
[[link]]
match = { name = \"v*\" }
mtu = 1400
txqueuelen = 77

[[link]]
match = { name = \"v1\" }
mtu = { value = 1300, policy = \"report\" }
rps-cpus.rx-2 = \"local\"
";

#[test]
fn files_are_checked_without_a_kernel() {
    let net = Net::new();
    let folder = Folder::new();
    let good = folder.file("10-good.toml", RULES);
    assert_eq!(ibctl(&net, &["check", &good]).ok(), "1 file and 2 rules\n");
    let bad = folder.file(
        "20-bad.yaml",
        "link:\n- match: {name: v0}\n  mut: 5\n  state: upp\n",
    );
    let done = ibctl(&net, &["check", &good, &bad]);
    assert_eq!(done.status, 5, "{done:?}");
    for words in [
        &format!("  --> {bad}:3:3\n   |\n 3 |   mut: 5\n   |   ^^^ did you mean 'mtu'?") as &str,
        "error: state: 'upp' is not one of down, up",
    ] {
        assert!(done.stdout.contains(words), "{}", done.stdout);
    }
    assert!(
        done.stderr.contains("20-bad.yaml can't be used"),
        "{}",
        done.stderr
    );
    let whole = folder.0.path().display().to_string();
    let document = ibctl(&net, &["check", &whole, "-o", "json"]).json();
    assert_eq!(document["ok"], false);
    assert_eq!(document["rules"], 2);
    assert_eq!(document["files"][1]["state"], "unused");
    let finding = &document["findings"][0];
    assert_eq!(
        (&finding["line"], &finding["column"]),
        (&3.into(), &3.into()),
        "{finding}"
    );
    assert_eq!(finding["help"], "did you mean 'mtu'?");
    let missing = ibctl(&net, &["check", "/nowhere/at/all.toml"]);
    assert_eq!(missing.status, 5);
    assert!(
        missing.stdout.contains("No such file"),
        "{}",
        missing.stdout
    );
}

#[test]
fn a_plan_tells_each_step_with_its_declaration_and_changes_nothing() {
    let net = Net::with_veth();
    let folder = Folder::new();
    let file = folder.file("a.toml", RULES);
    let before = net.snapshot("v0") + &net.snapshot("v1");
    let document = ibctl(&net, &["plan", &file, "-o", "json"]).json();
    let steps = document["steps"].as_array().expect("a list");
    let shown: Vec<String> = steps
        .iter()
        .map(|step| {
            let text = |name: &str| step[name].as_str().unwrap_or("?").to_owned();
            let (link, knob, from, to) = (text("link"), text("knob"), text("from"), text("to"));
            format!(
                "{link} {knob} {from}->{to} line {} {}",
                step["origin"]["line"],
                text("policy")
            )
        })
        .collect();
    let online = net.sysfs("../../devices/system/cpu", "online");
    assert_eq!(
        shown,
        [
            "v1 mtu 1500->1300 line 8 report".to_owned(),
            "v1 txqueuelen 1000->77 line 4 heal".to_owned(),
            "v0 mtu 1500->1400 line 3 heal".to_owned(),
            "v0 txqueuelen 1000->77 line 4 heal".to_owned(),
            format!("v1 rps-cpus.rx-2 none->{online} line 9 heal"),
        ],
        "{document:#}"
    );
    assert_eq!(steps[0]["overrides"][0]["value"], "1400");
    let table = ibctl(&net, &["diff", &file]).ok();
    assert!(table.contains(&format!("{file}:8:1")), "{table}");
    assert!(
        table.contains(&format!("overrides 1400 of {file}:3:1")),
        "{table}"
    );
    assert_eq!(net.snapshot("v0") + &net.snapshot("v1"), before);
}

#[test]
fn a_plan_of_what_is_so_is_empty() {
    let net = Net::with_veth();
    let folder = Folder::new();
    let file = folder.file("a.toml", RULES);
    net.ibctl("set v0 mtu=1400 txqueuelen=77").ok();
    net.ibctl("set v1 mtu=1300 txqueuelen=77 rps-cpus.rx-2=local")
        .ok();
    assert_eq!(ibctl(&net, &["plan", &file]).ok(), "nothing to do\n");
    let document = ibctl(&net, &["plan", &file, "-o", "json"]).json();
    assert_eq!(document["steps"], Value::Array(Vec::new()));
    assert_eq!(document["already-so"].as_array().map(Vec::len), Some(5));
    net.ip("link set v1 mtu 1290");
    let document = ibctl(&net, &["plan", &file, "-o", "json"]).json();
    assert_eq!(document["steps"][0]["from"], "1290");
}

#[test]
fn what_cannot_be_done_is_told_beside_what_can() {
    let net = Net::with_veth();
    let folder = Folder::new();
    let text =
        "[[link]]\nmatch = { name = \"v0\" }\nmode = \"connected\"\nmtu = 90000\ntxqueuelen = 5\n";
    let file = folder.file("a.toml", text);
    let done = ibctl(&net, &["plan", &file, "-o", "json"]);
    assert_eq!(done.status, 6, "{done:?}");
    let document = done.json();
    let refused = document["refused"].as_array().expect("a list");
    let lines: Vec<_> = refused
        .iter()
        .map(|one| one["origin"]["line"].clone())
        .collect();
    assert_eq!(lines, [3, 4], "{document:#}");
    assert!(
        done.stderr.contains("nothing was changed"),
        "{}",
        done.stderr
    );
    let broken = folder.file("b.toml", "[[link]]\nmut = 5\n");
    let done = ibctl(&net, &["plan", &file, &broken]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (5, ""),
        "a broken file is no plan"
    );
    assert!(done.stderr.contains("b.toml:2:1"), "{}", done.stderr);
}

#[test]
fn an_export_plans_nothing() {
    let net = Net::with_veth();
    let folder = Folder::new();
    net.ibctl("set v0 mtu=1400 alias=rail rps-cpus.rx-1=0 feature.tx-generic-segmentation=off")
        .ok();
    let text = ibctl(&net, &["export", "v0", "v1"]).ok();
    let file = folder.file("all.toml", &text);
    assert_eq!(ibctl(&net, &["check", &file]).ok(), "1 file and 2 rules\n");
    assert_eq!(
        ibctl(&net, &["plan", &file]).ok(),
        "nothing to do\n",
        "{text}"
    );
    let json = ibctl(&net, &["export", "v0", "v1", "-o", "json"]).ok();
    let json = folder.file("all.json", &json);
    assert_eq!(ibctl(&net, &["plan", &json]).ok(), "nothing to do\n");
    // What is exported is what comes back.
    net.ibctl("set v0 mtu=1500 alias= rps-cpus.rx-1=none").ok();
    let document = ibctl(&net, &["plan", &file, "-o", "json"]).json();
    let knobs: Vec<_> = document["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|step| step["knob"].clone())
        .collect();
    assert_eq!(knobs, ["mtu", "alias", "rps-cpus.rx-1"], "{document:#}");
    let none = ibctl(&net, &["export"]).ok();
    assert!(none.starts_with("# there is no IPoIB interface"), "{none}");
}

#[test]
fn a_saved_set_is_declared_from_then_on() {
    let net = Net::with_veth();
    let folder = Folder::new();
    let file = folder.file(
        "90.toml",
        "# by hand\n[[link]]\nmatch = { name = \"v0\" } # the one\nmtu = 1500 # bytes\n",
    );
    let save = format!("--save={file}");
    let table = ibctl(&net, &["set", "v0", "mtu=1400", "txqueuelen=9", &save]).ok();
    assert!(table.ends_with(&format!("saved in {file}\n")), "{table}");
    let text = fs::read_to_string(&file).expect("it is there");
    let wanted = "# by hand\n[[link]]\nmatch = { name = \"v0\" } # the one\nmtu = 1400 # bytes\ntxqueuelen = 9\n";
    assert_eq!(text, wanted);
    assert_eq!(ibctl(&net, &["plan", &file]).ok(), "nothing to do\n");
    let document = ibctl(&net, &["set", "v1", "mtu=1400", "-o", "json", &save]).json();
    assert_eq!(document["saved"], file);
    let text = fs::read_to_string(&file).expect("it is there");
    assert_eq!(
        text,
        format!("{wanted}\n# v1\n[[link]]\nmatch = {{ name = \"v1\" }}\nmtu = 1400\n")
    );
}

#[test]
fn what_fails_or_cannot_be_saved_leaves_the_file() {
    let net = Net::with_veth();
    let folder = Folder::new();
    let file = folder.file("90.toml", "");
    let refused = ibctl(&net, &["set", "v0", "mtu=90000", &format!("--save={file}")]);
    assert_ne!(refused.status, 0);
    assert_eq!(fs::read_to_string(&file).expect("there"), "");
    let broken = folder.file("91.toml", "[[link\n");
    let done = ibctl(
        &net,
        &["set", "v0", "mtu=1400", &format!("--save={broken}")],
    );
    assert_eq!(done.status, 5, "{done:?}");
    assert!(
        done.stderr.contains("the values are set, but not saved"),
        "{}",
        done.stderr
    );
    assert_eq!(value(&net, "v0", "mtu", ""), "1400");
    assert_eq!(fs::read_to_string(&broken).expect("there"), "[[link\n");
    let done = ibctl(
        &net,
        &["set", "v0", "mtu=1400", "--save=/proc/nowhere/a.toml"],
    );
    assert_eq!(done.status, 15, "{done:?}");
}
