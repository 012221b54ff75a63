// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One declaration, one meaning.

use ibmgr_api::{Channel, ChildKind, Desired, LinkWants, Match, Pkey, Reading, Rule, Value};
use ibmgrd_engine::{keys_of_parts, resolve};

use crate::model::{child, child_of, key, names, origin, port, rule, settings};

fn value(wants: &LinkWants, name: &str) -> String {
    let key = key(name);
    let want = &wants.settings[&key];
    want.declared.value.show(&key.knob().domain)
}

fn of<'a>(wants: &'a [LinkWants], link: &str) -> &'a LinkWants {
    let wants = wants.iter().find(|wants| wants.link.as_str() == link);
    wants.expect("the interface is managed")
}

#[test]
fn a_later_rule_wins_knob_by_knob_and_tells_what_it_overrides() {
    let rules = vec![
        rule(1, names("ib*"), &[("mtu", "2044"), ("txqueuelen", "256")]),
        rule(5, names("ib1"), &[("mtu", "4092")]),
        rule(9, names("ib9"), &[("mtu", "68")]),
    ];
    let wants = resolve(&Desired { rules }, &[port(1), port(2)]);
    assert_eq!(value(of(&wants, "ib1"), "mtu"), "4092");
    assert_eq!(value(of(&wants, "ib1"), "txqueuelen"), "256");
    assert_eq!(value(of(&wants, "ib2"), "mtu"), "2044");
    let mtu = &of(&wants, "ib1").settings[&key("mtu")];
    assert_eq!(mtu.declared.origin, origin(5));
    let overridden: Vec<_> = mtu.overridden.iter().map(|one| one.origin.line).collect();
    assert_eq!(overridden, [1]);
    assert_eq!(of(&wants, "ib2").settings[&key("mtu")].overridden, []);
}

#[test]
fn all_queues_are_each_queue_without_a_value_of_its_own() {
    let mut link = port(1);
    for queue in ["rx-0", "rx-1", "all"] {
        let reading = Reading::settable(Value::Text(String::new()), Channel::Sysfs);
        link.readings
            .insert(key(&format!("rps-cpus.{queue}")), reading);
    }
    let rules = vec![
        rule(1, names("ib*"), &[("rps-cpus.rx-1", "3")]),
        rule(
            2,
            names("ib*"),
            &[("rps-cpus.all", "0-1"), ("xps-cpus.all", "2")],
        ),
    ];
    let desired = Desired { rules };
    let asked = keys_of_parts(&desired);
    let names: Vec<_> = asked.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["rps-cpus.all", "xps-cpus.all", "rps-cpus.rx-1"]);
    let wants = resolve(&desired, &[link]);
    let wants = of(&wants, "ib1");
    assert_eq!(value(wants, "rps-cpus.rx-0"), "0-1");
    assert_eq!(
        wants.settings[&key("rps-cpus.rx-0")].declared.origin,
        origin(2)
    );
    assert_eq!(value(wants, "rps-cpus.rx-1"), "3");
    // The device has told nothing of transmit queues: that it has none is to be told, not forgotten.
    assert_eq!(value(wants, "xps-cpus.all"), "2");
    assert_eq!(wants.settings.len(), 3);
}

#[test]
fn a_device_is_a_whole_until_something_is_wanted_of_one_instance() {
    let mut link = port(1);
    for number in 0..3 {
        let key = key(&format!("gro-flush-timeout-of.napi-{number}"));
        link.readings
            .insert(key, Reading::settable(Value::Number(0), Channel::Netdev));
    }
    let whole = rule(1, names("ib*"), &[("gro-flush-timeout", "20us")]);
    let one = rule(2, names("ib*"), &[("gro-flush-timeout-of.napi-1", "1us")]);
    let keys = |rules: Vec<Rule>| {
        let wants = resolve(&Desired { rules }, std::slice::from_ref(&link));
        let settings = of(&wants, "ib1").settings.keys();
        settings.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(keys(vec![whole.clone()]), ["gro-flush-timeout"]);
    assert_eq!(keys(vec![one.clone()]), ["gro-flush-timeout-of.napi-1"]);
    let parts = [0, 1, 2].map(|number| format!("gro-flush-timeout-of.napi-{number}"));
    assert_eq!(keys(vec![one, whole]), parts);
}

#[test]
fn interfaces_without_a_rule_are_not_managed() {
    let rules = vec![
        rule(1, names("ib1"), &[("mtu", "2044")]),
        rule(2, Match::default(), &[("mtu", "68")]),
        rule(3, names("ib2"), &[]),
    ];
    let wants = resolve(&Desired { rules }, &[port(1), port(2), port(3)]);
    let names: Vec<_> = wants.iter().map(|wants| wants.link.as_str()).collect();
    assert_eq!(names, ["ib1"]);
}

#[test]
fn children_are_of_ports_and_never_of_children() {
    let mut all = rule(1, names("*"), &[("mtu", "2044")]);
    all.children = vec![child(2, 0x8001, &[])];
    let parent = port(1);
    let links = [parent.clone(), child_of(&parent, 7, 0x8001)];
    let wants = resolve(&Desired { rules: vec![all] }, &links);
    assert_eq!(of(&wants, "ib1").children.len(), 1);
    assert_eq!(of(&wants, "ib1.8001").children, []);
}

#[test]
fn a_present_child_is_found_whatever_its_full_member_bit() {
    let parent = port(1);
    let links = [
        parent.clone(),
        child_of(&parent, 7, 0x0001),
        child_of(&port(2), 8, 0x0001),
    ];
    for pkey in [0x0001, 0x8001] {
        let mut rule = rule(1, names("ib1"), &[("mtu", "4092")]);
        rule.children = vec![child(2, pkey, &[("mtu", "2044")])];
        let wants = resolve(&Desired { rules: vec![rule] }, &links);
        let children = &of(&wants, "ib1").children;
        let present: Vec<_> = children[0]
            .present
            .iter()
            .map(|(_, index)| *index)
            .collect();
        assert_eq!(present, [7]);
        assert!(children[0].settings.is_empty(), "they are the interface's");
        assert_eq!(value(of(&wants, "ib1.0001"), "mtu"), "2044");
        assert_eq!(wants.len(), 2, "the other port's child is not managed");
    }
}

#[test]
fn a_missing_child_knows_its_name_and_all_its_values() {
    let mut ports = rule(
        1,
        Match {
            is_child: Some(false),
            ..names("ib*")
        },
        &[("mtu", "4092")],
    );
    ports.children = vec![child(3, 0x8001, &[("mtu", "2044")])];
    let partition = Match {
        pkey: Pkey::new(1).into_iter().collect(),
        ..Match::default()
    };
    let by_partition = rule(5, partition, &[("txqueuelen", "9")]);
    let rules = vec![ports, by_partition];
    let wants = resolve(&Desired { rules }, &[port(1)]);
    let missing = &of(&wants, "ib1").children[0];
    assert_eq!(
        missing.name_to_be.as_ref().map(|name| name.as_str()),
        Some("ib1.8001")
    );
    let settings: Vec<_> = missing
        .assignments()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(settings, ["mtu=2044", "txqueuelen=9"]);
    let again = resolve(
        &Desired { rules: Vec::new() },
        &[port(1), child_of(&port(1), 7, 0x8001)],
    );
    assert_eq!(again, []);
}

#[test]
fn an_unwanted_child_gets_no_values() {
    let mut rule = rule(1, names("ib1"), &[]);
    let mut gone = child(2, 0x8001, &[]);
    gone.is_present = false;
    rule.children = vec![gone];
    let wants = resolve(&Desired { rules: vec![rule] }, &[port(1)]);
    let child = &of(&wants, "ib1").children[0];
    assert!(!child.is_present && child.settings.is_empty() && child.present.is_empty());
}

#[test]
fn the_last_declaration_of_a_child_counts_and_values_add_up() {
    let declare = |line, kind, pairs: &[(&str, &str)]| {
        let mut child = child(line, 0x8001, pairs);
        child.kind = kind;
        Rule {
            children: vec![child],
            ..rule(line, names("ib1"), &[])
        }
    };
    let rules = vec![
        declare(
            1,
            Some(ChildKind::Legacy),
            &[("mtu", "2044"), ("umcast", "ignore")],
        ),
        declare(5, Some(ChildKind::Netlink), &[("mtu", "4092")]),
    ];
    let wants = resolve(&Desired { rules }, &[port(1)]);
    let children = &of(&wants, "ib1").children;
    assert_eq!(children.len(), 1);
    let child = &children[0];
    assert_eq!(
        (child.kind, &child.origin),
        (Some(ChildKind::Netlink), &origin(5))
    );
    assert_eq!(child.overridden, [origin(1)]);
    let values: Vec<_> = child
        .assignments()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(values, ["mtu=4092", "umcast=ignore"]);
}

#[test]
fn a_named_child_is_that_one_only() {
    let parent = port(1);
    let mut named = child(2, 0x8001, &[("mtu", "2044")]);
    named.name = Some("storage".parse().expect("a name"));
    let mut rule = rule(1, names("ib1"), &[]);
    rule.children = vec![named];
    let other = child_of(&parent, 7, 0x8001);
    let mut same = child_of(&parent, 8, 0x8001);
    same.name = "storage".parse().expect("a name");
    let desired = Desired { rules: vec![rule] };
    let wants = resolve(&desired, &[parent.clone(), other.clone()]);
    assert_eq!(of(&wants, "ib1").children[0].present, []);
    let wants = resolve(&desired, &[parent, other, same]);
    assert_eq!(of(&wants, "ib1").children[0].present[0].1, 8);
    assert_eq!(
        of(&wants, "storage").settings.len(),
        settings(1, &[("mtu", "1")]).len()
    );
}
