// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the declarations mean for the interfaces that are there.

use std::collections::{BTreeMap, HashMap};

use ibmgr_api::{Child, ChildWants, Declared, Desired, Key, Link, LinkName, LinkWants, Rule, Want};

use crate::parts::spread;

/// Returns what each interface of `links` shall be, by index. Interfaces that nothing is wanted of are
/// left out: they are not managed.
///
/// A later rule wins, knob by knob; what it overrides is kept beside it. The values of a declared child
/// count where its rule stands, after the rule's own. What is wanted of `all` queues is wanted of each
/// that has no value of its own; for that, `links` need readings of [`keys_of_parts`](crate::keys_of_parts).
#[must_use]
pub fn resolve(desired: &Desired, links: &[Link]) -> Vec<LinkWants> {
    let mut sorted: Vec<&Link> = links.iter().collect();
    sorted.sort_by_key(|link| link.index);
    let mut below: HashMap<u32, Vec<&Link>> = HashMap::new();
    for link in &sorted {
        if let Some(parent) = link.parent.filter(|_| link.is_child()) {
            below.entry(parent).or_default().push(link);
        }
    }
    let by_index: HashMap<u32, &Link> = sorted.iter().map(|link| (link.index, *link)).collect();
    let wants = |link: &&Link| {
        let parent = link.parent.filter(|_| link.is_child());
        let parent = parent.and_then(|index| by_index.get(&index).copied());
        let settings = settings(desired, link, parent);
        let children = if link.is_child() {
            // A child of a child can't be; a rule for a driver's interfaces means the ports.
            Vec::new()
        } else {
            let present = below.get(&link.index).map_or(&[][..], Vec::as_slice);
            children(desired, link, present)
        };
        let wants = LinkWants {
            link: link.name.clone(),
            index: link.index,
            settings,
            children,
        };
        (!wants.settings.is_empty() || !wants.children.is_empty()).then_some(wants)
    };
    sorted.iter().filter_map(wants).collect()
}

/// Returns the values of `link`, which is a P_Key child of `parent` if there is one.
fn settings(desired: &Desired, link: &Link, parent: Option<&Link>) -> BTreeMap<Key, Want> {
    let mut settings = BTreeMap::new();
    for rule in &desired.rules {
        if rule.matches.takes(link) {
            declare(&mut settings, &rule.settings);
        }
        let Some(parent) = parent.filter(|parent| has_children(rule) && rule.matches.takes(parent))
        else {
            continue;
        };
        for child in &rule.children {
            if !parent.is_child() && is_child(child, link) {
                declare(&mut settings, &child.settings);
            }
        }
    }
    spread(&mut settings, link);
    settings
}

const fn has_children(rule: &Rule) -> bool {
    !rule.children.is_empty()
}

/// Says whether `link` is the declared child; that it has the right parent is known.
fn is_child(child: &Child, link: &Link) -> bool {
    let partition = link.pkey.map(|pkey| pkey.partition());
    partition == Some(child.pkey.partition())
        && child.name.as_ref().is_none_or(|name| *name == link.name)
}

fn declare(settings: &mut BTreeMap<Key, Want>, declared: &BTreeMap<Key, Declared>) {
    for (key, declared) in declared {
        match settings.get_mut(key) {
            Some(want) => {
                let before = std::mem::replace(&mut want.declared, declared.clone());
                want.overridden.push(before);
            }
            None => {
                let want = Want {
                    declared: declared.clone(),
                    overridden: Vec::new(),
                };
                settings.insert(key.clone(), want);
            }
        }
    }
}

/// Returns the declared children of `link`, by partition and name; `below` are those that it has.
fn children(desired: &Desired, link: &Link, below: &[&Link]) -> Vec<ChildWants> {
    let mut children: BTreeMap<(u16, Option<LinkName>), ChildWants> = BTreeMap::new();
    let rules = desired.rules.iter();
    for rule in rules.filter(|rule| has_children(rule) && rule.matches.takes(link)) {
        for child in &rule.children {
            let identity = (child.pkey.partition(), child.name.clone());
            let mut wants = ChildWants {
                pkey: child.pkey,
                kind: child.kind,
                name: child.name.clone(),
                name_to_be: child.name_below(&link.name).parse().ok(),
                is_present: child.is_present,
                policy: child.policy,
                origin: child.origin.clone(),
                overridden: Vec::new(),
                present: Vec::new(),
                settings: BTreeMap::new(),
            };
            if let Some(before) = children.remove(&identity) {
                wants.overridden = before.overridden;
                wants.overridden.push(before.origin);
            }
            let present = below.iter().filter(|link| is_child(child, link));
            wants.present = present
                .map(|link| (link.name.clone(), link.index))
                .collect();
            children.insert(identity, wants);
        }
    }
    let mut children: Vec<ChildWants> = children.into_values().collect();
    for wants in &mut children {
        if wants.is_present
            && wants.present.is_empty()
            && let Some(to_be) = to_be(wants, link)
        {
            wants.settings = settings(desired, &to_be, Some(link));
        }
    }
    children
}

/// Returns a missing child as it will be once it is there, as far as rules look at it.
fn to_be(child: &ChildWants, parent: &Link) -> Option<Link> {
    Some(Link {
        index: 0,
        name: child.name_to_be.clone()?,
        alt_names: Vec::new(),
        kind: Some("ipoib".to_owned()),
        parent: Some(parent.index),
        parent_name: Some(parent.name.clone()),
        child_kind: child.kind,
        is_up: false,
        has_carrier: false,
        pkey: Some(child.pkey),
        readings: BTreeMap::new(),
        ..parent.clone()
    })
}
