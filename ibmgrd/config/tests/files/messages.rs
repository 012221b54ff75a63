// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is said of wrong files: all of it, where, and what would be right.

use ibmgrd_config::{Source, Store};

use crate::support::{findings, load};

#[track_caller]
fn assert_found(file: &str, text: &str, wanted: &[&str]) {
    assert_eq!(findings(file, text), wanted, "{text}");
}

#[test]
fn all_that_is_wrong_with_a_file_is_told() {
    let text = r#"
[[link]]
match = { nmae = "ib0", guid = "1:2" }
mut = 2044
state = "upp"
mtu = "many"
profil = "x"

[links]
[[link]]
txqueuelen = 5
"#;
    assert_found(
        "a.toml",
        text,
        &[
            "3:11: a match has no 'nmae' | did you mean 'name'?",
            "3:32: '1:2' is no port GUID: write its 8 bytes as 0002:c903:00ab:cdef",
            "4:1: a rule has no 'mut' | did you mean 'mtu'?",
            "5:9: state: 'upp' is not one of down, up | did you mean 'up'?",
            "6:7: mtu: 'many' is not a value; expected 0 to 2147483647 bytes",
            "7:1: a rule has no 'profil' | did you mean 'profile'?",
            "9:2: a file has no 'links' | did you mean 'link'?",
            "10:1: this rule does not say which interfaces it is for | add match = { name = \"ib0\" }, or '*' for every interface",
        ],
    );
}

#[test]
fn yaml_is_told_at_its_places() {
    let text = "\
link:
  - match: {name: 'ib[3-0]'}
    mtu:
    mode: conected
    child:
      - pkey: 0x8000
      - name: a/b
        kind: netlnk
";
    assert_found(
        "a.yaml",
        text,
        &[
            "2:19: 'ib[3-0]' has the range '3-0', which is empty",
            "3:5: mtu has no value | expected 0 to 2147483647 bytes",
            "4:11: mode: 'conected' is not one of datagram, connected | did you mean 'connected'?",
            "6:15: P_Key 0x8000 names no partition: its low 15 bits are zero",
            "7:9: this child has no P_Key | add pkey = 0x8001",
            "7:15: 'a/b' cannot name an interface: 1 to 127 bytes without white space, '/' or ':'",
            "8:15: 'netlnk' is no kind | did you mean 'netlink'?",
        ],
    );
}

#[test]
fn syntax_errors_are_told_with_their_place() {
    let found = findings(
        "a.toml",
        "[[link]]\nmatch = { name = \"ib0\" }\nmtu = \nmode = datagram\n",
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("3:") && found[1].starts_with("4:"),
        "{found:?}"
    );
    let found = findings("a.yaml", "link:\n  - match: {name: ib0\n    mtu: 5\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("this is no YAML"), "{found:?}");
    let twice = findings(
        "a.toml",
        "[[link]]\nmatch = {name=\"a\"}\nmtu = 1\nmtu = 2\n",
    );
    assert!(
        twice[0].starts_with("4:1: this is no TOML: duplicate key"),
        "{twice:?}"
    );
}

#[test]
fn shapes_are_told() {
    for (text, wanted) in [
        (
            "link = 5",
            "1:1: 'link' is a list of tables, and this is a value | write [[link]] in TOML, '- match: …' in YAML",
        ),
        (
            "[link]\nmtu = 5",
            "1:2: 'link' is a list of tables, and this is a table | write [[link]] in TOML, '- match: …' in YAML",
        ),
        (
            "link = [5]",
            "1:9: each item of 'link' is a table, and this is a value",
        ),
        (
            "defaults = []",
            "1:12: defaults is a table, and this is a list",
        ),
        (
            "profile = 5",
            "1:11: 'profile' is a table, and this is a value",
        ),
        (
            "profile.x = 5",
            "1:13: a profile is a table, and this is a value",
        ),
        (
            "[defaults]\nmtu = [5]",
            "2:7: mtu has one value, and this is a list",
        ),
        (
            "[defaults]\nmtu = { policy = \"heal\" }",
            "2:1: mtu has no value; write { value = …, policy = … }",
        ),
        (
            "[defaults]\nmtu = { value = 5, polcy = 1 }",
            "2:20: mtu has no 'polcy' | did you mean 'policy'?",
        ),
        (
            "[defaults]\npolicy = \"hael\"",
            "2:10: 'hael' is no policy | did you mean 'heal'?",
        ),
        (
            "[defaults]\nfeature = true",
            "2:1: 'feature' is not complete: write feature.NAME, with a name that the device lists",
        ),
        (
            "[defaults]\nring = 5",
            "2:1: defaults has no 'ring' | did you mean 'ring.rx' ?",
        ),
        (
            "[defaults]\nring.rxx = 5",
            "2:6: defaults has no 'ring.rxx' | did you mean 'ring.rx'?",
        ),
        (
            "[[link]]\nmatch = {}",
            "2:1: this match has no condition, and matches nothing | write { name = \"*\" } for every interface",
        ),
        (
            "[[link]]\nmatch = { name = [] }",
            "2:18: 'name' has no alternatives, and matches nothing",
        ),
        (
            "[[link]]\nmatch = { child = 1 }",
            "2:19: 'child' is true or false, not '1'",
        ),
        (
            "[[link]]\nmatch = { mac = \"x\" }",
            "2:11: a match has no 'mac' | match on 'guid', the last 8 bytes: the others change with the QPN",
        ),
        (
            "[[link]]\nmatch = { name = \"a\" }\nprofile = 7\n",
            "3:11: no profile is called '7' | no file that can be read has a [profile.7]",
        ),
    ] {
        let wanted = wanted.replace(" ?", "?");
        let found = findings("a.toml", text);
        assert_eq!(found, [wanted], "{text}");
    }
}

#[test]
fn a_whole_address_is_told_what_stays_of_it() {
    let address = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ab:cd:ef";
    let text = format!("[[link]]\nmatch = {{ guid = \"{address}\" }}\n");
    let found = findings("a.toml", &text);
    assert!(found[0].contains("0002:c903:00ab:cdef"), "{found:?}");
}

#[test]
fn a_child_twice_and_values_of_none_are_told() {
    let child = "[[link.child]]\npkey = 0x8001\n";
    let text = format!(
        "[[link]]\nmatch = {{ name = \"ib0\" }}\n{child}{}",
        child.replace("80", "00")
    );
    assert_found(
        "a.toml",
        &text,
        &["5:1: the rule has this child twice; line 3 has it, too"],
    );
    let text = format!("[[link]]\nmatch = {{ name = \"ib0\" }}\n{child}present = false\nmtu = 5\n");
    let loaded = load(&[("a.toml", &text)]);
    assert!(
        !loaded.has_errors() && loaded.diagnostics.len() == 1,
        "{:?}",
        loaded.diagnostics
    );
    assert_eq!(
        loaded.desired.rules.len(),
        1,
        "a warning takes nothing away"
    );
}

#[test]
fn yaml_that_grows_or_nests_without_end_is_refused() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for at in 1..12 {
        let before = format!("*a{}", at - 1);
        let items = vec![before; 10].join(",");
        text.push_str(&format!("a{at}: &a{at} [{items}]\n"));
    }
    let found = findings("a.yaml", &text);
    assert!(found[0].contains("stand for over"), "{found:?}");
    for (file, text) in [
        ("a.yaml", format!("a: {}", "[".repeat(5000))),
        ("a.yaml", format!("{}x: 1", "- ".repeat(3000))),
        (
            "a.toml",
            format!("a = {}{}", "[".repeat(60), "]".repeat(60)),
        ),
        ("a.toml", format!("a = {}", "[".repeat(50_000))),
        ("a.toml", format!("{}a = 1", "a.".repeat(5000))),
    ] {
        assert!(!findings(file, &text).is_empty(), "{file}");
    }
    let found = findings("a.yaml", "a: &x [*x]\n");
    assert!(!found.is_empty());
    let found = findings("a.yaml", "defaults:\n  <<: {mtu: 5}\n");
    assert_eq!(
        found,
        ["2:3: merge keys are not read; name a profile instead"]
    );
    let found = findings("a.yaml", "defaults: {}\n---\ndefaults: {}\n");
    assert!(
        found[0].starts_with("2:1: a file holds one document"),
        "{found:?}"
    );
}

#[test]
fn a_childs_name_is_short() {
    let text = "[[link]]\nmatch = { name = \"ib0\" }\n[[link.child]]\npkey = 1\nname = \"sixteen-letters-\"\n";
    assert_found(
        "a.toml",
        text,
        &["5:8: 'sixteen-letters-' has more than 15 bytes, and names no child"],
    );
}

#[test]
fn what_is_no_text_is_told() {
    let bytes = |bytes: &[u8]| {
        let source = Source {
            file: "a.toml".into(),
            content: Ok(bytes.to_vec()),
        };
        Store::new().load(vec![source])
    };
    let loaded = bytes(b"# ok\nmtu = \xff\n");
    assert_eq!(loaded.diagnostics[0].origin.line, 2);
    assert!(loaded.diagnostics[0].message.contains("UTF-8"));
    let loaded = bytes(&vec![b' '; 2 << 20]);
    assert!(loaded.diagnostics[0].message.contains("more than"));
}

#[test]
fn findings_are_bounded() {
    let mut text = String::from("[defaults]\n");
    for at in 0..5000 {
        text.push_str(&format!("x{at} = 1\n"));
    }
    let found = findings("a.toml", &text);
    assert_eq!(found.len(), 101);
    assert!(found[100].contains("4900 findings more"), "{}", found[100]);
}
