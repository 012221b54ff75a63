// SPDX-License-Identifier: Apache-2.0 OR MIT
//! At every call of apply: killed before it, killed after it, failing before it, failing after it, the
//! interface pulled out. What is left converges, and the report is true.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ibmgr_api::{Desired, End, HostReport, Outcome};
use ibmgrd_engine::{Recovery, apply, recover};

use crate::memory::Memory;
use crate::world::{Clockwork, Fate, Manner, World, child, desired, no_child, rule};

/// Values on two ports, a child that goes, one that comes, and one that takes the first one's name.
fn wanted() -> Desired {
    desired(vec![
        rule(
            "ib?",
            &[
                ("mode", "connected"),
                ("state", "up"),
                ("mtu", "60000"),
                ("rx-usecs", "20us"),
            ],
            vec![],
        ),
        rule(
            "ib0",
            &[],
            vec![child(0x8002, Some("storage"), &[("mtu", "2000")])],
        ),
        rule("ib1", &[("umcast", "ignore")], vec![no_child(0x8001)]),
    ])
}

/// The name of the child that goes is needed for the one that comes.
fn swapped() -> Desired {
    let mut wanted = wanted();
    wanted.rules.push(rule(
        "ib1",
        &[],
        vec![child(0x8005, Some("kid"), &[("mode", "connected")])],
    ));
    wanted
}

fn run(world: &mut World, wanted: &Desired, memory: &mut Memory) -> HostReport {
    let plan = world.plan(wanted);
    assert_eq!(plan.refused, []);
    apply(world, memory, &plan)
}

fn applied(mut world: World, wanted: &Desired) -> BTreeMap<String, String> {
    world.manners.clear();
    let mut memory = Memory::default();
    let report = run(&mut world, wanted, &mut memory);
    assert_eq!(report.code(), None, "{report:?}");
    assert!(
        matches!(report.end, End::Applied | End::Nothing),
        "{report:?}"
    );
    assert!(!memory.story().is_unfinished());
    assert!(world.plan(wanted).is_empty(), "nothing is left to do");
    world.state()
}

fn calls(wanted: &Desired) -> usize {
    let mut world = World::new();
    let mut memory = Memory::on(&world.clockwork);
    run(&mut world, wanted, &mut memory);
    world.clockwork.calls()
}

fn struck(at: usize, fate: Fate) -> (World, Memory) {
    let mut world = World::new();
    world.clockwork = Clockwork::with(at, fate);
    let memory = Memory::on(&world.clockwork);
    (world, memory)
}

#[test]
fn killed_at_any_call_it_converges() {
    for wanted in [wanted(), swapped()] {
        let (old, new) = (World::new().state(), applied(World::new(), &wanted));
        let total = calls(&wanted);
        assert!(total > 40, "{total}");
        for at in 0..total {
            for fate in [Fate::KilledBefore, Fate::KilledAfter] {
                let (mut world, mut memory) = struck(at, fate);
                let killed = catch_unwind(AssertUnwindSafe(|| {
                    run(&mut world, &wanted, &mut memory);
                }));
                assert!(killed.is_err(), "{at}: nothing happened");
                world.clockwork = Clockwork::default();
                // The next start is killed, too, at each of its calls in turn.
                for again in 0.. {
                    world.clockwork = Clockwork::with(again, fate);
                    let mut memory = memory.reopened();
                    let story = memory.story();
                    let attempt = catch_unwind(AssertUnwindSafe(|| {
                        recover(&mut world, &mut memory, &story);
                    }));
                    if attempt.is_ok() {
                        break;
                    }
                }
                world.clockwork = Clockwork::default();
                let mut memory = memory.reopened();
                let story = memory.story();
                assert_eq!(recover(&mut world, &mut memory, &story), Recovery::Nothing);
                let state = world.state();
                if story.is_verified && !story.is_rolling_back {
                    assert_eq!(state, new, "{at} {fate:?}");
                } else {
                    assert_eq!(state, old, "{at} {fate:?}");
                }
                assert_eq!(
                    applied(world, &wanted),
                    new,
                    "{at} {fate:?}: and the next apply"
                );
            }
        }
    }
}

#[test]
fn a_recovery_tells_what_it_did() {
    let (mut world, mut memory) = struck(12, Fate::KilledAfter);
    let wanted = wanted();
    let killed = catch_unwind(AssertUnwindSafe(|| {
        run(&mut world, &wanted, &mut memory);
    }));
    assert!(killed.is_err());
    world.clockwork = Clockwork::default();
    let mut memory = memory.reopened();
    let story = memory.story();
    let Recovery::RolledBack(report) = recover(&mut world, &mut memory, &story) else {
        panic!("it was not verified")
    };
    assert_eq!((report.end, report.code()), (End::RolledBack, None));
    let outcomes = report.links.iter().flat_map(|link| &link.lines);
    assert!(outcomes.clone().count() > 0 && report.children.len() == 2);
    for line in outcomes {
        assert_eq!(line.outcome, Outcome::PutBack, "{report:?}");
        assert_eq!(line.now, line.before);
    }
}

#[test]
fn a_failure_at_any_call_leaves_all_old_or_all_new() {
    for wanted in [wanted(), swapped()] {
        let (old, new) = (World::new().state(), applied(World::new(), &wanted));
        for at in 0..calls(&wanted) {
            for fate in [Fate::FailsBefore, Fate::FailsAfter] {
                let (mut world, mut memory) = struck(at, fate);
                let report = run(&mut world, &wanted, &mut memory);
                let state = world.state();
                match report.end {
                    End::Applied => assert_eq!(state, new, "{at} {fate:?}"),
                    End::RolledBack | End::NotStarted => {
                        assert_eq!(state, old, "{at} {fate:?}");
                        assert!(report.code().is_some(), "{at} {fate:?}: {report:?}");
                    }
                    End::InPart | End::Nothing => panic!("{at} {fate:?}: {report:?}"),
                }
                if report.end != End::NotStarted || fate == Fate::FailsAfter {
                    world.clockwork = Clockwork::default();
                    let mut memory = memory.reopened();
                    let story = memory.story();
                    recover(&mut world, &mut memory, &story);
                    assert_eq!(world.state(), state, "{at} {fate:?}: the next start");
                }
            }
        }
    }
}

#[test]
fn an_interface_pulled_out_at_any_call_takes_no_other_along() {
    let wanted = wanted();
    let mut seen = 0;
    for at in 0..calls(&wanted) {
        for fate in [Fate::Unplugs(2), Fate::Replugs(2)] {
            let (mut world, mut memory) = struck(at, fate);
            let report = run(&mut world, &wanted, &mut memory);
            assert_ne!(report.end, End::InPart, "{at} {fate:?}: {report:?}");
            assert!(!memory.story().is_unfinished(), "{at}");
            let is_new = world.value("ib1", "mtu") == "60000";
            assert_eq!(
                is_new,
                report.end == End::Applied,
                "{at} {fate:?}: {report:?}"
            );
            let ib0 = report.links.iter().find(|link| link.link.as_str() == "ib0");
            let lines = ib0.into_iter().flat_map(|link| &link.lines);
            let vanished = lines.filter(|line| line.outcome == Outcome::Vanished);
            seen += usize::from(vanished.count() > 0);
            if fate == Fate::Replugs(2) && report.end == End::Applied {
                // The new one was not written: its defaults are there until the next apply.
                let mode = world.value("ib0", "mode");
                assert!(mode == "datagram" || mode == "connected");
                world.clockwork = Clockwork::default();
                applied(world, &wanted);
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn one_made_anew_after_a_crash_is_left_alone() {
    let wanted = desired(vec![rule(
        "ib0",
        &[("txqueuelen", "9"), ("rx-usecs", "20us")],
        vec![],
    )]);
    let (mut world, mut memory) = struck(5, Fate::KilledAfter);
    let killed = catch_unwind(AssertUnwindSafe(|| {
        run(&mut world, &wanted, &mut memory);
    }));
    assert!(killed.is_err());
    let mut anew = World::new();
    let mut ib0 = anew.links.remove(&2).expect("it is there");
    ib0.index = 9;
    anew.links.insert(9, ib0);
    let mut memory = memory.reopened();
    let story = memory.story();
    let Recovery::RolledBack(report) = recover(&mut anew, &mut memory, &story) else {
        panic!("something was to be taken back")
    };
    assert_eq!(report.links[0].lines[0].outcome, Outcome::Vanished);
    assert!(anew.writes.is_empty());
}

#[test]
fn a_value_that_will_not_go_back_is_named() {
    let mut world = World::new()
        .with("ib0", "txqueuelen", Manner::OnlyOnce)
        .with("ib1", "rx-usecs", Manner::Refuses);
    let wanted = desired(vec![rule(
        "ib?",
        &[("txqueuelen", "9"), ("rx-usecs", "20us")],
        vec![],
    )]);
    let report = run(&mut world, &wanted, &mut Memory::default());
    assert_eq!(report.end, End::InPart);
    let line = &report.links[0].lines[0];
    assert_eq!(
        line.outcome,
        Outcome::NotPutBack {
            why: "errno 22".into()
        }
    );
    assert_eq!(line.now, Some(9_u32.into()));
    assert_eq!(world.value("ib1", "txqueuelen"), "256");
}
