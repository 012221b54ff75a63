// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What right files declare.

use ibmgr_api::{Desired, Match, Pkey};

use crate::support::{desired, load, values};

const SAMPLE_TOML: &str = include_str!("../samples/fabric.toml");
const SAMPLE_YAML: &str = include_str!("../samples/fabric.yaml");

fn without_origins(desired: &Desired) -> Vec<(Match, String)> {
    let rules = desired.rules.iter();
    rules
        .map(|rule| (rule.matches.clone(), values(rule)))
        .collect()
}

#[test]
fn toml_and_yaml_mean_the_same() {
    let toml = desired("fabric.toml", SAMPLE_TOML);
    let yaml = desired("fabric.yaml", SAMPLE_YAML);
    assert_eq!(without_origins(&toml), without_origins(&yaml));
    assert!(toml.rules.len() >= 5, "{toml:?}");
}

#[test]
fn every_kind_of_value_is_read() {
    let text = r#"
[[link]]
match = { name = "ib0" }
mode = "datagram"
mtu = 2044
gro-max-size = 0x1_0000
state = "up"
adaptive-rx = true
gro-flush-timeout = "20us"
ring.rx = 512
"ring.tx" = "512"
feature.rx-gro = "on"
private-flag."a.b" = false
alias = ""
"#;
    let desired = desired("a.toml", text);
    assert_eq!(
        values(&desired.rules[0]),
        "adaptive-rx=on heal, alias= heal, feature.rx-gro=on heal, gro-flush-timeout=20us heal, \
         gro-max-size=65536 heal, mode=datagram heal, mtu=2044 heal, private-flag.a.b=off heal, \
         ring.rx=512 heal, ring.tx=512 heal, state=up heal"
    );
}

#[test]
fn yaml_words_are_texts_until_their_key_says_more() {
    let text = "\
link:
- match: {name: ib0}
  state: up
  adaptive-rx: yes
  adaptive-tx: off
  mtu: 0x7fc
  alias: ''
  rx-usecs: 16us
";
    let desired = desired("a.yaml", text);
    assert_eq!(
        values(&desired.rules[0]),
        "adaptive-rx=on heal, adaptive-tx=off heal, alias= heal, mtu=2044 heal, rx-usecs=16us heal, state=up heal"
    );
}

#[test]
fn aliases_of_yaml_are_what_they_name() {
    let text = "\
link:
- match: &port {driver: ib_ipoib, child: false}
  mtu: &mtu 2044
- match: *port
  txqueuelen: *mtu
";
    let desired = desired("a.yml", text);
    assert_eq!(desired.rules[0].matches, desired.rules[1].matches);
    assert_eq!(values(&desired.rules[1]), "txqueuelen=2044 heal");
}

#[test]
fn every_condition_is_read() {
    let text = r#"
[[link]]
match = { name = ["ib0", "ib[1-3]"], driver = "ipoib_batch", path = "*/0000:03:00.?", guid = "0002:c903:00ab:cdef", pkey = [0x8001, "0x0002"], parent = "ib0", kind = "ipoib", child = true }
mtu = 2044
"#;
    let desired = desired("a.toml", text);
    let matches = &desired.rules[0].matches;
    let names: Vec<_> = matches.name.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ib0", "ib[1-3]"]);
    assert_eq!(matches.guid[0].to_string(), "0002:c903:00ab:cdef");
    assert_eq!(
        matches.pkey,
        [
            Pkey::new(0x8001).expect("good"),
            Pkey::new(2).expect("good")
        ]
    );
    assert_eq!(matches.is_child, Some(true));
    assert_eq!(
        (
            matches.driver.len(),
            matches.path.len(),
            matches.parent.len(),
            matches.kind.len()
        ),
        (1, 1, 1, 1)
    );
}

#[test]
fn defaults_count_for_the_files_interfaces_and_give_way_to_any_rule() {
    let text = r#"
[defaults]
policy = "report"
mtu = 2044
txqueuelen = 256

[[link]]
match = { name = "ib*" }
mtu = 4092

[[link]]
match = { name = "ib1" }
policy = "heal"
rx-usecs = "8us"
"#;
    let desired = desired("a.toml", text);
    let all: Vec<_> = desired.rules.iter().map(values).collect();
    assert_eq!(
        all,
        [
            "mtu=2044 report, txqueuelen=256 report",
            "mtu=2044 report, txqueuelen=256 report",
            "mtu=4092 report",
            "rx-usecs=8us heal",
        ]
    );
    assert_eq!(desired.rules[1].matches, desired.rules[3].matches);
}

#[test]
fn profiles_come_before_own_values_and_from_any_file() {
    let profiles = r#"
[profile.latency]
policy = "report"
rx-usecs = 0
rx-frames = 1
[profile.bulk]
rx-usecs = "64us"
"#;
    let rules = r#"
[[link]]
match = { name = "ib0" }
profile = ["latency", "bulk"]
rx-frames = { value = 2, policy = "ignore" }

[[link.child]]
pkey = 0x8001
profile = "latency"
"#;
    let loaded = load(&[("10.toml", rules), ("20.toml", profiles)]);
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(
        values(&loaded.desired.rules[0]),
        "rx-frames=2 ignore, rx-usecs=64us heal, [0x8001 any - there heal], +rx-frames=1 report, +rx-usecs=0 report"
    );
    let usecs = "rx-usecs".parse().expect("a knob");
    let origin = &loaded.desired.rules[0].settings[&usecs].origin;
    assert_eq!(origin.to_string(), "20.toml:7:1", "where the value stands");
}

#[test]
fn children_inherit_the_rules_policy() {
    let text = r#"
[[link]]
match = { guid = "0002:c903:00ab:cdef" }
policy = "report"

[[link.child]]
pkey = 0x8001
name = "storage"
kind = "legacy"
mtu = 2044

[[link.child]]
pkey = "0x0002"
present = false
policy = "heal"
"#;
    let desired = desired("a.toml", text);
    assert_eq!(
        values(&desired.rules[0]),
        "[0x8001 legacy storage there report], +mtu=2044 report, [0x0002 any - gone heal]"
    );
    let origin = &desired.rules[0].children[0].origin;
    assert_eq!((origin.line, origin.column), (6, 1));
    assert_eq!(desired.rules[0].origin.line, 2);
}

#[test]
fn files_of_nothing_declare_nothing() {
    for (file, text) in [
        ("a.toml", ""),
        ("a.toml", "# nothing\n"),
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n"),
        ("a.yaml", "---\n"),
        ("a.yaml", "link:\n"),
        ("a.toml", "\u{feff}link = []\n"),
        ("a.json", "{\"link\": []}"),
    ] {
        assert_eq!(desired(file, text), Desired::default(), "{file}: {text:?}");
    }
}

#[test]
fn what_the_manual_shows_is_right_and_the_same_in_both_languages() {
    let page = include_str!("../../../../docs/configuration.md");
    let block = |language: &str| {
        let (_, after) = page
            .split_once(&format!("```{language}\n"))
            .expect("a block");
        let (block, _) = after.split_once("```").expect("its end");
        desired(&format!("manual.{language}"), block)
    };
    assert_eq!(
        without_origins(&block("toml")),
        without_origins(&block("yaml"))
    );
}
