// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is wanted of a whole, as what is wanted of its parts: of `all` queues as of each, and of a device
//! as of each NAPI instance where something else is wanted of one of them.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{Desired, Key, Link};

/// Returns the keys that must have been read before `resolve`: those whose parts the
/// device alone knows.
#[must_use]
pub fn keys_of_parts(desired: &Desired) -> Vec<Key> {
    let rules = desired.rules.iter();
    let settings = rules.flat_map(|rule| {
        let children = rule.children.iter().map(|child| &child.settings);
        children.chain([&rule.settings])
    });
    let keys: BTreeSet<Key> = settings.flat_map(BTreeMap::keys).cloned().collect();
    let is_whole = |key: &&Key| parts_of(key, &keys).is_some();
    let wholes = keys.iter().filter(is_whole);
    // A part of the whole brings the others along.
    let parts = |key: &Key| {
        keys.iter()
            .filter(|part| is_part(part, key))
            .cloned()
            .collect()
    };
    let parts: Vec<Vec<Key>> = wholes.clone().map(parts).collect();
    wholes.cloned().chain(parts.into_iter().flatten()).collect()
}

/// Puts what is wanted of a whole in the place of each part that nothing else is wanted of, as far as
/// `link` has readings of parts. A part that has a value of its own keeps it, wherever it was declared.
pub(crate) fn spread<W: Clone>(wants: &mut BTreeMap<Key, W>, link: &Link) {
    let keys: BTreeSet<Key> = wants.keys().cloned().collect();
    for whole in &keys {
        if parts_of(whole, &keys).is_none() {
            continue;
        }
        let parts: Vec<&Key> = link
            .readings
            .keys()
            .filter(|part| is_part(part, whole))
            .collect();
        if parts.is_empty() {
            continue;
        }
        let Some(want) = wants.remove(whole) else {
            continue;
        };
        for part in parts {
            wants.entry(part.clone()).or_insert_with(|| want.clone());
        }
    }
}

/// Returns the family of the parts of `whole` when it is to be set part by part: always for `all` queues,
/// else when something is wanted of a part, too. A device is set as a whole where it can be, since that
/// outlives its NAPI instances.
fn parts_of(whole: &Key, wanted: &BTreeSet<Key>) -> Option<&'static str> {
    let parts = whole.parts()?;
    let is_split = whole.is_all() || wanted.iter().any(|key| is_part(key, whole));
    is_split.then_some(parts.name)
}

fn is_part(part: &Key, whole: &Key) -> bool {
    part != whole
        && whole
            .parts()
            .is_some_and(|knob| knob.name == part.knob().name)
}
