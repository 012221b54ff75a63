// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How managed interfaces stand, for whoever asks.

use std::time::Instant;

use ibmgr_api::LinkWants;
use ibmgr_api::status::{ChildStatus, Counters, KnobStatus, LinkStatus, Standing};

use super::attend::show;
use super::state::{ChildState, KnobState, LinkState};
use super::{Supervisor, Surroundings};

impl Supervisor {
    /// Returns how each managed interface stands, by index.
    #[must_use]
    pub fn links<S: Surroundings>(&self, surroundings: &S, now: Instant) -> Vec<LinkStatus> {
        let link = |(index, wants): (&u32, &LinkWants)| {
            let state = self.states.get(index)?;
            let mut link = link(wants, state, now);
            link.owners = surroundings.owners(*index);
            Some(link)
        };
        self.wants.iter().filter_map(link).collect()
    }

    /// Returns how many values are polled.
    #[must_use]
    pub fn polled(&self) -> usize {
        self.states.values().map(|state| state.polled.len()).sum()
    }

    /// Returns how often what was done.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

fn link(wants: &LinkWants, state: &LinkState, now: Instant) -> LinkStatus {
    let unknown = KnobState::default();
    let left = |at: Option<Instant>| {
        let left = at?.checked_duration_since(now)?;
        u64::try_from(left.as_millis()).ok()
    };
    let knobs = wants.settings.iter().map(|(key, want)| {
        let knob = state.knobs.get(key).unwrap_or(&unknown);
        let status = KnobStatus {
            declared: want.declared.value.show(&key.knob().domain),
            value: show(key, knob.value.as_ref()),
            standing: knob.standing,
            policy: want.declared.policy.name().to_owned(),
            origin: want.declared.origin.clone(),
            why: knob.why.clone(),
            code: knob.code.map(|code| code.name().to_owned()),
            drifts: knob.fight.drifts,
            retry_ms: left(knob.retry),
        };
        (key.to_string(), status)
    });
    let no_child = ChildState::default();
    let children = wants.children.iter().map(|child| {
        let id = (child.pkey.partition(), child.name.clone());
        let of_child = state.children.get(&id).unwrap_or(&no_child);
        let name = child.name.as_ref().or(child.name_to_be.as_ref());
        let present = child.present.iter();
        ChildStatus {
            pkey: child.pkey.to_string(),
            name: name.map(ToString::to_string),
            declared: child.is_present,
            present: present.map(|(name, _)| name.to_string()).collect(),
            standing: of_child.standing,
            policy: child.policy.name().to_owned(),
            origin: child.origin.clone(),
            why: of_child.why.clone(),
            retry_ms: left(of_child.retry),
        }
    });
    let mut status = LinkStatus {
        link: state.name.to_string(),
        index: wants.index,
        ok: true,
        knobs: knobs.collect(),
        children: children.collect(),
        owners: Vec::new(),
    };
    // One that nobody minds is no trouble.
    let is_fine = |standing: Standing, policy: &str| {
        standing.is_good() || policy == ibmgr_api::Policy::Ignore.name()
    };
    status.ok = status
        .knobs
        .values()
        .all(|knob| is_fine(knob.standing, &knob.policy))
        && status
            .children
            .iter()
            .all(|child| is_fine(child.standing, &child.policy));
    status
}
