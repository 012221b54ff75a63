// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop's side of the office: doing what was asked for, one at a time, and telling of it.

use std::time::{Duration, Instant};

use ibmgr_api::status::{Record, RecordKind};
use ibmgr_api::{
    Action, ChildChange, End, ErrorCode, Failure, HostPlan, HostReport, Key, LinkName, LinkWants,
    Origin, Outcome, Report, ReportLine, Value,
};
use ibmgrd_engine::{Keys, Port as _, Query, Unplanned, plan_declared, prepare, run};
use ibmgrd_state::change;

use super::Daemon;
use crate::changes::record_of;
use crate::office::{
    Apply, ApplyDone, Caller, Deed, Planned, Request, Right, RollBackDone, Set, SetDone,
    failed_plan, failed_port, tag,
};

/// How long another program of ibmgr is waited for.
const WAIT: Duration = Duration::from_secs(30);

/// A request that waits for another program of ibmgr to be done.
#[derive(Debug)]
pub(super) struct Waiting {
    since: Instant,
    request: Request,
}

impl Waiting {
    pub(super) const fn new(request: Request, since: Instant) -> Self {
        Self { since, request }
    }
}

impl Daemon {
    /// Takes a request: does it, or has it wait for its turn.
    pub(super) fn take(&mut self, request: Request) {
        if request.takes_turn() {
            self.waiting
                .push_back(Waiting::new(request, self.clock.now()));
        } else {
            self.answer(request);
        }
    }

    /// Does what waits. Nobody else of ibmgr may be changing anything meanwhile.
    pub(super) fn answer_waiting(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.answer(waiting.request);
        }
    }

    /// Gives up on those that waited too long.
    pub(super) fn refuse_late(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && now.saturating_duration_since(first.since) >= WAIT
            && let Some(late) = self.waiting.pop_front()
        {
            let seconds = WAIT.as_secs();
            let what = format!(
                "another program of ibmgr has been changing something for {seconds} s: nothing was \
                 changed"
            );
            late.request.refuse(Failure::new(ErrorCode::Timeout, what));
        }
    }

    fn answer(&mut self, request: Request) {
        if request.is_forgotten() {
            // Whoever does not wait for the answer must not be surprised by a late change.
            return;
        }
        let caller = request.caller;
        // Whoever asked may have gone away meanwhile.
        match request.deed {
            Deed::Status(reply) => drop(reply.send(Ok(self.status()))),
            Deed::Set(set, reply) => drop(reply.send(self.set(&caller, &set))),
            Deed::Apply(apply, reply) => drop(reply.send(self.apply(&caller, *apply))),
            Deed::Confirm(reply) => drop(reply.send(self.confirm(&caller))),
            Deed::RollBack(reply) => drop(reply.send(self.roll_back(&caller))),
            Deed::Reload(reply) => {
                let reason = "declarations are read again, as asked for";
                self.tell_of(&caller, Record::new(RecordKind::Loaded, reason));
                self.reload(Self::settle_supervisor);
                drop(reply.send(Ok(self.status())));
            }
        }
    }

    fn set(&mut self, caller: &Caller, set: &Set) -> Result<SetDone, Failure> {
        if let Some(wanted) = &set.only_if {
            let all = Query {
                keys: Keys::All,
                via: None,
            };
            let link = self.port.observe(&set.link, &all);
            let present = tag(&link.map_err(|error| failed_port(&error))?);
            if present != *wanted {
                let what = format!(
                    "{} is not what it was when the request was made: read it again; nothing was \
                     changed",
                    set.link
                );
                let failure = Failure::new(ErrorCode::Stale, what);
                return Err(failure.about(Some(&set.link), None::<&str>));
            }
        }
        let (plan, before) = match prepare(&mut self.port, &set.link, &set.wants, set.via) {
            Ok(prepared) => prepared,
            Err(unplanned) => {
                let failure = failed_plan(&unplanned);
                return match unplanned {
                    Unplanned::Plan {
                        report: Some(report),
                        ..
                    } => Ok(SetDone {
                        report,
                        failure: Some(failure),
                    }),
                    Unplanned::Plan { report: None, .. } | Unplanned::Port(_) => Err(failure),
                };
            }
        };
        // The name that was asked for may be another name of it.
        caller.check(Right::Change, Some(&before.name))?;
        let keys = plan.steps.iter().map(|step| &step.key);
        change::check_set(&self.changes.of_host(), before.index, keys).map_err(|error| {
            Failure::of(error.code(), &error).about(Some(&before.name), None::<&str>)
        })?;
        let report = run(&mut self.port, &plan, &before);
        let failure = report.failure();
        if failure
            .as_ref()
            .is_none_or(|it| it.code == ErrorCode::NoEffect)
        {
            let origin = Origin::whole(&format!("set by {}", caller.by()));
            self.supervisor.hold(before.index, &set.wants, &origin);
        }
        self.tell_of_report(caller, &report, set.why.as_deref());
        Ok(SetDone { report, failure })
    }

    fn apply(&mut self, caller: &Caller, apply: Apply) -> Result<ApplyDone, Failure> {
        let store = self.changes.of_host();
        let failed = |error: change::ChangeError| Failure::of(error.code(), &error);
        let planned = plan_declared(&mut self.port, &apply.desired);
        let (mut wants, mut plan) = planned.map_err(|error| failed_port(&error))?;
        may_apply(caller, &wants, &plan)?;
        let ended = change::clear_the_way(&mut self.port, &store).map_err(failed)?;
        if let Some(ended) = &ended {
            self.told.record(record_of(ended));
            // That has changed something.
            let planned = plan_declared(&mut self.port, &apply.desired);
            (wants, plan) = planned.map_err(|error| failed_port(&error))?;
            may_apply(caller, &wants, &plan)?;
        }
        if !plan.refused.is_empty() {
            let planned = Planned { wants, plan };
            let failure = planned.form(Vec::new()).failure();
            return Ok(ApplyDone {
                refused: Some(planned),
                report: HostReport {
                    links: Vec::new(),
                    children: Vec::new(),
                    trouble: None,
                    end: End::NotStarted,
                },
                failure,
                ended,
                confirm_within: None,
            });
        }
        let confirm = apply.confirm_within.map(|within| (within, None));
        let applied = change::apply(&mut self.port, &store, &plan, &apply.what, confirm);
        let applied = applied.map_err(failed)?;
        self.tell_of_host(caller, &applied.report, apply.why.as_deref());
        if let Some(left) = applied.confirm_within {
            let (what, seconds) = (&apply.what, left.as_secs_f64().ceil());
            let text = format!("the change '{what}' waits {seconds} s to be confirmed");
            self.tell_of(caller, Record::new(RecordKind::Checkpoint, text));
        }
        self.look_at_changes();
        let failure = applied.report.failure();
        Ok(ApplyDone {
            refused: None,
            report: applied.report,
            failure,
            ended,
            confirm_within: applied.confirm_within,
        })
    }

    fn confirm(&mut self, caller: &Caller) -> Result<String, Failure> {
        let confirmed = change::confirm(&self.changes.of_host());
        let what = confirmed.map_err(|error| Failure::of(error.code(), &error))?;
        let text = format!("the change '{what}' is confirmed");
        self.tell_of(caller, Record::new(RecordKind::Checkpoint, text));
        self.look_at_changes();
        Ok(what)
    }

    fn roll_back(&mut self, caller: &Caller) -> Result<RollBackDone, Failure> {
        let ended = change::take_back(&mut self.port, &self.changes.of_host());
        let ended = ended.map_err(|error| Failure::of(error.code(), &error))?;
        self.tell_of(caller, record_of(&ended));
        self.look_at_changes();
        Ok(RollBackDone {
            failure: ended.report.failure(),
            ended,
        })
    }

    fn tell_of(&self, caller: &Caller, mut record: Record) {
        record.by = Some(caller.by());
        self.told.record(record);
    }

    fn tell_of_host(&self, caller: &Caller, report: &HostReport, why: Option<&str>) {
        if let Some(trouble) = &report.trouble {
            let record = Record::new(RecordKind::Failed, &trouble.message).code(trouble.code);
            self.tell_of(caller, record);
        }
        for link in &report.links {
            self.tell_of_report(caller, link, why);
        }
        for child in &report.children {
            let kind = match (&child.outcome, child.change) {
                (Outcome::Changed, ChildChange::Make) => RecordKind::ChildMade,
                (Outcome::Changed, ChildChange::Remove) => RecordKind::ChildRemoved,
                (outcome, _) if outcome.code().is_some() => RecordKind::Failed,
                _ => continue,
            };
            let reason = child.outcome.why().or(why).unwrap_or(ASKED_FOR);
            let mut record = Record::new(kind, reason).of(&child.name);
            record.code = child.outcome.code().map(|code| code.name().to_owned());
            record.to = Some(format!("P_Key {} on {}", child.pkey, child.parent));
            self.tell_of(caller, record);
        }
    }

    fn tell_of_report(&self, caller: &Caller, report: &Report, why: Option<&str>) {
        for line in &report.lines {
            if let Some(record) = record_of_line(&report.link, line, why) {
                self.tell_of(caller, record);
            }
        }
    }
}

/// Says whether a caller may change each interface that declarations are for, also where all is as declared. What is for
/// none takes the right to change the host: it can be kept waiting to be confirmed, too, and nobody else applies meanwhile.
fn may_apply(caller: &Caller, wants: &[LinkWants], plan: &HostPlan) -> Result<(), Failure> {
    let wanted = wants.iter().map(|wants| &wants.link);
    let changed = plan.links.iter().map(|link| &link.target.name);
    let parents = plan.actions.iter().filter_map(|action| match action {
        Action::Make { child, .. } => Some(&child.parent.name),
        Action::Remove { child, .. } => Some(&child.parent.name),
        Action::Set { .. } => None,
    });
    let mut is_for_none = true;
    for link in wanted.chain(changed).chain(parents) {
        caller.check(Right::Change, Some(link))?;
        is_for_none = false;
    }
    if is_for_none {
        caller.check(Right::Change, None)?;
    }
    Ok(())
}

const ASKED_FOR: &str = "it was asked for";

/// Returns what to tell of one knob; `None` where nothing happened.
fn record_of_line(link: &LinkName, line: &ReportLine, why: Option<&str>) -> Option<Record> {
    let show = |value: &Option<Value>| shown(&line.key, value.as_ref());
    let mut record = match &line.outcome {
        Outcome::Changed | Outcome::NoEffect { .. } if line.before != line.now => {
            let reason = match &line.asked {
                Some(_) => why.unwrap_or(ASKED_FOR),
                None => "the kernel changed it along",
            };
            let record = Record::new(RecordKind::Changed, reason);
            record.values(show(&line.before), show(&line.now))
        }
        Outcome::Refused { why, .. }
        | Outcome::NotVerified { why }
        | Outcome::NotPutBack { why } => {
            let record = Record::new(RecordKind::Failed, why);
            record.values(show(&line.now), show(&line.asked))
        }
        Outcome::Changed
        | Outcome::NoEffect { .. }
        | Outcome::AlreadySo
        | Outcome::PutBack
        | Outcome::Vanished
        | Outcome::NotTried => return None,
    };
    record.link = Some(link.to_string());
    record.knob = Some(line.key.to_string());
    record.code = line.outcome.code().map(|code| code.name().to_owned());
    Some(record)
}

fn shown(key: &Key, value: Option<&Value>) -> Option<String> {
    value.map(|value| value.show(&key.knob().domain))
}
