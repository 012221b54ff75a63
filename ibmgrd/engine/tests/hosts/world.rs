// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host in memory: ports, P_Key children, and a kernel with manners.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ibmgr_api::{
    Carrier, Child, ChildKind, Declared, Desired, ErrorCode, HostPlan, Key, Limits, Link, LinkName,
    Match, NewChild, OldChild, Origin, Pkey, Policy, Reading, Rule, Target, Value,
};
use ibmgrd_engine::{Host, Keys, Port, PortError, Query, keys_of, plan_host, resolve};

/// How the kernel treats writes of one knob on one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Refuses it and changes nothing.
    Refuses,
    /// Says success and changes nothing.
    Lies,
    /// Applies it and says EBUSY.
    BusyThoughApplied,
    /// Applies at most this number.
    Clamps(u64),
    /// Applies the first write and refuses each later one.
    OnlyOnce,
    /// Applies it, but shows it only after so many pauses.
    Delays(u32),
}

/// What happens to the process at one call, counted from 0 over the kernel's and the journal's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Killed before the call does anything.
    KilledBefore,
    /// Killed after the call did its work.
    KilledAfter,
    /// The call fails and does nothing.
    FailsBefore,
    /// The call does its work and fails.
    FailsAfter,
    /// The interface of that index is pulled out before the call.
    Unplugs(u32),
    /// The same, and it comes back at once under its name with another index and default values.
    Replugs(u32),
}

/// Counts calls, and tells what happens at one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clockwork {
    calls: Rc<Cell<usize>>,
    fate: Option<(usize, Fate)>,
}

impl Clockwork {
    pub(crate) fn with(at: usize, fate: Fate) -> Self {
        Self {
            calls: Rc::default(),
            fate: Some((at, fate)),
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.get()
    }

    /// Counts a call; returns what happens at it.
    pub(crate) fn strike(&self) -> Option<Fate> {
        let now = self.calls.get();
        self.calls.set(now + 1);
        let fate = self.fate.filter(|(at, _)| *at == now).map(|(_, fate)| fate);
        if fate == Some(Fate::KilledBefore) {
            std::panic::resume_unwind(Box::new(Killed));
        }
        fate
    }
}

/// What a killed process unwinds with: no message, no hook.
pub(crate) struct Killed;

fn die_if_killed(fate: Option<Fate>) {
    if fate == Some(Fate::KilledAfter) {
        std::panic::resume_unwind(Box::new(Killed));
    }
}

/// The host.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) links: BTreeMap<u32, Link>,
    pub(crate) manners: BTreeMap<(String, String), Manner>,
    pub(crate) clockwork: Clockwork,
    pub(crate) patience: u32,
    /// Every write that was applied or refused: interface, knob, value.
    pub(crate) writes: Vec<(String, String, u64)>,
    pending: Vec<(u32, Key, Value, u32)>,
    next_index: u32,
}

pub(crate) const KNOBS: [&str; 7] = [
    "mode",
    "state",
    "mtu",
    "txqueuelen",
    "rx-usecs",
    "rx-frames",
    "umcast",
];

pub(crate) fn key(name: &str) -> Key {
    name.parse().expect("the registry has it")
}

pub(crate) fn name(text: &str) -> LinkName {
    text.parse().expect("a good name")
}

fn defaults() -> BTreeMap<Key, Reading> {
    let values = [0, 0, 2044, 256, 16_000, 44, 0];
    let readings = KNOBS.iter().zip(values).map(|(name, value)| {
        let key = key(name);
        let via = key.knob().carriers[0].channel();
        let mut reading = Reading::settable(Value::Number(value), via);
        if *name == "rx-frames" {
            reading.limits = Some(Limits { min: 0, max: 65535 });
        }
        (key, reading)
    });
    readings.collect()
}

fn link(index: u32, text: &str, parent: Option<(u32, &LinkName)>, pkey: u16) -> Link {
    Link {
        index,
        name: name(text),
        alt_names: Vec::new(),
        kind: Some("ipoib".into()),
        driver: Some("ib_ipoib".into()),
        device_path: None,
        arphrd: Link::INFINIBAND,
        address: vec![0; 20],
        parent: parent.map(|(index, _)| index),
        parent_name: parent.map(|(_, name)| name.clone()),
        child_kind: parent.map(|_| ChildKind::Netlink),
        is_up: false,
        has_carrier: false,
        pkey: Pkey::new(pkey),
        readings: defaults(),
    }
}

impl World {
    /// Returns a host with the ports ib0 (index 2) and ib1 (3), and ib1's child `kid` (4, 0x8001).
    pub(crate) fn new() -> Self {
        let ib1 = name("ib1");
        let links = [
            link(2, "ib0", None, 0xffff),
            link(3, "ib1", None, 0xffff),
            link(4, "kid", Some((3, &ib1)), 0x8001),
        ];
        Self {
            links: links.into_iter().map(|link| (link.index, link)).collect(),
            manners: BTreeMap::new(),
            clockwork: Clockwork::default(),
            patience: 0,
            writes: Vec::new(),
            pending: Vec::new(),
            next_index: 10,
        }
    }

    pub(crate) fn with(mut self, link: &str, knob: &str, manner: Manner) -> Self {
        self.manners
            .insert((link.to_owned(), knob.to_owned()), manner);
        self
    }

    /// Returns every value, by name of interface and knob, children with their parent and P_Key.
    pub(crate) fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for link in self.links.values() {
            let pkey = link.pkey.map_or_else(String::new, |pkey| pkey.to_string());
            let parent = link.parent_name.as_ref().map_or("", LinkName::as_str);
            state.insert(link.name.to_string(), format!("{pkey} {parent}"));
            for (key, reading) in &link.readings {
                let text = reading
                    .value
                    .as_ref()
                    .map(|value| value.show(&key.knob().domain));
                state.insert(format!("{} {key}", link.name), text.unwrap_or_default());
            }
        }
        state
    }

    pub(crate) fn value(&self, link: &str, knob: &str) -> String {
        let state = self.state();
        state
            .get(&format!("{link} {knob}"))
            .cloned()
            .unwrap_or_else(|| "gone".to_owned())
    }

    /// Plans without counting calls.
    pub(crate) fn plan(&self, desired: &Desired) -> HostPlan {
        let mut quiet = Self {
            clockwork: Clockwork::default(),
            ..self.clone()
        };
        let links = quiet
            .observe_all(&Query::named(keys_of(desired)))
            .expect("no fate");
        plan_host(&resolve(desired, &links), &links)
    }

    fn refused(&self, link: &LinkName, key: &Key, errno: i32) -> PortError {
        PortError::Refused {
            link: link.clone(),
            key: key.clone(),
            errno,
            message: format!("errno {errno}"),
        }
    }

    fn fault() -> PortError {
        PortError::Io {
            what: "netlink send".into(),
            source: std::io::Error::other("no buffer space"),
        }
    }

    /// Counts a call and lets happen what happens before it.
    fn begin(&mut self) -> Result<Option<Fate>, PortError> {
        let fate = self.clockwork.strike();
        match fate {
            Some(Fate::FailsBefore) => return Err(Self::fault()),
            Some(Fate::Unplugs(index)) => {
                self.unplug(index);
            }
            Some(Fate::Replugs(index)) => {
                if let Some(old) = self.unplug(index) {
                    let index = self.next_index;
                    self.next_index += 1;
                    let new = Link {
                        index,
                        readings: defaults(),
                        ..old
                    };
                    self.links.insert(index, new);
                }
            }
            _ => {}
        }
        Ok(fate)
    }

    fn unplug(&mut self, index: u32) -> Option<Link> {
        self.links.retain(|_, link| link.parent != Some(index));
        self.links.remove(&index)
    }

    fn end<T>(fate: Option<Fate>, value: T) -> Result<T, PortError> {
        die_if_killed(fate);
        if fate == Some(Fate::FailsAfter) {
            Err(Self::fault())
        } else {
            Ok(value)
        }
    }

    fn store(&mut self, index: u32, knob: &str, number: u64) {
        if let Some(link) = self.links.get_mut(&index)
            && let Some(reading) = link.readings.get_mut(&key(knob))
        {
            reading.value = Some(Value::Number(number));
        }
    }

    /// What in-tree IPoIB does: a mode change sets the MTU of the new mode, and a port takes its children
    /// up and down with it.
    fn apply(&mut self, index: u32, key: &Key, number: u64) {
        let knob = key.to_string();
        if knob == "mode" && self.links[&index].readings[key].value != Some(Value::Number(number)) {
            self.store(index, "mtu", if number == 1 { 65520 } else { 2044 });
        }
        if knob == "state" {
            let children: Vec<u32> = self
                .links
                .values()
                .filter(|link| link.parent == Some(index))
                .map(|link| link.index)
                .collect();
            for child in children {
                self.store(child, "state", number);
            }
        }
        self.store(index, &knob, number);
    }

    fn obey(&mut self, target: &Target, key: &Key, number: u64) -> Result<(), PortError> {
        let index = target.index;
        let same = |link: &&Link| link.name == target.name;
        if self.links.get(&index).filter(same).is_none() {
            return Err(PortError::Gone {
                link: target.name.clone(),
            });
        }
        let (link, knob) = (target.name.to_string(), key.to_string());
        let is_written = |write: &&(String, String, u64)| write.0 == link && write.1 == knob;
        let nth = self.writes.iter().filter(is_written).count();
        self.writes.push((link.clone(), knob.clone(), number));
        // Datagram mode takes no MTU over its group's.
        let mode = self.links[&index].readings[&self::key("mode")]
            .value
            .clone();
        if knob == "mtu" && mode == Some(Value::Number(0)) && number > 4092 {
            return Err(self.refused(&target.name, key, 22));
        }
        match self.manners.get(&(link, knob)).copied() {
            None => self.apply(index, key, number),
            Some(Manner::Refuses) => return Err(self.refused(&target.name, key, 22)),
            Some(Manner::Lies) => {}
            Some(Manner::BusyThoughApplied) => {
                self.apply(index, key, number);
                return Err(self.refused(&target.name, key, 16));
            }
            Some(Manner::Clamps(most)) => self.apply(index, key, number.min(most)),
            Some(Manner::OnlyOnce) if nth == 0 => self.apply(index, key, number),
            Some(Manner::OnlyOnce) => return Err(self.refused(&target.name, key, 22)),
            Some(Manner::Delays(pauses)) => {
                let value = Value::Number(number);
                self.pending.push((index, key.clone(), value, pauses));
            }
        }
        Ok(())
    }

    fn child_refused(&self, child: &LinkName, errno: i32) -> PortError {
        PortError::ChildRefused {
            link: child.clone(),
            what: "a change of a child".into(),
            errno,
            message: format!("errno {errno}"),
            code: ErrorCode::Refused,
        }
    }

    fn child_manner(&self, child: &LinkName) -> Option<Manner> {
        let key = (child.to_string(), "child".to_owned());
        self.manners.get(&key).copied()
    }

    fn cut(mut link: Link, query: &Query) -> Link {
        match &query.keys {
            Keys::Identity => link.readings.clear(),
            Keys::Named(keys) => {
                link.readings.retain(|key, _| keys.contains(key));
            }
            Keys::All => {}
        }
        link
    }
}

impl Port for World {
    fn observe(&mut self, name: &LinkName, query: &Query) -> Result<Link, PortError> {
        let fate = self.begin()?;
        let link = self.links.values().find(|link| link.name == *name).cloned();
        let link = link.ok_or_else(|| PortError::NoSuchLink {
            link: name.clone(),
            nearest: Vec::new(),
        });
        Self::end(fate, Self::cut(link?, query))
    }

    fn observe_all(&mut self, query: &Query) -> Result<Vec<Link>, PortError> {
        let fate = self.begin()?;
        let links = self.links.values().cloned();
        Self::end(fate, links.map(|link| Self::cut(link, query)).collect())
    }

    fn name_of(&mut self, index: u32) -> Result<Option<LinkName>, PortError> {
        Ok(self.links.get(&index).map(|link| link.name.clone()))
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
        let fate = self.begin()?;
        self.obey(target, key, value.number().expect("numbers only"))?;
        Self::end(fate, ())
    }
}

impl Host for World {
    fn create_child(&mut self, child: &NewChild) -> Result<(), PortError> {
        let fate = self.begin()?;
        let Some(parent) = self.links.get(&child.parent.index) else {
            return Err(PortError::Gone {
                link: child.parent.name.clone(),
            });
        };
        let parent_name = parent.name.clone();
        if self.links.values().any(|link| link.name == child.name) {
            return Err(self.child_refused(&child.name, 17));
        }
        if self.child_manner(&child.name) == Some(Manner::Refuses) {
            return Err(self.child_refused(&child.name, 22));
        }
        let index = self.next_index;
        self.next_index += 1;
        let parent = Some((child.parent.index, &parent_name));
        let stored = child.pkey.raw() | Pkey::FULL_MEMBER;
        let mut new = link(index, child.name.as_str(), parent, stored);
        new.child_kind = Some(child.kind);
        self.links.insert(index, new);
        Self::end(fate, ())
    }

    fn delete_child(&mut self, child: &OldChild) -> Result<(), PortError> {
        let fate = self.begin()?;
        let same = |link: &&Link| link.name == child.child.name;
        if self.links.get(&child.child.index).filter(same).is_none() {
            return Err(PortError::Gone {
                link: child.child.name.clone(),
            });
        }
        if self.child_manner(&child.child.name) == Some(Manner::Refuses) {
            return Err(self.child_refused(&child.child.name, 16));
        }
        self.links.remove(&child.child.index);
        Self::end(fate, ())
    }

    fn pause(&mut self, attempt: u32) -> bool {
        for (index, key, value, left) in std::mem::take(&mut self.pending) {
            if left <= 1 {
                self.apply(index, &key, value.number().expect("numbers only"));
            } else {
                self.pending.push((index, key, value, left - 1));
            }
        }
        attempt < self.patience
    }
}

fn declared(settings: &[(&str, &str)]) -> BTreeMap<Key, Declared> {
    let settings = settings.iter().map(|(knob, text)| {
        let key = key(knob);
        let declared = Declared {
            value: key.knob().domain.parse(text).expect(text),
            policy: Policy::Heal,
            origin: Origin::whole("test"),
        };
        (key, declared)
    });
    settings.collect()
}

/// Returns a rule for the interfaces whose names fit `glob`.
pub(crate) fn rule(glob: &str, settings: &[(&str, &str)], children: Vec<Child>) -> Rule {
    Rule {
        origin: Origin::whole("test"),
        matches: Match {
            name: vec![glob.parse().expect("a glob")],
            ..Match::default()
        },
        settings: declared(settings),
        children,
    }
}

/// Returns a child that shall be there.
pub(crate) fn child(pkey: u16, name: Option<&str>, settings: &[(&str, &str)]) -> Child {
    Child {
        pkey: Pkey::new(pkey).expect("a partition"),
        kind: None,
        name: name.map(self::name),
        is_present: true,
        policy: Policy::Heal,
        origin: Origin::whole("test"),
        settings: declared(settings),
    }
}

/// Returns a child that shall not be there.
pub(crate) fn no_child(pkey: u16) -> Child {
    Child {
        is_present: false,
        ..child(pkey, None, &[])
    }
}

pub(crate) fn desired(rules: Vec<Rule>) -> Desired {
    Desired { rules }
}
