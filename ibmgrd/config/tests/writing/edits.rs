// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `set --save` edits files that people write.

use ibmgr_api::{Assignment, Match};
use ibmgrd_config::save;

fn names(name: &str) -> Match {
    Match {
        name: vec![name.parse().expect("a pattern")],
        ..Match::default()
    }
}

fn values(pairs: &[(&str, &str)]) -> Vec<Assignment> {
    let assignment = |(name, text): &(&str, &str)| {
        let key: ibmgr_api::Key = name.parse().expect("a knob");
        let value = key.knob().domain.parse(text).expect(text);
        Assignment { key, value }
    };
    pairs.iter().map(assignment).collect()
}

#[track_caller]
fn assert_saved(before: &str, pairs: &[(&str, &str)], after: &str) {
    let saved = save("a.toml", before, &names("ib0"), "ib0", &values(pairs));
    assert_eq!(saved.as_deref(), Ok(after));
    let again = save("a.toml", after, &names("ib0"), "ib0", &values(pairs));
    assert_eq!(again.as_deref(), Ok(after), "saving twice is saving once");
}

#[test]
fn a_value_is_replaced_where_it_stands_and_all_else_stays() {
    let before = "\
# Rails.
[defaults]
txqueuelen = 5

[[link]]
match = { name = \"ib0\" } # the first

mtu   =  2044   # bytes
feature.rx-gro = true
ring = { rx = 5, tx = 6 } # both
\"channels.rx\" = 1
rx-usecs = { value = \"5us\", policy = \"report\" }

[[link.child]]
pkey = 0x8001
mtu = 1
";
    let after = "\
# Rails.
[defaults]
txqueuelen = 5

[[link]]
match = { name = \"ib0\" } # the first

mtu   =  4092   # bytes
feature.rx-gro = \"off\"
ring = { rx = 7, tx = 6 } # both
\"channels.rx\" = 2
rx-usecs = { value = \"9us\", policy = \"report\" }

[[link.child]]
pkey = 0x8001
mtu = 1
";
    let pairs = [
        ("mtu", "4092"),
        ("feature.rx-gro", "off"),
        ("ring.rx", "7"),
        ("channels.rx", "2"),
        ("rx-usecs", "9us"),
    ];
    assert_saved(before, &pairs, after);
}

#[test]
fn new_values_come_after_those_of_their_rule() {
    let before = "\
[[link]]
match = { name = \"ib0\" }
feature.rx-gro = true

[[link]]
match = { name = \"ib1\" }
mtu = 1
";
    let after = "\
[[link]]
match = { name = \"ib0\" }
feature.rx-gro = true
feature.rx-lro = \"on\"
mtu = 4092
private-flag.\"a.b\" = \"on\"

[[link]]
match = { name = \"ib1\" }
mtu = 1
";
    let pairs = [
        ("feature.rx-lro", "on"),
        ("mtu", "4092"),
        ("private-flag.a.b", "on"),
    ];
    assert_saved(before, &pairs, after);
}

#[test]
fn a_new_rule_comes_last_with_its_comment() {
    let rule = "# ib0\n[[link]]\nmatch = { name = \"ib0\" }\nmtu = 4092\n";
    assert_saved("", &[("mtu", "4092")], rule);
    let other = "[[link]]\nmatch = { name = \"ib*\" }\nmtu = 5";
    assert_saved(other, &[("mtu", "4092")], &format!("{other}\n\n{rule}"));
    let defaults = "[defaults]\nmtu = 1\n";
    assert_saved(defaults, &[("mtu", "4092")], &format!("{defaults}\n{rule}"));
}

#[test]
fn the_last_rule_of_that_match_is_the_one() {
    let rule = |mtu| format!("[[link]]\nmatch = {{ name = \"ib0\" }}\nmtu = {mtu}\n");
    let before = format!("{}{}", rule(1), rule(2));
    let after = format!("{}{}", rule(1), rule(3));
    assert_saved(&before, &[("mtu", "3")], &after);
}

#[test]
fn a_profile_of_another_file_is_no_mistake() {
    let before = "[[link]]\nmatch = { name = \"ib0\" }\nprofile = \"fast\"\n";
    assert_saved(before, &[("mtu", "3")], &format!("{before}mtu = 3\n"));
}

#[test]
fn what_cannot_be_edited_says_so_and_changes_nothing() {
    for (file, text, wanted) in [
        ("a.toml", "[[link]]\nmut = 5\n", "has no 'mut'"),
        ("a.toml", "[[link\n", "no TOML"),
        ("a.yaml", "", "only TOML"),
        (
            "a.toml",
            "link = [{ match = { name = \"ib0\" }, mtu = 5 }]\n",
            "not written as [[link]]",
        ),
        (
            "a.toml",
            "link = [{ match = { name = \"ib7\" }, mtu = 5 }]\n",
            "not written as [[link]]",
        ),
    ] {
        let errors = save(file, text, &names("ib0"), "", &values(&[("mtu", "3")])).expect_err(text);
        assert!(errors[0].to_string().contains(wanted), "{}", errors[0]);
    }
}
