// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens, as signals: objects that come and go, and properties that change, whoever changed them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ibmgr_api::status::Record;
use ibmgr_api::{Failure, Key, Knob, Link, LinkName};
use ibmgrd_engine::{Keys, Query};
use ibmgrd_hw::watch::Event;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, ObjectPath, OwnedVariant};

use super::error::Refusal;
use super::link::{INTERFACE, LinkObject, identity, knobs, path};
use super::manager::{self, Manager};
use super::own;
use super::values::{property, text};
use crate::office::{Caller, Office, everything};

/// Changes within this time are told together: one command of `ip` makes several notifications.
const TOGETHER: Duration = Duration::from_millis(10);

/// Properties by name.
type Properties = BTreeMap<String, OwnedVariant>;

/// Turns what the office tells into signals.
#[derive(Debug)]
pub(super) struct Follower {
    office: Office,
    own: Caller,
    records: Receiver<Arc<Record>>,
    events: Receiver<Event>,
    links: BTreeMap<u32, LinkName>,
    /// What was told last, of what was ever told.
    told: HashMap<u32, Properties>,
    checkpoint: String,
    pending: BTreeMap<u32, Pending>,
}

/// What may have changed of one interface.
#[derive(Debug, Default)]
struct Pending {
    rows: BTreeSet<&'static str>,
    families: bool,
    identity: bool,
}

impl Pending {
    fn add(&mut self, knob: &'static Knob) {
        self.rows.insert(knob.name);
        self.families |= knob.is_family;
    }

    fn query(&self) -> Query {
        if self.families {
            return everything();
        }
        let keys = self.rows.iter().filter_map(|name| Key::named(name).ok());
        let keys: Vec<Key> = keys.collect();
        match keys[..] {
            [] => Query {
                keys: Keys::Identity,
                via: None,
            },
            _ => Query::named(keys),
        }
    }
}

/// What to react to.
enum News {
    Event(Event),
    Record(Arc<Record>),
    /// Some was lost.
    Lost,
    /// The daemon ends.
    End,
}

impl Follower {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// The daemon may not read, which cannot be.
    pub(super) fn new(office: &Office) -> Result<Self, Failure> {
        let own = own();
        Ok(Self {
            records: office.subscribe(&own)?,
            events: office.follow(&own)?,
            checkpoint: office.checkpoint(&own)?.form().state,
            office: office.clone(),
            own,
            links: BTreeMap::new(),
            told: HashMap::new(),
            pending: BTreeMap::new(),
        })
    }

    /// Makes an object of each interface that is there, and removes those of interfaces that are not.
    ///
    /// # Errors
    ///
    /// The kernel or the bus does not answer.
    pub(super) async fn list(&mut self, bus: &Connection) -> Result<(), Refusal> {
        let query = Query {
            keys: Keys::Identity,
            via: None,
        };
        let links = self.office.links(&self.own, query).await?;
        let now: BTreeMap<u32, LinkName> = links
            .into_iter()
            .map(|link| (link.index, link.name))
            .collect();
        let gone: Vec<u32> = self
            .links
            .keys()
            .filter(|it| !now.contains_key(it))
            .copied()
            .collect();
        for index in gone {
            self.remove(bus, index).await?;
        }
        for (index, name) in now {
            self.add(bus, index, name).await?;
        }
        Ok(())
    }

    /// Tells of changes until something fails, and returns that.
    pub(super) async fn follow(&mut self, bus: &Connection) -> Refusal {
        loop {
            let news = self.next().await;
            if let News::End = news {
                return Refusal::new(ibmgr_api::ErrorCode::Internal, "the daemon ends");
            }
            if let Err(refusal) = self.take_all(bus, news).await {
                return refusal;
            }
        }
    }

    async fn take_all(&mut self, bus: &Connection, first: News) -> Result<(), Refusal> {
        self.take(bus, first).await?;
        let until = tokio::time::Instant::now() + TOGETHER;
        while let Ok(news) = tokio::time::timeout_at(until, self.next()).await {
            if let News::End = news {
                break;
            }
            self.take(bus, news).await?;
        }
        self.tell(bus).await
    }

    async fn next(&mut self) -> News {
        let lost = |error| match error {
            RecvError::Lagged(_) => News::Lost,
            RecvError::Closed => News::End,
        };
        tokio::select! {
            event = self.events.recv() => event.map_or_else(lost, News::Event),
            record = self.records.recv() => record.map_or_else(lost, News::Record),
        }
    }

    async fn take(&mut self, bus: &Connection, news: News) -> Result<(), Refusal> {
        match news {
            News::Event(Event::Created { index, name }) => self.add(bus, index, name).await,
            News::Event(Event::Removed { index, .. }) => self.remove(bus, index).await,
            News::Event(Event::Renamed { index, to, .. }) => {
                self.links.insert(index, to);
                self.pending.entry(index).or_default().identity = true;
                Ok(())
            }
            News::Event(Event::Changed {
                index,
                knobs,
                identity,
                carrier,
                ..
            }) => {
                let pending = self.pending.entry(index).or_default();
                // Its state is in both.
                pending.identity |= identity || carrier || knobs.iter().any(|it| it.is_brief);
                knobs.into_iter().for_each(|knob| pending.add(knob));
                Ok(())
            }
            News::Event(Event::Resync { .. }) | News::Lost => self.list(bus).await,
            News::Record(record) => self.take_record(bus, &record).await,
            News::End => Ok(()),
        }
    }

    async fn take_record(&mut self, bus: &Connection, record: &Record) -> Result<(), Refusal> {
        // What has no notification of the kernel's is known by whoever set it.
        let key = record
            .knob
            .as_deref()
            .and_then(|name| name.parse::<Key>().ok());
        let name = record.link.as_deref();
        let index = self
            .links
            .iter()
            .find(|(_, link)| Some(link.as_str()) == name);
        if let (Some(key), Some((index, _))) = (key, index) {
            self.pending.entry(*index).or_default().add(key.knob());
        }
        let manager = SignalEmitter::new(bus, manager::PATH)?;
        let json = serde_json::to_string(record).unwrap_or_default();
        Manager::happened(&manager, record.kind.name(), &json).await?;
        let state = self.office.checkpoint(&self.own)?.form().state;
        if state != self.checkpoint {
            let changed = Properties::from([("Checkpoint".to_owned(), text(&state))]);
            self.checkpoint = state;
            signal(bus, manager::PATH, "org.ibmgr1.Manager", &changed, &[]).await?;
        }
        Ok(())
    }

    async fn add(&mut self, bus: &Connection, index: u32, name: LinkName) -> Result<(), Refusal> {
        let is_new = self.links.insert(index, name.clone()).is_none();
        if !is_new {
            return Ok(());
        }
        let path = path(index);
        let object = LinkObject::new(self.office.clone(), index, self.own.clone());
        bus.object_server().at(path.as_str(), object).await?;
        if let (Ok(manager), Ok(path)) = (
            SignalEmitter::new(bus, manager::PATH),
            ObjectPath::try_from(path),
        ) {
            Manager::link_added(&manager, name.as_str(), path).await?;
        }
        Ok(())
    }

    async fn remove(&mut self, bus: &Connection, index: u32) -> Result<(), Refusal> {
        self.told.remove(&index);
        self.pending.remove(&index);
        let Some(name) = self.links.remove(&index) else {
            return Ok(());
        };
        let path = path(index);
        bus.object_server()
            .remove::<LinkObject, _>(path.as_str())
            .await?;
        if let (Ok(manager), Ok(path)) = (
            SignalEmitter::new(bus, manager::PATH),
            ObjectPath::try_from(path),
        ) {
            Manager::link_removed(&manager, name.as_str(), path).await?;
        }
        Ok(())
    }

    /// Reads what may have changed, and tells of what has.
    async fn tell(&mut self, bus: &Connection) -> Result<(), Refusal> {
        while let Some((index, pending)) = self.pending.pop_first() {
            let Some(name) = self.links.get(&index) else {
                continue;
            };
            // It may be gone or renamed by now: then another notification comes.
            let Ok(link) = self.office.link(&self.own, name, &pending.query()) else {
                continue;
            };
            if link.index != index {
                continue;
            }
            let told = self.told.entry(index).or_default();
            let (changed, invalidated) = difference(told, &link, &pending);
            if !changed.is_empty() || !invalidated.is_empty() {
                let gone: Vec<&str> = invalidated.iter().map(String::as_str).collect();
                signal(bus, &path(index), INTERFACE, &changed, &gone).await?;
            }
        }
        Ok(())
    }
}

/// Brings `told` up to date with `link`, and returns what is new in it, and the names that are gone.
fn difference(told: &mut Properties, link: &Link, pending: &Pending) -> (Properties, Vec<String>) {
    let mut now = knobs(link);
    let of_rows = |key: &Key| pending.rows.contains(key.knob().name);
    let asked: BTreeSet<String> = link
        .readings
        .keys()
        .filter(|key| of_rows(key))
        .map(property)
        .collect();
    now.retain(|name, _| asked.contains(name));
    if pending.identity {
        now.extend(identity(link));
    }
    let gone: Vec<String> = told
        .keys()
        .filter(|name| asked.contains(*name) && !now.contains_key(*name))
        .cloned()
        .collect();
    for name in &gone {
        told.remove(name);
    }
    now.retain(|name, value| told.get(name) != Some(value));
    told.extend(
        now.iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    (now, gone)
}

async fn signal(
    bus: &Connection,
    path: &str,
    interface: &str,
    changed: &Properties,
    invalidated: &[&str],
) -> Result<(), Refusal> {
    let body = (interface, changed, invalidated);
    let properties = "org.freedesktop.DBus.Properties";
    let none: Option<&str> = None;
    bus.emit_signal(none, path, properties, "PropertiesChanged", &body)
        .await?;
    Ok(())
}
