// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each way that an apply can go, by name.

use ibmgr_api::{
    Action, ChildChange, ChildKind, Desired, End, ErrorCode, HostRefusal, HostReport, Outcome,
    Policy,
};
use ibmgrd_engine::apply;

use crate::memory::Memory;
use crate::world::{Manner, World, child, desired, no_child, rule};

#[track_caller]
fn run(world: &mut World, wanted: &Desired) -> HostReport {
    let plan = world.plan(wanted);
    assert_eq!(plan.refused, []);
    let mut memory = Memory::default();
    let report = apply(world, &mut memory, &plan);
    assert!(!memory.story().is_unfinished());
    report
}

#[track_caller]
fn outcome<'a>(report: &'a HostReport, link: &str, knob: &str) -> &'a Outcome {
    let link = report
        .links
        .iter()
        .find(|other| other.link.as_str() == link);
    let lines = link.into_iter().flat_map(|link| &link.lines);
    let line = lines.clone().find(|line| line.key.to_string() == knob);
    &line
        .unwrap_or_else(|| panic!("no line: {report:?}"))
        .outcome
}

#[test]
fn a_child_is_made_and_gets_its_values() {
    let wanted = desired(vec![rule(
        "ib0",
        &[("state", "up")],
        vec![child(
            0x0003,
            Some("storage"),
            &[("mode", "connected"), ("state", "up")],
        )],
    )]);
    let mut world = World::new();
    let report = run(&mut world, &wanted);
    assert_eq!(
        (report.code(), report.end),
        (None, End::Applied),
        "{report:?}"
    );
    assert_eq!(report.children[0].outcome, Outcome::Changed);
    assert_eq!(*outcome(&report, "storage", "mode"), Outcome::Changed);
    assert_eq!(
        *outcome(&report, "storage", "mtu"),
        Outcome::Changed,
        "along with the mode"
    );
    assert_eq!(world.value("storage", "mode"), "connected");
    // The driver stores the full-member bit: it is that child all the same.
    assert!(world.plan(&wanted).is_empty());
}

#[test]
fn a_child_of_another_kind_is_made_anew_with_its_values() {
    let wanted = |policy| {
        let mut kid = child(0x8001, None, &[("txqueuelen", "9")]);
        kid.kind = Some(ChildKind::Legacy);
        kid.policy = policy;
        desired(vec![rule("ib1", &[], vec![kid])])
    };
    let mut world = World::new();
    let report = run(&mut world, &wanted(Policy::Heal));
    assert_eq!(
        (report.code(), report.end),
        (None, End::Applied),
        "{report:?}"
    );
    let changes: Vec<_> = report.children.iter().map(|it| it.change).collect();
    assert_eq!(changes, [ChildChange::Remove, ChildChange::Make]);
    assert_eq!(world.value("kid", "txqueuelen"), "9");
    assert!(world.plan(&wanted(Policy::Heal)).is_empty());
    // Its addresses would be lost: only "heal" takes that into the bargain.
    let world = World::new();
    let before = world.state();
    let plan = world.plan(&wanted(Policy::Report));
    let why = plan.refused[0].to_string();
    assert!(why.contains("its policy is report"), "{why}");
    assert_eq!(world.state(), before);
}

#[test]
fn a_refused_child_takes_everything_back() {
    let wanted = desired(vec![
        rule("ib0", &[("txqueuelen", "9")], vec![no_child(0x8001)]),
        rule("ib1", &[("txqueuelen", "9")], vec![no_child(0x8001)]),
    ]);
    let mut world = World::new().with("kid", "child", Manner::Refuses);
    let before = world.state();
    let report = run(&mut world, &wanted);
    assert_eq!(
        (report.code(), report.end),
        (Some(ErrorCode::Refused), End::RolledBack)
    );
    assert_eq!(world.state(), before);
    assert_eq!(report.children[0].outcome.why(), Some("errno 16"));
    assert_eq!(*outcome(&report, "ib0", "txqueuelen"), Outcome::PutBack);
}

#[test]
fn a_value_that_a_new_child_does_not_take_removes_it_again() {
    let wanted = desired(vec![rule(
        "ib0",
        &[("txqueuelen", "9")],
        vec![child(
            0x8002,
            Some("storage"),
            &[("rx-usecs", "20us"), ("txqueuelen", "7")],
        )],
    )]);
    let mut world = World::new().with("storage", "rx-usecs", Manner::Lies);
    let before = world.state();
    let report = run(&mut world, &wanted);
    assert_eq!(
        (report.code(), report.end),
        (Some(ErrorCode::NotVerified), End::RolledBack)
    );
    assert_eq!(world.state(), before);
    assert_eq!(report.children[0].outcome, Outcome::PutBack);
    assert_eq!(
        outcome(&report, "storage", "rx-usecs").name(),
        "not-verified"
    );
}

#[test]
fn late_values_are_waited_for_and_rounded_ones_are_not_taken() {
    let wanted = desired(vec![rule("ib?", &[("txqueuelen", "9")], vec![])]);
    let mut world = World::new().with("ib0", "txqueuelen", Manner::Delays(3));
    world.patience = 5;
    assert_eq!(run(&mut world, &wanted).end, End::Applied);

    let mut world = World::new().with("ib0", "txqueuelen", Manner::Clamps(8));
    world.patience = 5;
    let before = world.state();
    let report = run(&mut world, &wanted);
    assert_eq!(
        (report.code(), report.end),
        (Some(ErrorCode::NotPutBack), End::InPart)
    );
    let why = outcome(&report, "ib0", "txqueuelen")
        .why()
        .map(str::to_owned);
    assert!(why.is_some(), "{report:?}");
    // 256 is over what it takes: that cannot be put back, and the other one is.
    assert_eq!(world.value("ib1", "txqueuelen"), "256");
    assert_ne!(world.state(), before);
}

#[test]
fn busy_though_applied_is_success() {
    let wanted = desired(vec![rule(
        "ib?",
        &[("mode", "connected"), ("mtu", "9000")],
        vec![],
    )]);
    let mut world = World::new().with("ib1", "mode", Manner::BusyThoughApplied);
    assert_eq!(run(&mut world, &wanted).end, End::Applied);
    assert_eq!(world.value("ib1", "mtu"), "9000");
}

#[test]
fn a_mode_goes_back_with_its_mtu() {
    let mut world = World::new();
    let connected = desired(vec![rule(
        "ib0",
        &[("mode", "connected"), ("mtu", "60000")],
        vec![],
    )]);
    run(&mut world, &connected);
    let before = world.state();
    let wanted = desired(vec![rule(
        "ib0",
        &[("mode", "datagram"), ("mtu", "2000"), ("rx-usecs", "1us")],
        vec![],
    )]);
    world = world.with("ib0", "rx-usecs", Manner::Refuses);
    let report = run(&mut world, &wanted);
    assert_eq!(report.end, End::RolledBack, "{report:?}");
    assert_eq!(world.state(), before);
}

#[test]
fn children_follow_their_parent_and_get_their_own_state_after_it() {
    let mut world = World::new();
    let up = desired(vec![rule("*", &[("state", "up")], vec![])]);
    run(&mut world, &up);
    // The driver takes the child down with the port.
    let wanted = desired(vec![
        rule("ib1", &[("state", "down")], vec![]),
        rule("kid", &[("state", "up")], vec![]),
    ]);
    let report = run(&mut world, &wanted);
    assert_eq!(
        report.end,
        End::RolledBack,
        "down comes last, and the child is down with it"
    );
    assert_eq!(world.value("kid", "state"), "up");
    let wanted = desired(vec![
        rule("ib1", &[("state", "down")], vec![]),
        rule("kid", &[("state", "down")], vec![]),
    ]);
    assert_eq!(run(&mut world, &wanted).end, End::Applied);
}

#[test]
fn nothing_to_do_writes_nothing_and_keeps_no_journal() {
    let mut world = World::new();
    let wanted = desired(vec![rule("ib?", &[("txqueuelen", "256")], vec![])]);
    let report = run(&mut world, &wanted);
    assert_eq!((report.end, report.code()), (End::Nothing, None));
    assert_eq!(*outcome(&report, "ib0", "txqueuelen"), Outcome::AlreadySo);
    assert!(world.writes.is_empty());
}

#[test]
fn what_cannot_be_planned_is_told_all_at_once() {
    let world = World::new();
    let wanted = desired(vec![
        rule(
            "ib0",
            &[("rx-frames", "70000")],
            vec![child(0x8002, Some("ib1"), &[])],
        ),
        rule(
            "ib1",
            &[("rx-frames", "70000")],
            vec![child(0x8009, Some("kid"), &[])],
        ),
    ]);
    let refused = world.plan(&wanted).refused;
    let knobs = refused
        .iter()
        .filter(|one| matches!(one, HostRefusal::Knob(_)));
    assert_eq!((refused.len(), knobs.count()), (4, 2), "{refused:?}");
    let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("is called 'ib1' already")),
        "{texts:?}"
    );
}

#[test]
fn a_removal_makes_room_for_a_name_and_otherwise_comes_last() {
    let world = World::new();
    let first_is_removal = |wanted: &Desired| {
        let plan = world.plan(wanted);
        matches!(plan.actions[0], Action::Remove { .. })
    };
    let mut wanted = desired(vec![rule(
        "ib1",
        &[("txqueuelen", "9")],
        vec![no_child(0x8001)],
    )]);
    assert!(!first_is_removal(&wanted));
    wanted
        .rules
        .push(rule("ib0", &[], vec![child(0x8007, Some("kid"), &[])]));
    assert!(first_is_removal(&wanted));
}
