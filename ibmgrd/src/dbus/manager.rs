// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The object of the whole host.

use std::collections::HashMap;
use std::time::Duration;

use ibmgr_api::form::{ChangeForm, DomainForm, KnobForm, SourceForm};
use ibmgr_api::{Assignment, ErrorCode, Failure, Key, LinkName, Report, registry};
use ibmgrd_config::exported_to_toml;
use ibmgrd_engine::{Keys, Query};
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, ObjectPath, OwnedObjectPath, OwnedVariant, Variant, interface};

use super::access::caller;
use super::error::Refusal;
use super::link::path;
use super::values::{assignment, text};
use crate::office::{
    Apply, CONFIRM_MAX, Office, Right, Set, channel, declarations, link_name, reason,
};

/// Path of the object.
pub(super) const PATH: &str = "/org/ibmgr1";

/// How one knob went: its name, outcome, the value that was asked for, the values before and now, and why
/// it is not as asked. What there is nothing of is empty.
pub(super) type Line = (String, String, String, String, String, String);

/// Values by name, as they were sent.
pub(super) type Named<'a> = HashMap<&'a str, Variant<'a>>;

/// The object.
#[derive(Debug)]
pub(super) struct Manager {
    pub(super) office: Office,
}

/// Returns what is told of a set.
pub(super) fn lines(report: &Report) -> Vec<Line> {
    let line = |line: &ibmgr_api::ReportLine| {
        let domain = &line.key.knob().domain;
        let show = |value: &Option<ibmgr_api::Value>| {
            let value = value.as_ref();
            value.map(|value| value.show(domain)).unwrap_or_default()
        };
        (
            line.key.to_string(),
            line.outcome.name().to_owned(),
            show(&line.asked),
            show(&line.before),
            show(&line.now),
            line.outcome.why().unwrap_or_default().to_owned(),
        )
    };
    report.lines.iter().map(line).collect()
}

/// Returns the [`Set`] that was sent as knobs and options: `via` names a kernel interface, `if-unchanged`
/// the tag of what was read, `why` stands in the record.
///
/// # Errors
///
/// A knob, a value or an option is wrong.
pub(super) fn options(
    link: LinkName,
    knobs: &Named<'_>,
    given: &Named<'_>,
) -> Result<Set, Refusal> {
    if knobs.is_empty() {
        return Err(usage("no knob is named"));
    }
    let mut wants: Vec<Assignment> = Vec::with_capacity(knobs.len());
    for (name, sent) in knobs {
        let key: Key = name.parse().map_err(|error: ibmgr_api::KeyError| {
            Refusal::from(Failure::of(error.code(), &error).about(Some(&link), Some(name)))
        })?;
        wants.push(assignment(key, sent)?);
    }
    let mut set = Set {
        link,
        wants,
        via: None,
        only_if: None,
        why: None,
    };
    for (name, sent) in given {
        let word = word(name, sent);
        match *name {
            "via" => set.via = Some(channel(&word?)?),
            "if-unchanged" => set.only_if = Some(word?),
            "why" => set.why = reason(Some(word?))?,
            other => return Err(no_option(other, "via, if-unchanged and why")),
        }
    }
    Ok(set)
}

fn usage(text: &str) -> Refusal {
    Refusal::new(ErrorCode::Usage, text)
}

fn no_option(name: &str, known: &str) -> Refusal {
    usage(&format!("there is no option '{name}': there are {known}"))
}

fn word(name: &str, sent: &Variant<'_>) -> Result<String, Refusal> {
    match sent {
        Variant::Str(word) => Ok(word.as_str().to_owned()),
        other => {
            let is = other.value_signature();
            Err(usage(&format!(
                "option '{name}' is of type s, and {is} was sent"
            )))
        }
    }
}

fn sources(sent: Vec<(String, String)>) -> Vec<SourceForm> {
    let source = |(file, text)| SourceForm { file, text };
    sent.into_iter().map(source).collect()
}

fn json(form: &impl serde::Serialize) -> Result<String, Refusal> {
    serde_json::to_string(form)
        .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))
}

#[interface(name = "org.ibmgr1.Manager")]
impl Manager {
    /// Lists interfaces: name, index and object.
    async fn list_links(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<(String, u32, OwnedObjectPath)>, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        let query = Query {
            keys: Keys::Identity,
            via: None,
        };
        let links = self.office.links(&caller, query).await?;
        let entry = |link: &ibmgr_api::Link| {
            let path = ObjectPath::try_from(path(link.index)).ok()?;
            Some((link.name.to_string(), link.index, path.into()))
        };
        Ok(links.iter().filter_map(entry).collect())
    }

    /// Returns the object of the interface with that name.
    async fn get_link(
        &self,
        name: &str,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<OwnedObjectPath, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        let query = Query {
            keys: Keys::Identity,
            via: None,
        };
        let link = self.office.link(&caller, &link_name(name)?, &query)?;
        let path = ObjectPath::try_from(path(link.index))?;
        Ok(path.into())
    }

    /// Sets knobs of one interface, all of them or none. Options: `via`, `if-unchanged`, `why`.
    async fn set(
        &self,
        link: &str,
        knobs: Named<'_>,
        options: Named<'_>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Line>, Refusal> {
        let caller = caller(bus, &header, Right::Change).await?;
        let link = link_name(link)?;
        self.office.check(&caller, Right::Change, Some(&link))?;
        let set = self::options(link, &knobs, &options)?;
        let done = self.office.set(&caller, set).await?;
        match done.failure {
            None => Ok(lines(&done.report)),
            Some(failure) => Err(failure.into()),
        }
    }

    /// Plans declarations, each a name and a text. The answer is JSON: `PlanForm` of the OpenAPI document.
    async fn plan(
        &self,
        sources: Vec<(String, String)>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        let (desired, findings) = declarations(self::sources(sources))?;
        let planned = self.office.plan(&caller, desired).await?;
        json(&planned.form(findings))
    }

    /// Applies declarations, all of them or none. Options: `confirm-within-seconds` and `why`. The answer
    /// is JSON: `ChangeForm` of the OpenAPI document.
    async fn apply(
        &self,
        sources: Vec<(String, String)>,
        options: Named<'_>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Change).await?;
        self.office.check(&caller, Right::Change, None)?;
        let names: Vec<&str> = sources.iter().map(|(file, _)| &**file).collect();
        let what = names.join(" ");
        let (desired, _) = declarations(self::sources(sources))?;
        let mut apply = Apply {
            desired,
            what,
            confirm_within: None,
            why: None,
        };
        for (name, sent) in &options {
            match *name {
                "confirm-within-seconds" => {
                    let seconds = super::values::number(sent)
                        .and_then(|seconds| u64::try_from(seconds).ok())
                        .filter(|seconds| (1..=CONFIRM_MAX).contains(seconds))
                        .ok_or_else(|| {
                            usage(&format!("{name} is a number from 1 to {CONFIRM_MAX}"))
                        })?;
                    apply.confirm_within = Some(Duration::from_secs(seconds));
                }
                "why" => apply.why = reason(Some(word(name, sent)?))?,
                other => return Err(no_option(other, "confirm-within-seconds and why")),
            }
        }
        let done = self.office.apply(&caller, apply).await?;
        match &done.failure {
            None => json(&done.form()),
            Some(failure) => Err(failure.clone().into()),
        }
    }

    /// Keeps the last change for good, and returns what it had been asked to do.
    async fn confirm(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Change).await?;
        Ok(self.office.confirm(&caller).await?)
    }

    /// Takes back the change that waits to be confirmed. The answer is JSON: `ChangeForm`.
    async fn roll_back(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Change).await?;
        let done = self.office.roll_back(&caller).await?;
        match done.failure {
            Some(failure) => Err(failure.into()),
            None => json(&ChangeForm {
                report: (&done.ended.report).into(),
                confirm_within_seconds: None,
                interrupted: None,
            }),
        }
    }

    /// Reads the declarations of the daemon's folders again and applies them. The answer is JSON: `Status`.
    async fn reload(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Change).await?;
        json(&self.office.reload(&caller).await?)
    }

    /// Tells how the daemon and all that it manages stand. The answer is JSON: `Status`.
    async fn get_status(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        json(&self.office.status(&caller).await?)
    }

    /// Returns the present state as a file in TOML: of these interfaces, or of all of IPoIB.
    async fn export(
        &self,
        links: Vec<String>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        let names = links.iter().map(|name| link_name(name));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        Ok(exported_to_toml(&self.office.export(&caller, names).await?))
    }

    /// Lists the knobs that there are, whatever interface they are of.
    async fn list_knobs(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<(String, String)>, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        self.office.check(&caller, Right::Observe, None)?;
        let told = registry::knobs().map(KnobForm::from);
        Ok(told.map(|knob| (knob.knob, knob.summary)).collect())
    }

    /// Describes a knob: what it is, which values it takes, which kernel interfaces carry it.
    async fn describe(
        &self,
        knob: &str,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<HashMap<&'static str, OwnedVariant>, Refusal> {
        let caller = caller(bus, &header, Right::Observe).await?;
        self.office.check(&caller, Right::Observe, None)?;
        let row = match registry::find(knob) {
            Some(row) => row,
            None => knob
                .parse::<Key>()
                .map_err(|error| Refusal::new(error.code(), error.to_string()))?
                .knob(),
        };
        let form = KnobForm::from(row);
        let list = |names: Vec<String>| OwnedVariant::try_from(Variant::from(names));
        let mut told = HashMap::from([
            ("knob", text(&form.knob)),
            ("summary", text(&form.summary)),
            ("details", text(&form.details)),
            ("effect", text(&form.effect)),
            ("type", text(super::values::signature(&row.domain))),
            ("channels", list(form.channels)?),
        ]);
        match form.values {
            DomainForm::Choice { choices } => drop(told.insert("choices", list(choices)?)),
            DomainForm::Number { unit, min, max } => {
                told.extend([
                    ("unit", text(&unit)),
                    ("min", min.into()),
                    ("max", max.into()),
                ]);
            }
            DomainForm::Duration { max, .. } => {
                told.extend([("unit", text("ns")), ("max", max.into())]);
            }
            DomainForm::Text { max_bytes } => {
                let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
                told.insert("max-bytes", max.into());
            }
            DomainForm::Cpus => {}
        }
        Ok(told)
    }

    /// Version of the daemon.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// How it stands with the last change: `idle`, `applied`, `rolled-back`, `pending`, `overdue` or
    /// `interrupted`.
    #[zbus(property)]
    async fn checkpoint(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Option<Header<'_>>,
    ) -> Result<String, Refusal> {
        let caller = match &header {
            Some(header) => caller(bus, header, Right::Observe).await?,
            None => super::own(),
        };
        Ok(self.office.checkpoint(&caller)?.form().state)
    }

    /// An interface appeared.
    #[zbus(signal)]
    pub(super) async fn link_added(
        emitter: &SignalEmitter<'_>,
        name: &str,
        link: ObjectPath<'_>,
    ) -> zbus::Result<()>;

    /// An interface disappeared.
    #[zbus(signal)]
    pub(super) async fn link_removed(
        emitter: &SignalEmitter<'_>,
        name: &str,
        link: ObjectPath<'_>,
    ) -> zbus::Result<()>;

    /// The daemon did, found or refused something: the record, in JSON, as `GET /v1/events` sends it.
    #[zbus(signal)]
    pub(super) async fn happened(
        emitter: &SignalEmitter<'_>,
        kind: &str,
        record: &str,
    ) -> zbus::Result<()>;
}
