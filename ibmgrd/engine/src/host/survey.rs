// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading many interfaces at once, each value through the channel that it was written through.

use std::collections::BTreeMap;

use ibmgr_api::{Channel, Key, Link, Target, Value};

use crate::port::{Port, PortError, Query};

/// Up to so many interfaces are asked one by one; more are cheaper as one list.
const FEW: usize = 4;

/// A value that is to be read through a certain channel.
pub(super) struct Watched {
    /// Index of the interface.
    pub(super) index: u32,
    pub(super) key: Key,
    pub(super) channel: Channel,
}

/// Returns interfaces by index: those of `targets` that are there under whatever name, and with `all`
/// every other one besides. Each has the readings of all watched keys.
pub(super) fn survey<P: Port>(
    port: &mut P,
    targets: &[Target],
    watched: &[Watched],
    all: bool,
) -> Result<BTreeMap<u32, Link>, PortError> {
    let mut keys: Vec<Key> = watched.iter().map(|watched| watched.key.clone()).collect();
    keys.sort();
    keys.dedup();
    let query = Query::named(keys);
    let few = if all || targets.len() > FEW {
        None
    } else {
        one_by_one(port, targets, &query)?
    };
    let mut links = match few {
        Some(links) => links,
        None => {
            let links = port.observe_all(&query)?;
            links.into_iter().map(|link| (link.index, link)).collect()
        }
    };
    for Watched {
        index,
        key,
        channel,
    } in watched
    {
        let Some(link) = links.get_mut(index) else {
            continue;
        };
        let through = link.readings.get(key).and_then(|reading| reading.via);
        if through == Some(*channel) {
            continue;
        }
        let query = Query {
            via: Some(*channel),
            ..Query::named(vec![key.clone()])
        };
        match port.observe(&link.name, &query) {
            Ok(again) if again.index == *index => link.readings.extend(again.readings),
            // It goes while it is read: what was read before is as good as anything.
            Ok(_) | Err(PortError::Gone { .. } | PortError::NoSuchLink { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(links)
}

/// Returns `None` when one of them is not there under its name: then the list has to tell.
fn one_by_one<P: Port>(
    port: &mut P,
    targets: &[Target],
    query: &Query,
) -> Result<Option<BTreeMap<u32, Link>>, PortError> {
    let mut links = BTreeMap::new();
    for target in targets {
        match port.observe(&target.name, query) {
            Ok(link) if link.index == target.index => {
                links.insert(link.index, link);
            }
            Ok(_) | Err(PortError::Gone { .. } | PortError::NoSuchLink { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(links))
}

/// Returns the value that was read.
pub(super) fn value(link: &Link, key: &Key) -> Option<Value> {
    let reading = link.readings.get(key)?;
    reading.value.clone()
}
