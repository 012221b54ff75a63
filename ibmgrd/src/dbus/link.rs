// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One interface as an object: a property for what it is, and one for each knob that its device has.
//!
//! Which properties there are differs from device to device and may change, so that the object is not
//! made by zbus's macro.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use ibmgr_api::{ErrorCode, Key, Link, LinkName, Reading, Support};
use ibmgrd_engine::{Keys, Query};
use zbus::export::async_trait::async_trait;
use zbus::message::{Header, Message};
use zbus::names::{InterfaceName, MemberName};
use zbus::object_server::{DispatchResult, Interface, SignalEmitter};
use zbus::{BoxDBusError, Connection, ObjectServer, OwnedVariant, Variant, fdo};

use super::access::caller;
use super::error::Refusal;
use super::manager::{Line, Named, lines, options};
use super::values::{assignment, property, signature, text, variant};
use crate::office::{Caller, Office, Right, Set, everything};

/// Name of the interface that these objects have.
pub(super) const INTERFACE: &str = "org.ibmgr1.Link";

/// Properties of what the interface is, with their signatures. All else is a knob.
pub(super) const IDENTITY: &[(&str, &str)] = &[
    ("Name", "s"),
    ("Index", "u"),
    ("Kind", "s"),
    ("Driver", "s"),
    ("Address", "s"),
    ("Guid", "s"),
    ("Pkey", "s"),
    ("Parent", "s"),
    ("Up", "b"),
    ("Carrier", "b"),
];

/// What is told of one knob: its name, whether and why not it can be set, the kernel interface that it is
/// read through, the kernel's bounds, and what `local` means.
type Explanation = HashMap<&'static str, OwnedVariant>;

/// The object of one interface.
#[derive(Debug)]
pub(super) struct LinkObject {
    office: Office,
    index: u32,
    /// Who the daemon is to itself, for what it tells of its own accord.
    own: Caller,
}

/// Returns the path of an interface's object: an index outlives renaming.
pub(super) fn path(index: u32) -> String {
    format!("/org/ibmgr1/link/{index}")
}

impl LinkObject {
    pub(super) const fn new(office: Office, index: u32, own: Caller) -> Self {
        Self { office, index, own }
    }

    fn name(&self, caller: &Caller) -> Result<LinkName, Refusal> {
        let name = self.office.name_of(caller, self.index)?;
        name.ok_or_else(|| {
            let index = self.index;
            Refusal::new(
                ErrorCode::Vanished,
                format!("the interface of index {index} disappeared"),
            )
        })
    }

    fn read(&self, caller: &Caller, query: &Query) -> Result<Link, Refusal> {
        let name = self.name(caller)?;
        Ok(self.office.link(caller, &name, query)?)
    }

    async fn caller(
        &self,
        connection: &Connection,
        header: Option<&Header<'_>>,
        right: Right,
    ) -> Result<Caller, Refusal> {
        match header {
            Some(header) => caller(connection, header, right).await,
            None => Ok(self.own.clone()),
        }
    }

    /// Returns the knob whose property has that name, if the device has it.
    fn key(&self, caller: &Caller, name: &str) -> Result<Option<Key>, Refusal> {
        let link = self.read(caller, &everything())?;
        let mut keys = link
            .readings
            .iter()
            .filter(|(_, reading)| is_there(reading));
        Ok(keys
            .find(|(key, _)| property(key) == name)
            .map(|(key, _)| key.clone()))
    }

    async fn get_one(
        &self,
        connection: &Connection,
        header: Option<&Header<'_>>,
        name: &str,
    ) -> Result<Option<OwnedVariant>, Refusal> {
        let caller = self.caller(connection, header, Right::Observe).await?;
        if IDENTITY.iter().any(|(other, _)| *other == name) {
            let query = Query {
                keys: Keys::Identity,
                via: None,
            };
            let link = self.read(&caller, &query)?;
            return Ok(identity(&link).remove(name));
        }
        let link = self.read(&caller, &everything())?;
        let found = link
            .readings
            .iter()
            .find(|(key, reading)| is_there(reading) && property(key) == name);
        match found {
            None => Ok(None),
            Some((key, Reading { value: None, .. })) => Err(Refusal::new(
                ErrorCode::Unsupported,
                format!(
                    "{}: {key} differs from queue to queue: ask for those",
                    link.name
                ),
            )),
            Some((
                key,
                Reading {
                    value: Some(value), ..
                },
            )) => Ok(Some(variant(key, value))),
        }
    }

    async fn set_one(
        &self,
        connection: &Connection,
        header: Option<&Header<'_>>,
        name: &str,
        sent: &Variant<'_>,
    ) -> Result<(), Refusal> {
        let caller = self.caller(connection, header, Right::Change).await?;
        let link = self.name(&self.own)?;
        self.office.check(&caller, Right::Change, Some(&link))?;
        if IDENTITY.iter().any(|(other, _)| *other == name) {
            let why = format!("{link}: {name} is what the interface is, and no knob");
            return Err(Refusal::new(ErrorCode::Unsupported, why));
        }
        let Some(key) = self.key(&self.own, name)? else {
            return Err(Refusal::new(
                ErrorCode::UnknownKnob,
                format!("{link} has no property {name}"),
            ));
        };
        let set = Set {
            link,
            wants: vec![assignment(key, sent)?],
            via: None,
            only_if: None,
            why: None,
        };
        self.set(&caller, set).await.map(|_| ())
    }

    async fn set(&self, caller: &Caller, set: Set) -> Result<Vec<Line>, Refusal> {
        let done = self.office.set(caller, set).await?;
        match done.failure {
            None => Ok(lines(&done.report)),
            Some(failure) => Err(failure.into()),
        }
    }

    async fn set_many(
        &self,
        connection: &Connection,
        message: &Message,
    ) -> Result<(Vec<Line>,), Refusal> {
        let header = message.header();
        let caller = self
            .caller(connection, Some(&header), Right::Change)
            .await?;
        let body = message.body();
        let (knobs, given): (Named<'_>, Named<'_>) = body.deserialize().map_err(|error| {
            Refusal::new(
                ErrorCode::Usage,
                format!("Set takes a{{sv}}a{{sv}}: {error}"),
            )
        })?;
        let link = self.name(&self.own)?;
        let set = options(link, &knobs, &given)?;
        Ok((self.set(&caller, set).await?,))
    }

    async fn explain(
        &self,
        connection: &Connection,
        message: &Message,
    ) -> Result<(Explanation,), Refusal> {
        let header = message.header();
        let caller = self
            .caller(connection, Some(&header), Right::Observe)
            .await?;
        let body = message.body();
        let name: String = body
            .deserialize()
            .map_err(|error| Refusal::new(ErrorCode::Usage, format!("Explain takes s: {error}")))?;
        let key: Key = name
            .parse()
            .map_err(|error: ibmgr_api::KeyError| Refusal::new(error.code(), error.to_string()))?;
        let link = self.read(&caller, &Query::named(vec![key.clone()]))?;
        let reading = link.readings.get(&key);
        let mut told = Explanation::from([("property", text(&property(&key)))]);
        if let Some(reading) = reading {
            told.insert("support", text(reading.support.name()));
            if let Some(why) = reading.support.why() {
                told.insert("why", text(why));
            }
            if let Some(via) = reading.via {
                told.insert("via", text(via.name()));
            }
            if let Some(value) = &reading.value {
                told.insert("value", variant(&key, value));
            }
            if let Some(limits) = reading.limits {
                told.insert("min", limits.min.into());
                told.insert("max", limits.max.into());
            }
            if let Some(local) = &reading.local {
                told.insert("local", text(&local.show(&key.knob().domain)));
            }
        }
        Ok((told,))
    }
}

fn is_there(reading: &Reading) -> bool {
    !matches!(reading.support, Support::Unsupported(_))
}

/// Returns what the interface is.
pub(super) fn identity(link: &Link) -> HashMap<String, OwnedVariant> {
    let owned = |value: Option<String>| value.map(|value| text(&value));
    let pairs = [
        ("Name", Some(text(link.name.as_str()))),
        ("Index", Some(link.index.into())),
        ("Kind", owned(link.kind.clone())),
        ("Driver", owned(link.driver.clone())),
        ("Address", owned(link.address_text())),
        ("Guid", owned(link.guid().map(|guid| guid.to_string()))),
        ("Pkey", owned(link.pkey.map(|pkey| pkey.to_string()))),
        (
            "Parent",
            owned(link.parent_name.as_ref().map(ToString::to_string)),
        ),
        ("Up", Some(link.is_up.into())),
        ("Carrier", Some(link.has_carrier.into())),
    ];
    pairs
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Returns the values of the knobs that were read.
pub(super) fn knobs(link: &Link) -> BTreeMap<String, OwnedVariant> {
    let values = link.readings.iter().filter_map(|(key, reading)| {
        let value = reading.value.as_ref().filter(|_| is_there(reading))?;
        Some((property(key), variant(key, value)))
    });
    values.collect()
}

#[async_trait]
impl Interface for LinkObject {
    fn name() -> InterfaceName<'static> {
        InterfaceName::from_static_str_unchecked(INTERFACE)
    }

    async fn get(
        &self,
        name: &str,
        _server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        _emitter: &SignalEmitter<'_>,
    ) -> Option<Result<OwnedVariant, BoxDBusError>> {
        match self.get_one(connection, header, name).await {
            Ok(None) => None,
            Ok(Some(value)) => Some(Ok(value)),
            Err(refusal) => Some(Err(Box::new(refusal))),
        }
    }

    async fn get_all(
        &self,
        _server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        _emitter: &SignalEmitter<'_>,
    ) -> fdo::Result<HashMap<String, OwnedVariant>> {
        let read = async {
            let caller = self.caller(connection, header, Right::Observe).await?;
            self.read(&caller, &everything())
        };
        let link = read.await.map_err(Refusal::of_properties)?;
        let mut all = identity(&link);
        all.extend(knobs(&link));
        Ok(all)
    }

    fn set<'call>(
        &'call self,
        name: &'call str,
        value: &'call Variant<'_>,
        _server: &'call ObjectServer,
        connection: &'call Connection,
        header: Option<&'call Header<'_>>,
        _emitter: &'call SignalEmitter<'_>,
    ) -> DispatchResult<'call> {
        DispatchResult::Async(Box::pin(async move {
            self.set_one(connection, header, name, value)
                .await
                .map_err(|refusal| Box::new(refusal) as BoxDBusError)
        }))
    }

    async fn set_mut(
        &mut self,
        _name: &str,
        _value: &Variant<'_>,
        _server: &ObjectServer,
        _connection: &Connection,
        _header: Option<&Header<'_>>,
        _emitter: &SignalEmitter<'_>,
    ) -> Option<Result<(), BoxDBusError>> {
        None
    }

    fn call<'call>(
        &'call self,
        _server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        match name.as_str() {
            "Set" => {
                DispatchResult::new_async(connection, message, self.set_many(connection, message))
            }
            "Explain" => {
                DispatchResult::new_async(connection, message, self.explain(connection, message))
            }
            _ => DispatchResult::NotFound,
        }
    }

    fn call_mut<'call>(
        &'call mut self,
        _server: &'call ObjectServer,
        _connection: &'call Connection,
        _message: &'call Message,
        _name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        DispatchResult::NotFound
    }

    fn introspect_to_writer(&self, writer: &mut dyn Write, level: usize) {
        let link = self.read(&self.own, &everything()).ok();
        // Writing to a string cannot fail.
        let _ = introspect(writer, level, link.as_ref());
    }
}

/// Writes the interface with the properties that `link` has.
pub(super) fn introspect(
    writer: &mut dyn Write,
    level: usize,
    link: Option<&Link>,
) -> std::fmt::Result {
    let pad = " ".repeat(level);
    writeln!(writer, "{pad}<interface name=\"{INTERFACE}\">")?;
    writeln!(writer, "{pad}  <method name=\"Set\">")?;
    for (name, signature, direction) in [
        ("knobs", "a{sv}", "in"),
        ("options", "a{sv}", "in"),
        ("report", "a(ssssss)", "out"),
    ] {
        writeln!(
            writer,
            "{pad}    <arg name=\"{name}\" type=\"{signature}\" direction=\"{direction}\"/>"
        )?;
    }
    writeln!(writer, "{pad}  </method>")?;
    writeln!(writer, "{pad}  <method name=\"Explain\">")?;
    writeln!(
        writer,
        "{pad}    <arg name=\"knob\" type=\"s\" direction=\"in\"/>"
    )?;
    writeln!(
        writer,
        "{pad}    <arg name=\"told\" type=\"a{{sv}}\" direction=\"out\"/>"
    )?;
    writeln!(writer, "{pad}  </method>")?;
    let mut property = |name: &str, signature: &str, access: &str| {
        writeln!(
            writer,
            "{pad}  <property name=\"{name}\" type=\"{signature}\" access=\"{access}\"/>"
        )
    };
    let known = link.map(identity);
    for (name, signature) in IDENTITY {
        if known
            .as_ref()
            .is_some_and(|known| known.contains_key(*name))
        {
            property(name, signature, "read")?;
        }
    }
    let readings = link.into_iter().flat_map(|link| &link.readings);
    for (key, reading) in readings.filter(|(_, reading)| is_there(reading)) {
        let access = match reading.support {
            Support::Fixed(_) => "read",
            Support::Settable | Support::StoredNoEffect(_) | Support::Unsupported(_) => "readwrite",
        };
        property(
            &super::values::property(key),
            signature(&key.knob().domain),
            access,
        )?;
    }
    writeln!(writer, "{pad}</interface>")
}
