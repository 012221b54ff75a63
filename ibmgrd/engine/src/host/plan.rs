// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declared and observed state of a host to ordered actions.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{
    Action, Assignment, Carrier, Channel, ChildKind, ChildWants, Desired, HostPlan, HostRefusal,
    Key, Link, LinkName, LinkPlan, LinkWants, NewChild, OldChild, Phase, Plan, Policy, Skip, Step,
    Support, Target, Was, registry,
};

use crate::order::rank;
use crate::plan::{carrier_on, disturbed, plan};
use crate::port::{Port, PortError, Query};
use crate::resolve::resolve;

/// Returns the knobs to observe before [`plan_host`]: the declared ones, those that the kernel changes
/// along with them, and of children that may be removed what can be put back.
#[must_use]
pub fn keys_of(desired: &Desired) -> Vec<Key> {
    let mut keys = BTreeSet::new();
    let mut add = |key: &Key| {
        keys.insert(key.clone());
        keys.extend(disturbed(key));
    };
    let mut removes = false;
    for rule in &desired.rules {
        rule.settings.keys().for_each(&mut add);
        for child in &rule.children {
            child.settings.keys().for_each(&mut add);
            // One of another kind is made anew.
            removes |= !child.is_present || child.kind.is_some();
        }
    }
    if removes {
        let is_link = |carrier: Option<&Carrier>| matches!(carrier, Some(Carrier::Rtnl(_)));
        let rows = registry::knobs().filter(|knob| is_link(knob.carriers.first()));
        keys.extend(rows.map(Key::of));
    }
    keys.into_iter().collect()
}

/// Observes the host, and returns what `desired` wants of it and what brings it there.
///
/// # Errors
///
/// What kept the kernel from answering.
pub fn plan_declared<P: Port>(
    port: &mut P,
    desired: &Desired,
) -> Result<(Vec<LinkWants>, HostPlan), PortError> {
    if desired.rules.is_empty() {
        // Whoever declares nothing need not wait for a look at thousands of interfaces.
        return Ok(Default::default());
    }
    let links = port.observe_all(&Query::named(keys_of(desired)))?;
    let wants = resolve(desired, &links);
    let plan = plan_host(&wants, &links);
    Ok((wants, plan))
}

/// Returns what brings the host to `wants`. Nothing is written.
///
/// `links` is what `wants` was resolved from, with a reading for each key of [`keys_of`]. The order of
/// both does not matter. Actions come in this order: removals that make room, new children, values by
/// phase (parents before children, then by index), and last the other removals.
#[must_use]
pub fn plan_host(wants: &[LinkWants], links: &[Link]) -> HostPlan {
    let mut planner = Planner::new(wants, links);
    planner.children();
    planner.values();
    planner.finish()
}

struct Planner<'a> {
    /// By depth and index: parents come first.
    wants: Vec<(&'a LinkWants, &'a Link)>,
    links: BTreeMap<u32, &'a Link>,
    removals: Vec<Action>,
    makes: Vec<Action>,
    /// Writes with what they are ordered by.
    sets: Vec<(Order, Action)>,
    plan: HostPlan,
}

/// What writes are ordered by: phase, depth, index, row of the registry, member of its family.
pub(super) type Order = (Phase, u8, u32, usize, Option<Box<str>>);

/// Returns what a write is ordered by among those of all interfaces.
pub(super) fn order(step: &Step, depth: u8, index: u32) -> Order {
    let (phase, row, member) = rank(&step.key, &step.to);
    (phase, depth, index, row, member)
}

fn depth(link: &Link) -> u8 {
    u8::from(link.parent.is_some())
}

fn target(link: &Link) -> Target {
    Target {
        name: link.name.clone(),
        index: link.index,
    }
}

impl<'a> Planner<'a> {
    fn new(wants: &'a [LinkWants], links: &'a [Link]) -> Self {
        let links: BTreeMap<u32, &Link> = links.iter().map(|link| (link.index, link)).collect();
        let mut wants: Vec<_> = wants
            .iter()
            .filter_map(|wants| Some((wants, *links.get(&wants.index)?)))
            .collect();
        wants.sort_by_key(|(wants, link)| (depth(link), wants.index));
        Self {
            wants,
            links,
            removals: Vec::new(),
            makes: Vec::new(),
            sets: Vec::new(),
            plan: HostPlan::default(),
        }
    }

    fn children(&mut self) {
        let mut new_names = BTreeSet::new();
        for (wants, parent) in self.wants.clone() {
            for child in wants.children.iter().filter(|child| !child.is_present) {
                self.remove(parent, child);
            }
        }
        for (wants, parent) in self.wants.clone() {
            for child in wants.children.iter().filter(|child| child.is_present) {
                let made = if child.present.is_empty() {
                    self.make(parent, child, &mut new_names)
                } else {
                    self.keep(parent, child, &mut new_names)
                };
                self.plan
                    .refused
                    .extend(made.err().map(|why| HostRefusal::Child {
                        parent: parent.name.clone(),
                        pkey: child.pkey,
                        why,
                    }));
            }
        }
    }

    fn remove(&mut self, parent: &Link, child: &ChildWants) {
        for (_, index) in &child.present {
            if let Some(link) = self.links.get(index) {
                self.removals.push(removal(parent, link, child));
            }
        }
    }

    fn make(
        &mut self,
        parent: &Link,
        child: &ChildWants,
        new_names: &mut BTreeSet<LinkName>,
    ) -> Result<(), String> {
        let name = child.name_to_be.clone().ok_or(
            "the kernel's pattern for its name gives none that the kernel takes; declare a name",
        )?;
        let is_removed = |link: &Link| self.removed().any(|(old, _)| old.child.index == link.index);
        let holder = self.links.values().find(|link| {
            link.name == name || link.alt_names.iter().any(|other| other == name.as_str())
        });
        if let Some(holder) = holder.filter(|link| !is_removed(link)) {
            let index = holder.index;
            return Err(format!(
                "interface {index} is called '{name}' already; declare another name"
            ));
        }
        if !new_names.insert(name.clone()) {
            return Err(format!("another new child is to be called '{name}', too"));
        }
        self.makes.push(Action::Make {
            child: NewChild {
                parent: target(parent),
                name,
                pkey: child.pkey,
                kind: child.kind.unwrap_or(ChildKind::Netlink),
            },
            wants: child.assignments(),
        });
        Ok(())
    }

    /// Sees to it that a child which is there is of the declared kind. One that is not is made anew, with
    /// its name: its addresses and routes are lost, which only the policy `heal` takes into the bargain.
    fn keep(
        &mut self,
        parent: &Link,
        child: &ChildWants,
        new_names: &mut BTreeSet<LinkName>,
    ) -> Result<(), String> {
        let Some(wanted) = child.kind else {
            return Ok(());
        };
        for (name, index) in &child.present {
            let Some(link) = self.links.get(index) else {
                continue;
            };
            let Some(kind) = link.child_kind.filter(|kind| *kind != wanted) else {
                continue;
            };
            if child.policy != Policy::Heal {
                return Err(format!(
                    "'{name}' is there, but of kind {}, and its policy is {}; remove it first, or \
                     declare that kind",
                    kind.name(),
                    child.policy.name()
                ));
            }
            let mut all = self.wants.iter();
            let own = all.find(|(wants, _)| wants.index == *index);
            self.makes.push(Action::Make {
                child: NewChild {
                    parent: target(parent),
                    name: link.name.clone(),
                    pkey: child.pkey,
                    kind: wanted,
                },
                wants: own
                    .map(|(wants, _)| wants.assignments())
                    .unwrap_or_default(),
            });
            self.removals.push(removal(parent, link, child));
            new_names.insert(link.name.clone());
        }
        Ok(())
    }

    fn removed(&self) -> impl Iterator<Item = (&OldChild, &ChildKind)> {
        self.removals.iter().filter_map(|action| match action {
            Action::Remove { child, kind, .. } => Some((child, kind)),
            Action::Make { .. } | Action::Set { .. } => None,
        })
    }

    fn values(&mut self) {
        // Interfaces whose administrative state is written: the driver takes children along.
        let mut moved = BTreeSet::new();
        for (wants, link) in self.wants.clone() {
            if self.removed().any(|(old, _)| old.child.index == link.index) {
                continue;
            }
            let assignments = wants.assignments();
            let Ok(one) = plan(link, &assignments) else {
                // One by one, so that all that is wrong is told at once.
                let alone = |want: &Assignment| plan(link, std::slice::from_ref(want)).err();
                let errors = assignments.iter().filter_map(alone).map(HostRefusal::Knob);
                self.plan.refused.extend(errors);
                continue;
            };
            let one = if link.parent.is_some_and(|parent| moved.contains(&parent)) {
                written_anyway(one, link)
            } else {
                one
            };
            if one
                .steps
                .iter()
                .any(|step| step.key.knob().phase == Phase::Up)
            {
                moved.insert(link.index);
            }
            self.take(link, one);
        }
    }

    fn take(&mut self, link: &Link, plan: Plan) {
        let at = self.plan.links.len();
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        for step in &plan.steps {
            keys.insert(step.key.clone());
            keys.extend(disturbed(&step.key));
        }
        let before = keys.iter().filter_map(|key| was(link, key, &plan.steps));
        self.plan.links.push(LinkPlan {
            target: target(link),
            before: before.collect(),
            skips: plan.skips,
        });
        for step in plan.steps {
            let order = order(&step, depth(link), link.index);
            self.sets.push((order, Action::Set { link: at, step }));
        }
    }

    fn finish(mut self) -> HostPlan {
        let makes_room = |removal: &Action| {
            let Action::Remove { child: old, .. } = removal else {
                return false;
            };
            self.makes.iter().any(|action| match action {
                Action::Make { child: new, .. } => {
                    new.name == old.child.name
                        || new.parent.index == old.parent.index
                            && new.pkey.partition() == old.pkey.partition()
                }
                Action::Remove { .. } | Action::Set { .. } => false,
            })
        };
        let (first, last): (Vec<_>, Vec<_>) = self.removals.into_iter().partition(makes_room);
        self.sets.sort_by(|(a, _), (b, _)| a.cmp(b));
        let sets = self.sets.into_iter().map(|(_, action)| action);
        self.plan.actions = first
            .into_iter()
            .chain(self.makes)
            .chain(sets)
            .chain(last)
            .collect();
        self.plan
    }
}

/// Returns the plan with the administrative state written although it is as wanted: by the time of the
/// write it may not be.
fn written_anyway(mut plan: Plan, link: &Link) -> Plan {
    let is_state = |skip: &Skip| skip.key.knob().phase == Phase::Up;
    let (states, skips): (Vec<Skip>, Vec<Skip>) = plan.skips.into_iter().partition(is_state);
    plan.skips = skips;
    for skip in states {
        let via = link.readings.get(&skip.key).and_then(|reading| reading.via);
        let carrier = via.and_then(|via: Channel| carrier_on(&skip.key, via).ok());
        match carrier {
            Some(carrier) => plan.steps.push(Step {
                key: skip.key,
                from: Some(skip.value.clone()),
                to: skip.value,
                carrier,
                no_effect: skip.no_effect,
            }),
            None => plan.skips.push(skip),
        }
    }
    plan
}

/// Returns the value that a knob has, with the field that a step uses, or that it was read through.
fn was(link: &Link, key: &Key, steps: &[Step]) -> Option<Was> {
    let reading = link.readings.get(key)?;
    let step = steps.iter().find(|step| step.key == *key);
    match reading.support {
        Support::Settable | Support::StoredNoEffect(_) => {}
        Support::Fixed(_) | Support::Unsupported(_) => return None,
    }
    Some(Was {
        key: key.clone(),
        value: reading.value.clone()?,
        carrier: match step {
            Some(step) => step.carrier,
            None => carrier_on(key, reading.via?).ok()?,
        },
    })
}

fn settable(link: &Link) -> Vec<Assignment> {
    let readings = link.readings.iter();
    let settable = readings.filter(|(_, reading)| reading.support == Support::Settable);
    settable
        .filter_map(|(key, reading)| {
            Some(Assignment {
                key: key.clone(),
                value: reading.value.clone()?,
            })
        })
        .collect()
}

fn removal(parent: &Link, link: &Link, child: &ChildWants) -> Action {
    Action::Remove {
        child: OldChild {
            child: target(link),
            parent: target(parent),
            pkey: link.pkey.unwrap_or(child.pkey),
            // rtnetlink removes both kinds, and returns when it is done.
            via: ChildKind::Netlink,
        },
        kind: link.child_kind.unwrap_or(ChildKind::Netlink),
        settings: settable(link),
    }
}
