// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From what the files describe, one by one, to rules.

use std::collections::{BTreeMap, HashMap, HashSet};

use ibmgr_api::{
    Child, Declared, Desired, Glob, Key, LinkName, Match, Origin, Policy, Rule, Value,
};

use crate::found::{Below, Found, Setting};
use crate::note::{Notes, Outcome, Place};

/// Largest MTU in datagram mode: 4096 bytes of an InfiniBand packet less the IPoIB header
/// (`IPOIB_UD_MTU`, drivers/infiniband/ulp/ipoib/ipoib.h).
const DATAGRAM_MTU: u64 = 4092;

/// Largest MTU in connected mode (`IPOIB_CM_MTU`, the same file).
const CONNECTED_MTU: u64 = 65520;

/// A rule under construction.
struct Target {
    place: Place,
    matches: Match,
    settings: BTreeMap<Key, Setting>,
    children: Vec<ChildDraft>,
}

struct ChildDraft {
    place: Place,
    below: Below,
    settings: BTreeMap<Key, Setting>,
}

/// Rules under construction, found by their match.
#[derive(Default)]
struct Targets {
    targets: Vec<Target>,
    places: HashMap<String, usize>,
}

impl Targets {
    /// Returns the rule with that match, a new one if there is none.
    fn of(&mut self, matches: Match, place: &Place) -> &mut Target {
        let next = self.targets.len();
        // A match has no hash, but a text that tells it from any other.
        let at = *self.places.entry(format!("{matches:?}")).or_insert(next);
        if at == next {
            self.targets.push(Target {
                place: place.clone(),
                matches,
                settings: BTreeMap::new(),
                children: Vec::new(),
            });
        }
        &mut self.targets[at]
    }
}

/// Joins what several files say of one interface, and hangs children below their parents. What stands
/// later wins; a setting that loses is noted as such.
pub(crate) fn assemble(found: Vec<Found>, notes: &mut Notes) -> Desired {
    let mut rules = Targets::default();
    let (children, links): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| found.child.is_some());
    let names: HashSet<LinkName> = children
        .iter()
        .filter_map(|found| Some(found.child.as_ref()?.name.clone()))
        .collect();
    // A file for an interface that another one makes as a child, such as networkd's, is about the child.
    let is_of_child = |found: &Found| only_name(found).is_some_and(|name| names.contains(&name));
    let (of_children, links): (Vec<_>, Vec<_>) = links.into_iter().partition(is_of_child);
    let mut parents: HashMap<String, Match> = HashMap::new();
    for found in links {
        if let [name] = &found.matches.name[..] {
            parents
                .entry(name.to_string())
                .or_insert_with(|| found.matches.clone());
        }
        let target = rules.of(found.matches, &found.place);
        put(&mut target.settings, found.settings, notes);
    }
    let mut drafts: HashMap<(LinkName, LinkName), usize> = HashMap::new();
    let mut by_name: HashMap<LinkName, (Match, usize)> = HashMap::new();
    for found in children {
        let Some(below) = found.child else { continue };
        let parent = named(&below.parent);
        let known = parent
            .name
            .first()
            .and_then(|name| parents.get(name.as_str()));
        let matches = known.cloned().unwrap_or(parent);
        let target = rules.of(matches.clone(), &found.place);
        let next = target.children.len();
        let at = *drafts
            .entry((below.parent.clone(), below.name.clone()))
            .or_insert(next);
        if at == next {
            by_name.entry(below.name.clone()).or_insert((matches, at));
            target.children.push(ChildDraft {
                place: found.place,
                below,
                settings: BTreeMap::new(),
            });
        }
        put(&mut target.children[at].settings, found.settings, notes);
    }
    for found in of_children {
        let known = only_name(&found).and_then(|name| by_name.get(&name));
        if let Some((matches, at)) = known {
            let target = rules.of(matches.clone(), &found.place);
            if let Some(child) = target.children.get_mut(*at) {
                put(&mut child.settings, found.settings, notes);
            }
        }
    }
    let mut targets = rules.targets;
    for target in &mut targets {
        check_mtu(&mut target.settings, notes);
        for child in &mut target.children {
            check_mtu(&mut child.settings, notes);
        }
    }
    targets.retain(|target| !target.settings.is_empty() || !target.children.is_empty());
    Desired {
        rules: targets.into_iter().map(rule).collect(),
    }
}

/// Returns the name of what is matched by that name alone.
fn only_name(found: &Found) -> Option<LinkName> {
    let [name] = &found.matches.name[..] else {
        return None;
    };
    let name: LinkName = name.as_str().parse().ok()?;
    (named(&name) == found.matches).then_some(name)
}

/// Returns the match of one name.
fn named(name: &LinkName) -> Match {
    Match {
        name: vec![Glob::literal(name.as_str())],
        ..Match::default()
    }
}

fn put(settings: &mut BTreeMap<Key, Setting>, more: Vec<Setting>, notes: &mut Notes) {
    for setting in more {
        let place = setting.place.clone();
        if let Some(before) = settings.insert(setting.key.clone(), setting) {
            notes.take_back(before.note, format!("{place} sets the knob, too, and wins"));
        }
    }
}

/// Drops an MTU that the mode does not take: the kernel refuses it, and its tool got nothing from it.
fn check_mtu(settings: &mut BTreeMap<Key, Setting>, notes: &mut Notes) {
    let of = |name: &str| {
        settings
            .values()
            .find(|setting| setting.key.knob().name == name)
    };
    let Some(mtu) = of("mtu") else { return };
    let Some(bytes) = mtu.value.number() else {
        return;
    };
    let mode = of("mode").map(|mode| mode.value == Value::from(1_u32));
    let (key, note) = (mtu.key.clone(), mtu.note);
    let why = match mode {
        Some(true) if bytes > CONNECTED_MTU => {
            format!("connected mode takes at most {CONNECTED_MTU}")
        }
        Some(false) if bytes > DATAGRAM_MTU => {
            format!(
                "datagram mode takes at most {DATAGRAM_MTU}, 2044 on most fabrics, and the kernel refuses more"
            )
        }
        None if bytes > DATAGRAM_MTU => {
            let why = "an IPoIB interface takes it in connected mode only, and nothing here sets the mode";
            return notes.remark(note, Outcome::Carried, why);
        }
        Some(_) | None => return,
    };
    settings.remove(&key);
    notes.take_back(note, why);
}

fn rule(target: Target) -> Rule {
    Rule {
        origin: origin(&target.place),
        matches: target.matches,
        settings: declared(target.settings),
        children: target.children.into_iter().map(child).collect(),
    }
}

fn child(draft: ChildDraft) -> Child {
    Child {
        pkey: draft.below.pkey,
        kind: None,
        name: Some(draft.below.name),
        is_present: true,
        policy: Policy::Heal,
        origin: origin(&draft.place),
        settings: declared(draft.settings),
    }
}

fn declared(settings: BTreeMap<Key, Setting>) -> BTreeMap<Key, Declared> {
    let declare = |(key, setting): (Key, Setting)| {
        let declared = Declared {
            value: setting.value,
            policy: Policy::Heal,
            origin: origin(&setting.place),
        };
        (key, declared)
    };
    settings.into_iter().map(declare).collect()
}

fn origin(place: &Place) -> Origin {
    Origin {
        file: place.file.clone(),
        line: place.line,
        column: 1,
    }
}
