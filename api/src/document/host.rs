// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON forms of plans and reports of whole hosts.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::channel::Channel;
use crate::desired::ChildKind;
use crate::error::ErrorCode;
use crate::host::{Action, ChildReport, HostPlan, HostRefusal, HostReport};
use crate::key::Key;
use crate::link::LinkName;
use crate::pkey::Pkey;
use crate::plan::Assignment;
use crate::value::Value;

#[derive(Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum ActionForm<'a> {
    Set {
        link: &'a LinkName,
        knob: &'a Key,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        to: String,
        via: Channel,
        #[serde(rename = "no-effect", skip_serializing_if = "Option::is_none")]
        no_effect: Option<&'a str>,
    },
    Make {
        child: &'a LinkName,
        parent: &'a LinkName,
        pkey: Pkey,
        kind: ChildKind,
        knobs: Values<'a>,
    },
    Remove {
        child: &'a LinkName,
        parent: &'a LinkName,
        pkey: Pkey,
        kind: ChildKind,
    },
}

struct Values<'a>(&'a [Assignment]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.0.iter();
        serializer.collect_map(values.map(|want| (&want.key, show(&want.key, &want.value))))
    }
}

fn show(key: &Key, value: &Value) -> String {
    value.show(&key.knob().domain)
}

impl<'a> ActionForm<'a> {
    /// `None` for an action on an interface that the plan does not have, which no planner makes.
    fn new(plan: &'a HostPlan, action: &'a Action) -> Option<Self> {
        Some(match action {
            Action::Set { link, step } => Self::Set {
                link: &plan.links.get(*link)?.target.name,
                knob: &step.key,
                from: step.from.as_ref().map(|from| show(&step.key, from)),
                to: show(&step.key, &step.to),
                via: step.carrier.channel(),
                no_effect: step.no_effect.as_deref(),
            },
            Action::Make { child, wants } => Self::Make {
                child: &child.name,
                parent: &child.parent.name,
                pkey: child.pkey,
                kind: child.kind,
                knobs: Values(wants),
            },
            Action::Remove { child, kind, .. } => Self::Remove {
                child: &child.child.name,
                parent: &child.parent.name,
                pkey: child.pkey,
                kind: *kind,
            },
        })
    }
}

#[derive(Serialize)]
struct RefusalForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a LinkName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knob: Option<&'a Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pkey: Option<Pkey>,
    why: String,
    code: ErrorCode,
}

impl<'a> RefusalForm<'a> {
    fn new(refusal: &'a HostRefusal) -> Self {
        let code = refusal.code();
        match refusal {
            HostRefusal::Knob(error) => Self {
                link: error.link(),
                knob: Some(error.key()),
                pkey: None,
                why: error.why(),
                code,
            },
            HostRefusal::Child { parent, pkey, why } => Self {
                link: Some(parent),
                knob: None,
                pkey: Some(*pkey),
                why: why.clone(),
                code,
            },
        }
    }
}

#[derive(Serialize)]
struct SkipForm<'a> {
    link: &'a LinkName,
    knob: &'a Key,
    value: String,
    #[serde(rename = "no-effect", skip_serializing_if = "Option::is_none")]
    no_effect: Option<&'a str>,
}

impl Serialize for HostPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let actions = self.actions.iter();
        let actions: Vec<_> = actions.filter_map(|a| ActionForm::new(self, a)).collect();
        let skips = self.links.iter().flat_map(|link| {
            link.skips.iter().map(|skip| SkipForm {
                link: &link.target.name,
                knob: &skip.key,
                value: show(&skip.key, &skip.value),
                no_effect: skip.no_effect.as_deref(),
            })
        });
        let refused: Vec<_> = self.refused.iter().map(RefusalForm::new).collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("steps", &actions)?;
        map.serialize_entry("already-so", &skips.collect::<Vec<_>>())?;
        map.serialize_entry("refused", &refused)?;
        map.end()
    }
}

#[derive(Serialize)]
struct ChildForm<'a> {
    child: &'a LinkName,
    parent: &'a LinkName,
    pkey: Pkey,
    change: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
}

impl<'a> ChildForm<'a> {
    fn new(report: &'a ChildReport) -> Self {
        Self {
            child: &report.name,
            parent: &report.parent,
            pkey: report.pkey,
            change: report.change.name(),
            outcome: report.outcome.name(),
            why: report.outcome.why(),
            code: report.outcome.code(),
        }
    }
}

impl Serialize for HostReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let code = self.code();
        let children: Vec<_> = self.children.iter().map(ChildForm::new).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("end", self.end.name())?;
        map.serialize_entry("ok", &code.is_none())?;
        if let Some(code) = code {
            map.serialize_entry("code", &code)?;
        }
        if let Some(trouble) = &self.trouble {
            map.serialize_entry("trouble", &trouble.message)?;
        }
        map.serialize_entry("links", &self.links)?;
        map.serialize_entry("children", &children)?;
        map.end()
    }
}
