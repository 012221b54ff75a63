// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each way that a set can go, by name.

use crate::fake::{Fake, Manner, key};
use ibmgr_api::{Assignment, Channel, ErrorCode, Outcome, PlanError, Report, Support};
use ibmgrd_engine::{Port, Query, keys_to_observe, plan, rejected, run};

fn wants(pairs: &[(&str, &str)]) -> Vec<Assignment> {
    let assignment = |(name, text): &(&str, &str)| {
        let key = key(name);
        let value = key.knob().domain.parse(text).expect(text);
        Assignment { key, value }
    };
    pairs.iter().map(assignment).collect()
}

fn try_set(fake: &mut Fake, pairs: &[(&str, &str)]) -> Result<Report, PlanError> {
    let wants = wants(pairs);
    let keys = keys_to_observe(&wants, None)?;
    let name = fake.link.name.clone();
    let before = fake
        .observe(&name, &Query::named(keys))
        .expect("it is there");
    let plan = plan(&before, &wants)?;
    Ok(run(fake, &plan, &before))
}

#[track_caller]
fn set(fake: &mut Fake, pairs: &[(&str, &str)]) -> Report {
    try_set(fake, pairs).expect("a plan")
}

#[track_caller]
fn outcome<'a>(report: &'a Report, name: &str) -> &'a Outcome {
    let line = report.lines.iter().find(|line| line.key == key(name));
    &line
        .unwrap_or_else(|| panic!("no line for {name}: {report:?}"))
        .outcome
}

#[test]
fn mode_goes_first_and_the_mtu_of_before_is_kept_when_asked_for() {
    let mut fake = Fake::ib0();
    let report = set(&mut fake, &[("mtu", "2044"), ("mode", "connected")]);
    assert_eq!(report.code(), None, "{report:?}");
    assert_eq!((fake.value("mode"), fake.value("mtu")), (1, 2044));
    assert_eq!(*outcome(&report, "mtu"), Outcome::Changed);
    assert_eq!(fake.writes[0].0, key("mode"));
}

#[test]
fn what_the_kernel_changes_along_is_reported() {
    let mut fake = Fake::ib0();
    let report = set(&mut fake, &[("mode", "connected")]);
    let mtu = report
        .lines
        .iter()
        .find(|line| line.key == key("mtu"))
        .expect("a line");
    assert_eq!((mtu.asked.as_ref(), mtu.outcome.name()), (None, "changed"));
    assert_eq!(mtu.now, Some(65520_u32.into()));
}

#[test]
fn down_comes_last_and_up_early() {
    let mut fake = Fake::ib0();
    set(
        &mut fake,
        &[("state", "down"), ("txqueuelen", "9"), ("rx-usecs", "8us")],
    );
    assert_eq!(
        fake.writes
            .last()
            .map(|(key, _)| key.to_string())
            .as_deref(),
        Some("state")
    );
    set(&mut fake, &[("txqueuelen", "10"), ("state", "up")]);
    assert_eq!(fake.writes[3].0, key("state"));
}

#[test]
fn a_second_set_has_nothing_to_do() {
    let mut fake = Fake::ib0();
    let pairs = [("rx-usecs", "20us"), ("mode", "connected"), ("mtu", "4000")];
    set(&mut fake, &pairs);
    let writes = fake.writes.len();
    let report = set(&mut fake, &pairs);
    assert_eq!(fake.writes.len(), writes);
    assert!(
        report
            .lines
            .iter()
            .all(|line| line.outcome == Outcome::AlreadySo),
        "{report:?}"
    );
}

#[test]
fn a_refusal_puts_the_earlier_ones_back() {
    let mut fake = Fake::ib0().with("rx-frames", Manner::Refuses);
    let before = fake.values();
    let pairs = [
        ("rx-frames", "9"),
        ("mode", "connected"),
        ("gro-flush-timeout", "20us"),
    ];
    let report = set(&mut fake, &pairs);
    assert_eq!(fake.values(), before);
    assert_eq!(report.code(), Some(ErrorCode::Refused));
    assert_eq!(*outcome(&report, "mode"), Outcome::PutBack);
    assert_eq!(outcome(&report, "rx-frames").name(), "refused");
    assert_eq!(*outcome(&report, "gro-flush-timeout"), Outcome::NotTried);
}

#[test]
fn success_without_effect_is_found_and_the_rest_put_back() {
    let mut fake = Fake::ib0().with("rx-usecs", Manner::Lies);
    let before = fake.values();
    let report = set(&mut fake, &[("txqueuelen", "9"), ("rx-usecs", "20us")]);
    assert_eq!(fake.values(), before);
    assert_eq!(report.code(), Some(ErrorCode::NotVerified));
    let why = outcome(&report, "rx-usecs").why().expect("a reason");
    assert_eq!(why, "the kernel took 20us, but 16us is read back");
    assert_eq!(*outcome(&report, "txqueuelen"), Outcome::PutBack);
}

#[test]
fn a_clamped_value_is_put_back() {
    let mut fake = Fake::ib0().with("mtu", Manner::Clamps(2044));
    let report = set(&mut fake, &[("mtu", "4092")]);
    assert_eq!(fake.value("mtu"), 2044);
    assert_eq!(report.code(), Some(ErrorCode::NotVerified));
}

#[test]
fn busy_though_applied_is_success() {
    let mut fake = Fake::ib0().with("mode", Manner::BusyThoughApplied);
    let report = set(&mut fake, &[("mode", "connected"), ("mtu", "9000")]);
    assert_eq!(report.code(), None, "{report:?}");
    assert_eq!((fake.value("mode"), fake.value("mtu")), (1, 9000));
}

#[test]
fn busy_and_not_applied_is_a_refusal() {
    let mut fake = Fake::ib0().with("mode", Manner::Busy);
    let report = set(&mut fake, &[("mode", "connected"), ("mtu", "9000")]);
    assert_eq!(report.code(), Some(ErrorCode::Refused));
    assert_eq!((fake.value("mode"), fake.value("mtu")), (0, 2044));
}

#[test]
fn a_value_that_cannot_be_put_back_is_said() {
    let mut fake = Fake::ib0()
        .with("txqueuelen", Manner::OnlyOnce)
        .with("rx-usecs", Manner::Refuses);
    let report = set(&mut fake, &[("txqueuelen", "9"), ("rx-usecs", "20us")]);
    assert_eq!(report.code(), Some(ErrorCode::NotPutBack));
    let line = &report.lines[0];
    assert_eq!(
        line.outcome,
        Outcome::NotPutBack {
            why: "errno 22".into()
        }
    );
    assert_eq!(line.now, Some(9_u32.into()));
}

#[test]
fn a_device_that_vanishes_midway_is_named_so() {
    for name_is_reused in [false, true] {
        let mut fake = Fake {
            vanishes_at: Some(1),
            name_is_reused,
            ..Fake::ib0()
        };
        let report = set(&mut fake, &[("txqueuelen", "9"), ("rx-usecs", "20us")]);
        assert_eq!(report.code(), Some(ErrorCode::Vanished), "{report:?}");
        assert!(
            report
                .lines
                .iter()
                .all(|line| line.outcome == Outcome::Vanished)
        );
    }
}

#[test]
fn an_interface_that_is_renamed_midway_keeps_nothing() {
    let asked = [("txqueuelen", "9"), ("rx-usecs", "20us"), ("mtu", "1500")];
    for renamed_at in 0..3 {
        let mut fake = Fake {
            renamed_at: Some(renamed_at),
            ..Fake::ib0()
        };
        let before = fake.values();
        let report = set(&mut fake, &asked);
        assert_eq!(fake.values(), before, "{report:?}");
        assert_eq!(report.code(), Some(ErrorCode::Vanished), "{report:?}");
        assert_eq!(report.link.as_str(), "rail0");
        let outcomes: Vec<_> = report
            .lines
            .iter()
            .map(|line| line.outcome.name())
            .collect();
        let wanted = ["put-back", "put-back", "refused", "not-tried", "not-tried"];
        assert_eq!(outcomes, wanted[2 - renamed_at..5 - renamed_at]);
        let why = report.lines[renamed_at].outcome.why().unwrap_or_default();
        assert_eq!(why, "the interface was renamed to rail0 meanwhile");
    }
}

#[test]
fn an_interface_that_is_renamed_while_it_is_put_back_is_followed() {
    let mut fake = Fake {
        renamed_at: Some(3),
        ..Fake::ib0()
    }
    .with("rx-usecs", Manner::Refuses);
    let before = fake.values();
    let report = set(
        &mut fake,
        &[
            ("mode", "connected"),
            ("txqueuelen", "9"),
            ("rx-usecs", "20us"),
        ],
    );
    assert_eq!(fake.values(), before, "{report:?}");
    assert_eq!(report.code(), Some(ErrorCode::Refused), "{report:?}");
    assert_eq!(report.link.as_str(), "rail0");
}

#[test]
fn what_was_so_before_is_so_afterwards_or_told() {
    // Some drivers forget coalescing when their queue changes.
    let mut fake = Fake::ib0();
    fake.forgets = Some((key("txqueuelen"), key("rx-frames")));
    let before = fake.values();
    let report = set(&mut fake, &[("txqueuelen", "9"), ("rx-frames", "44")]);
    assert_eq!(report.code(), Some(ErrorCode::NotVerified), "{report:?}");
    assert_eq!(fake.values(), before, "{report:?}");
    let outcomes: Vec<_> = report
        .lines
        .iter()
        .map(|line| (line.key.to_string(), line.outcome.name()))
        .collect();
    let wanted = [("txqueuelen", "put-back"), ("rx-frames", "not-verified")];
    assert_eq!(outcomes, wanted.map(|(key, name)| (key.to_owned(), name)));
}

#[test]
fn a_name_taken_over_by_another_interface_is_never_written() {
    let mut fake = Fake::ib0();
    let wants = wants(&[("txqueuelen", "9")]);
    let name = fake.link.name.clone();
    let before = fake
        .observe(&name, &Query::named(vec![key("txqueuelen")]))
        .expect("there");
    let plan = plan(&before, &wants).expect("a plan");
    fake.link.index += 1;
    let report = run(&mut fake, &plan, &before);
    assert_eq!(report.code(), Some(ErrorCode::Vanished));
    assert_eq!(fake.value("txqueuelen"), 256);
}

#[test]
fn stored_without_effect_is_a_status_of_its_own() {
    let mut fake = Fake::ib0();
    let report = set(
        &mut fake,
        &[("gro-flush-timeout", "20us"), ("rx-usecs", "20us")],
    );
    assert_eq!(report.code(), Some(ErrorCode::NoEffect));
    assert_eq!(fake.value("gro-flush-timeout"), 20_000);
    assert_eq!(*outcome(&report, "rx-usecs"), Outcome::Changed);
    let again = set(&mut fake, &[("gro-flush-timeout", "20us")]);
    assert_eq!(
        again.code(),
        Some(ErrorCode::NoEffect),
        "it does not become effective by asking twice"
    );
}

#[test]
fn an_unreadable_kernel_is_not_success() {
    let mut fake = Fake::ib0();
    let wants = wants(&[("txqueuelen", "9")]);
    let name = fake.link.name.clone();
    let before = fake
        .observe(&name, &Query::named(vec![key("txqueuelen")]))
        .expect("there");
    let plan = plan(&before, &wants).expect("a plan");
    fake.blind = true;
    let report = run(&mut fake, &plan, &before);
    assert_eq!(report.code(), Some(ErrorCode::NotPutBack));
    assert_eq!(
        fake.value("txqueuelen"),
        256,
        "it was put back all the same"
    );
}

#[test]
fn bad_requests_make_no_plan() {
    let mut fake = Fake::ib0();
    let twice = try_set(&mut fake, &[("mtu", "2000"), ("mtu", "2000")]).unwrap_err();
    assert_eq!(
        (twice.code(), twice.to_string().contains("given twice")),
        (ErrorCode::Usage, true)
    );
    let range = try_set(&mut fake, &[("rx-frames", "65536")]).unwrap_err();
    assert_eq!(range.code(), ErrorCode::BadValue);
    let reading = fake
        .link
        .readings
        .get_mut(&key("mode"))
        .expect("it has one");
    reading.support = Support::Fixed("enhanced IPoIB has datagram mode only".into());
    let fixed = try_set(&mut fake, &[("mode", "connected"), ("mtu", "9000")]).unwrap_err();
    assert_eq!(fixed.code(), ErrorCode::Unsupported);
    assert!(
        try_set(&mut fake, &[("mode", "datagram")]).is_ok(),
        "it is so already"
    );
    assert!(fake.writes.is_empty());
}

#[test]
fn a_rejected_request_tells_every_reason_and_the_present_values() {
    let mut fake = Fake::ib0();
    let mode = fake.link.readings.get_mut(&key("mode")).expect("has one");
    mode.support = Support::Fixed("enhanced IPoIB has datagram mode only".into());
    let wants = wants(&[
        ("rx-frames", "65536"),
        ("txqueuelen", "9"),
        ("mtu", "2044"),
        ("mode", "connected"),
    ]);
    assert!(plan(&fake.link, &wants).is_err());
    let report = rejected(&fake.link, &wants);
    let names: Vec<_> = report
        .lines
        .iter()
        .map(|line| line.key.to_string())
        .collect();
    assert_eq!(names, ["mode", "mtu", "txqueuelen", "rx-frames"]);
    let words =
        ["mode", "mtu", "txqueuelen", "rx-frames"].map(|name| outcome(&report, name).name());
    assert_eq!(words, ["unsupported", "already-so", "not-tried", "refused"]);
    for line in &report.lines {
        assert!(line.now.is_some() && line.now == line.before, "{line:?}");
    }
    assert!(fake.writes.is_empty());
}

#[test]
fn a_channel_that_does_not_carry_the_knob_is_refused() {
    let error = keys_to_observe(&wants(&[("mtu", "2000")]), Some(Channel::Netdev)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mtu is not carried by netdev; it is carried by rtnetlink, sysfs"
    );
}
