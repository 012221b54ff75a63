// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes that `ibctl apply` made: what they set is declared, too, until they are taken back; one that
//! was interrupted is brought to an end, and one that nobody confirmed is taken back.
//!
//! The journal on disk is what both programs know of each other: it outlives either.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ibmgr_api::status::{Record, RecordKind};
use ibmgr_api::{
    Action, Assignment, Child, Declared, Desired, Glob, HostPlan, Key, LinkName, Match, Origin,
    Policy, Rule,
};
use ibmgrd_engine::Host;
use ibmgrd_state::change::{self, Ended, Why};
use ibmgrd_state::{Kept, Standing, Store, boottime};

/// After so long it is tried again to bring a change to an end.
const AGAIN: Duration = Duration::from_secs(1);

/// The last change of the host, and the last of the daemon's own.
#[derive(Debug)]
pub struct Changes {
    of_host: Store,
    of_daemon: Store,
    /// Inode, length and time of the journal when it was read.
    seen: Option<(u64, u64, i64, i64)>,
    is_begun: bool,
    deadline: Option<Instant>,
    declared: Desired,
}

/// What a look at the journals has found.
#[derive(Debug, Default)]
pub struct Found {
    /// Whether [`Changes::declared`] is something else now.
    pub is_other: bool,
    /// What was done.
    pub records: Vec<Record>,
}

impl Changes {
    /// Returns the changes kept below `root` for the network namespace with that cookie.
    #[must_use]
    pub fn new(root: &Path, cookie: u64) -> Self {
        Self {
            of_host: Store::new(root, cookie),
            of_daemon: Store::new(&root.join("daemon"), cookie),
            seen: None,
            is_begun: false,
            deadline: None,
            declared: Desired::default(),
        }
    }

    /// Returns where the changes of the host are kept.
    #[must_use]
    pub fn of_host(&self) -> Store {
        self.of_host.clone()
    }

    /// Returns where the daemon's own changes are kept.
    #[must_use]
    pub fn of_daemon(&self) -> Store {
        self.of_daemon.clone()
    }

    /// Returns what the last change declares; nothing once it was taken back.
    #[must_use]
    pub const fn declared(&self) -> &Desired {
        &self.declared
    }

    /// Returns when a change has to be taken back that waits to be confirmed.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Lets a later apply of the files win over the last change.
    pub fn forget(&mut self) {
        self.declared = Desired::default();
    }

    /// Reads the journal if it is another one than before, and does what it asks for. No other program
    /// of ibmgr may be changing anything meanwhile.
    pub fn look<H: Host>(&mut self, host: &mut H, now: Instant) -> Found {
        let mut found = Found::default();
        if !self.is_begun {
            self.is_begun = true;
            end(host, &self.of_daemon, &mut found);
        }
        let seen = self.stamp();
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        if seen == self.seen && !is_late {
            return found;
        }
        end(host, &self.of_host, &mut found);
        // What was just noted is no news.
        self.seen = self.stamp();
        self.deadline = None;
        let declared = match self.of_host.read() {
            Ok(Some(kept)) => {
                self.deadline = match kept.standing(boottime()) {
                    Standing::Pending { left } => Some(now + left),
                    // Its time came just now, or it could not be taken back.
                    Standing::Overdue | Standing::Unfinished => Some(now + AGAIN),
                    Standing::Closed => None,
                };
                declared(&kept)
            }
            // It was told.
            Ok(None) | Err(_) => Desired::default(),
        };
        if declared != self.declared {
            self.declared = declared;
            found.is_other = true;
        }
        found
    }

    fn stamp(&self) -> Option<(u64, u64, i64, i64)> {
        let file = fs::metadata(self.of_host.journal_path()).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    }
}

/// Brings a change to an end that was interrupted, or that nobody confirmed in time.
fn end<H: Host>(host: &mut H, store: &Store, found: &mut Found) {
    match change::settle(host, store) {
        Ok(None) => {}
        Ok(Some(ended)) => found.records.push(record_of(&ended)),
        Err(error) => {
            let text = crate::supervisor::chain(&error);
            let record = Record::new(RecordKind::Failed, text).code(error.code());
            found.records.push(record);
        }
    }
}

/// Tells of a change that was brought to an end.
pub fn record_of(ended: &Ended) -> Record {
    let why = match ended.why {
        Why::Interrupted => "was interrupted",
        Why::Unconfirmed => "was not confirmed in time",
        Why::Asked => "was to be taken back",
    };
    let how = if ended.is_finished {
        "finished"
    } else {
        "taken back"
    };
    let text = format!(
        "the change '{}' {why}, and is {how}: {}",
        ended.what,
        ended.report.end.name()
    );
    let mut record = Record::new(RecordKind::Checkpoint, text);
    record.code = ended.report.code().map(|code| code.name().to_owned());
    record
}

/// Returns what a change set, as rules for the very interfaces that it was for.
fn declared(kept: &Kept) -> Desired {
    if !kept.story.is_applied || kept.story.is_rolled_back || kept.story.is_rolling_back {
        return Desired::default();
    }
    let origin = Origin::whole(&format!("ibctl apply {}", kept.about.what));
    let plan = &kept.story.plan;
    let actions = plan.actions.iter();
    Desired {
        rules: actions
            .filter_map(|action| rule(plan, action, &origin))
            .collect(),
    }
}

fn rule(plan: &HostPlan, action: &Action, origin: &Origin) -> Option<Rule> {
    let for_link = |name: &LinkName| Match {
        name: vec![Glob::literal(name.as_str())],
        ..Match::default()
    };
    let (matches, settings, children) = match action {
        Action::Set { link, step } => {
            let want = Assignment {
                key: step.key.clone(),
                value: step.to.clone(),
            };
            let target = &plan.links.get(*link)?.target;
            (
                for_link(&target.name),
                settings(std::slice::from_ref(&want), origin),
                Vec::new(),
            )
        }
        Action::Make { child, wants } => {
            let made = Child {
                pkey: child.pkey,
                kind: None,
                name: Some(child.name.clone()),
                is_present: true,
                policy: Policy::Heal,
                origin: origin.clone(),
                settings: settings(wants, origin),
            };
            (for_link(&child.parent.name), BTreeMap::new(), vec![made])
        }
        Action::Remove { child, .. } => {
            let removed = Child {
                pkey: child.pkey,
                kind: None,
                name: Some(child.child.name.clone()),
                is_present: false,
                policy: Policy::Heal,
                origin: origin.clone(),
                settings: BTreeMap::new(),
            };
            (for_link(&child.parent.name), BTreeMap::new(), vec![removed])
        }
    };
    Some(Rule {
        origin: origin.clone(),
        matches,
        settings,
        children,
    })
}

fn settings(wants: &[Assignment], origin: &Origin) -> BTreeMap<Key, Declared> {
    let declared = |want: &Assignment| {
        let declared = Declared {
            value: want.value.clone(),
            policy: Policy::Heal,
            origin: origin.clone(),
        };
        (want.key.clone(), declared)
    };
    wants.iter().map(declared).collect()
}
