// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans as people would write them down. `UPDATE=1` rewrites the files in `golden/`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use ibmgr_api::{Action, Desired, HostPlan, Key, Value};
use ibmgrd_engine::apply;

use crate::memory::Memory;
use crate::world::{World, child, desired, no_child, rule};

fn shown(plan: &HostPlan) -> String {
    let mut text = String::new();
    let value = |key: &Key, value: &Value| value.show(&key.knob().domain);
    for action in &plan.actions {
        let line = match action {
            Action::Remove { child, kind, .. } => format!(
                "remove {} (P_Key {}, {}) from {}",
                child.child.name,
                child.pkey,
                kind.name(),
                child.parent.name
            ),
            Action::Make { child, wants } => {
                let wants: Vec<_> = wants.iter().map(ToString::to_string).collect();
                format!(
                    "make {} (P_Key {}, {}) on {} with [{}]",
                    child.name,
                    child.pkey,
                    child.kind.name(),
                    child.parent.name,
                    wants.join(" ")
                )
            }
            Action::Set { link, step } => {
                let from = step
                    .from
                    .as_ref()
                    .map_or("-".to_owned(), |from| value(&step.key, from));
                format!(
                    "set {} {}: {from} -> {} by {}",
                    plan.links[*link].target.name,
                    step.key,
                    value(&step.key, &step.to),
                    step.carrier.channel()
                )
            }
        };
        writeln!(text, "{line}").expect("a string takes all");
    }
    for link in &plan.links {
        for skip in &link.skips {
            let value = value(&skip.key, &skip.value);
            writeln!(text, "keep {} {}: {value}", link.target.name, skip.key).expect("it does");
        }
        for was in &link.before {
            let value = value(&was.key, &was.value);
            writeln!(text, "before {} {}: {value}", link.target.name, was.key).expect("it does");
        }
    }
    for refusal in &plan.refused {
        writeln!(text, "refuse {refusal}").expect("it does");
    }
    text
}

#[track_caller]
fn check(name: &str, world: &World, wanted: &Desired) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hosts/golden/{name}.txt"));
    let text = shown(&world.plan(wanted));
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&file, &text).expect("the folder is there");
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, golden, "{name}: UPDATE=1 rewrites it");
}

#[test]
fn values_go_by_phase_over_all_interfaces() {
    let settings = [
        ("rx-usecs", "20us"),
        ("mtu", "60000"),
        ("mode", "connected"),
        ("state", "up"),
        ("txqueuelen", "256"),
    ];
    check(
        "phases",
        &World::new(),
        &desired(vec![rule("*", &settings, vec![])]),
    );
}

#[test]
fn children_come_first_and_go_last() {
    let wanted = desired(vec![
        rule(
            "ib0",
            &[("mtu", "2000")],
            vec![child(0x0003, None, &[("mode", "connected")])],
        ),
        rule("ib1", &[("state", "up")], vec![no_child(0x8001)]),
    ]);
    check("children", &World::new(), &wanted);
}

#[test]
fn a_name_is_freed_before_it_is_given() {
    let wanted = desired(vec![
        rule("ib0", &[], vec![child(0x8002, Some("kid"), &[])]),
        rule("ib1", &[("txqueuelen", "9")], vec![no_child(0x8001)]),
    ]);
    check("room", &World::new(), &wanted);
}

#[test]
fn down_comes_last_and_children_before_nothing() {
    let mut world = World::new();
    let up = desired(vec![rule("*", &[("state", "up")], vec![])]);
    let plan = world.plan(&up);
    apply(&mut world, &mut Memory::default(), &plan);
    let wanted = desired(vec![
        rule("ib1", &[("state", "down"), ("rx-usecs", "20us")], vec![]),
        rule("kid", &[("state", "up"), ("umcast", "ignore")], vec![]),
    ]);
    check("down", &world, &wanted);
}

#[test]
fn refusals_stand_beside_what_can_be_done() {
    let wanted = desired(vec![
        rule(
            "ib0",
            &[("rx-frames", "70000"), ("mtu", "2000")],
            vec![child(0x8002, Some("ib1"), &[])],
        ),
        rule("ib1", &[("mtu", "2000")], vec![]),
    ]);
    check("refusals", &World::new(), &wanted);
}
