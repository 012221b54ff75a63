// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A kernel in memory that rounds, refuses, lies, says EBUSY though it applied, and unplugs.

use std::collections::BTreeMap;

use ibmgr_api::{Carrier, Key, Limits, Link, LinkName, Reading, Support, Value};
use ibmgrd_engine::{Keys, Port, PortError, Query, Target};

/// How the fake treats a write of one knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Applies it.
    Honest,
    /// Refuses it and changes nothing.
    Refuses,
    /// Says success and changes nothing.
    Lies,
    /// Applies it and says EBUSY.
    BusyThoughApplied,
    /// Says EBUSY and changes nothing.
    Busy,
    /// Applies at most this number.
    Clamps(u64),
    /// Applies the first write and refuses each later one.
    OnlyOnce,
}

/// The interface and its manners.
#[derive(Clone, Debug)]
pub(crate) struct Fake {
    pub(crate) link: Link,
    pub(crate) manners: BTreeMap<Key, Manner>,
    /// Unplugs before the write of this number, counted from 0.
    pub(crate) vanishes_at: Option<usize>,
    /// Lets another interface take the name over when it unplugs.
    pub(crate) name_is_reused: bool,
    /// Takes another name before the write of this number, counted from 0.
    pub(crate) renamed_at: Option<usize>,
    /// A write of the first knob sets the second to 0.
    pub(crate) forgets: Option<(Key, Key)>,
    /// Every write that arrived.
    pub(crate) writes: Vec<(Key, Value)>,
    /// Observations that failed from now on.
    pub(crate) blind: bool,
}

pub(crate) const KNOBS: [&str; 7] = [
    "mode",
    "state",
    "mtu",
    "txqueuelen",
    "rx-usecs",
    "rx-frames",
    "gro-flush-timeout",
];

pub(crate) fn key(name: &str) -> Key {
    name.parse().expect("the registry has it")
}

impl Fake {
    /// Returns an IPoIB interface in datagram mode, up.
    pub(crate) fn ib0() -> Self {
        let values = [0, 1, 2044, 256, 16_000, 44, 0];
        let readings = KNOBS.iter().zip(values).map(|(name, value)| {
            let key = key(name);
            let via = key.knob().carriers[0].channel();
            let mut reading = Reading::settable(Value::Number(value), via);
            if *name == "rx-frames" {
                reading.limits = Some(Limits { min: 0, max: 65535 });
            }
            if *name == "gro-flush-timeout" {
                reading.support = Support::StoredNoEffect("in-tree ib_ipoib ignores it".into());
            }
            (key, reading)
        });
        let link = Link {
            index: 7,
            name: "ib0".parse().expect("a good name"),
            alt_names: Vec::new(),
            kind: Some("ipoib".into()),
            driver: Some("ib_ipoib".into()),
            device_path: None,
            arphrd: Link::INFINIBAND,
            address: vec![0; 20],
            parent: None,
            parent_name: None,
            child_kind: None,
            is_up: true,
            has_carrier: true,
            pkey: None,
            readings: readings.collect(),
        };
        Self {
            link,
            manners: BTreeMap::new(),
            vanishes_at: None,
            name_is_reused: false,
            renamed_at: None,
            forgets: None,
            writes: Vec::new(),
            blind: false,
        }
    }

    pub(crate) fn with(mut self, name: &str, manner: Manner) -> Self {
        self.manners.insert(key(name), manner);
        self
    }

    pub(crate) fn value(&self, name: &str) -> u64 {
        let reading = &self.link.readings[&key(name)];
        reading
            .value
            .as_ref()
            .and_then(Value::number)
            .expect("the fake has numbers only")
    }

    pub(crate) fn values(&self) -> BTreeMap<Key, Option<Value>> {
        let readings = self.link.readings.iter();
        readings
            .map(|(key, reading)| (key.clone(), reading.value.clone()))
            .collect()
    }

    fn is_gone(&self) -> bool {
        self.vanishes_at.is_some_and(|at| self.writes.len() > at)
    }

    fn apply(&mut self, key: &Key, value: Value) {
        // What in-tree IPoIB does: a mode change sets the MTU of the new mode.
        if key.knob().name == "mode" && self.link.readings[key].value != Some(value.clone()) {
            let mtu = if value == Value::Number(1) {
                65520
            } else {
                2044
            };
            self.store("mtu", Value::Number(mtu));
        }
        self.store(&key.to_string(), value);
        if let Some((_, forgotten)) = self.forgets.clone().filter(|(cause, _)| cause == key) {
            self.store(&forgotten.to_string(), Value::Number(0));
        }
    }

    fn store(&mut self, name: &str, value: Value) {
        if let Some(reading) = self.link.readings.get_mut(&key(name)) {
            reading.value = Some(value);
        }
    }

    fn refused(&self, key: &Key, errno: i32) -> PortError {
        let link = self.link.name.clone();
        PortError::Refused {
            link,
            key: key.clone(),
            errno,
            message: format!("errno {errno}"),
        }
    }
}

impl Port for Fake {
    fn observe(&mut self, name: &LinkName, query: &Query) -> Result<Link, PortError> {
        if self.blind {
            let source = std::io::Error::other("no buffer space");
            return Err(PortError::Io {
                what: "reading links".into(),
                source,
            });
        }
        let mut link = self.link.clone();
        if self.is_gone() || *name != link.name {
            if !self.name_is_reused {
                return Err(PortError::NoSuchLink {
                    link: name.clone(),
                    nearest: Vec::new(),
                });
            }
            link.index += 1;
        }
        if let Keys::Named(keys) = &query.keys {
            link.readings.retain(|key, _| keys.contains(key));
        }
        Ok(link)
    }

    fn observe_all(&mut self, query: &Query) -> Result<Vec<Link>, PortError> {
        let name = self.link.name.clone();
        Ok(vec![self.observe(&name, query)?])
    }

    fn name_of(&mut self, index: u32) -> Result<Option<LinkName>, PortError> {
        let is_there = !self.is_gone() && self.link.index == index;
        Ok(is_there.then(|| self.link.name.clone()))
    }

    fn write(
        &mut self,
        target: &Target,
        key: &Key,
        value: &Value,
        carrier: Carrier,
    ) -> Result<(), PortError> {
        assert!(
            key.knob().carriers.contains(&carrier),
            "{key} by {carrier:?}"
        );
        let nth = self
            .writes
            .iter()
            .filter(|(written, _)| written == key)
            .count();
        if self.renamed_at == Some(self.writes.len()) {
            self.link.name = "rail0".parse().expect("a good name");
        }
        self.writes.push((key.clone(), value.clone()));
        let is_target = target.index == self.link.index && target.name == self.link.name;
        if self.is_gone() || !is_target {
            return Err(PortError::Gone {
                link: target.name.clone(),
            });
        }
        let value = value.clone();
        match self.manners.get(key).copied().unwrap_or(Manner::Honest) {
            Manner::Honest => self.apply(key, value),
            Manner::Refuses => return Err(self.refused(key, 22)),
            Manner::Lies => {}
            Manner::Busy => return Err(self.refused(key, 16)),
            Manner::BusyThoughApplied => {
                self.apply(key, value);
                return Err(self.refused(key, 16));
            }
            Manner::Clamps(most) => {
                let number = value.number().expect("numbers only").min(most);
                self.apply(key, Value::Number(number));
            }
            Manner::OnlyOnce if nth == 0 => self.apply(key, value),
            Manner::OnlyOnce => return Err(self.refused(key, 22)),
        }
        Ok(())
    }
}
