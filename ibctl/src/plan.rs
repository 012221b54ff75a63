// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `plan`: the steps from what is to what files declare, each with the place that wants it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use ibmgr_api::{
    Action, ChildWants, Declared, HostPlan, HostRefusal, Key, LinkName, LinkWants, Origin, Value,
    Want,
};
use ibmgrd_config::{Diagnostic, Loaded, load_paths};
use ibmgrd_engine::{Port, plan_declared};
use ibmgrd_state::change::ChangeError;
use serde_json::{Value as Json, json};

use crate::check;
use crate::cli::Format;
use crate::error::Error;
use crate::text::Table;
use crate::write_json;

/// Reads declarations that shall be planned or applied: all files must be right.
///
/// # Errors
///
/// What is wrong with them.
pub(crate) fn load(paths: &[PathBuf]) -> Result<Loaded, Error> {
    let loaded = load_paths(paths);
    if loaded.has_errors() {
        let errors = loaded.diagnostics.iter().filter(|found| found.is_error());
        let texts: Vec<String> = errors.map(ToString::to_string).collect();
        return Err(Error::Config(format!(
            "{}\n{}",
            check::summary(&loaded),
            texts.join("\n")
        )));
    }
    Ok(loaded)
}

/// Prints what an `apply` of these files would do. Nothing is changed.
///
/// # Errors
///
/// A file is wrong, or something that it declares cannot be done; the rest is printed all the same.
pub(crate) fn plan<P: Port>(
    port: &mut P,
    loaded: &Loaded,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (wants, plan) = plan_declared(port, &loaded.desired)?;
    let why = Why::of(&wants);
    match format {
        Format::Json => write_json(out, &document(&plan, &why, &loaded.diagnostics))?,
        Format::Table => {
            for found in &loaded.diagnostics {
                check::print_finding(found, out)?;
            }
            table(&plan, &why, out)?;
        }
    }
    if plan.refused.is_empty() {
        Ok(())
    } else {
        Err(ChangeError::Refused(Box::new(plan)).into())
    }
}

/// Which declaration is behind a step.
struct Why<'a> {
    by_index: HashMap<u32, &'a LinkWants>,
    by_name: HashMap<&'a LinkName, &'a LinkWants>,
}

impl<'a> Why<'a> {
    fn of(wants: &'a [LinkWants]) -> Self {
        Self {
            by_index: wants.iter().map(|wants| (wants.index, wants)).collect(),
            by_name: wants.iter().map(|wants| (&wants.link, wants)).collect(),
        }
    }

    fn want(&self, index: u32, key: &Key) -> Option<&'a Want> {
        self.by_index.get(&index)?.settings.get(key)
    }

    /// Returns the declaration of a child that is to be made or removed.
    fn child(&self, parent: u32, is_it: impl Fn(&ChildWants) -> bool) -> Option<&'a ChildWants> {
        self.by_index
            .get(&parent)?
            .children
            .iter()
            .find(|child| is_it(child))
    }

    fn made(&self, parent: u32, name: &LinkName) -> Option<&'a ChildWants> {
        self.child(parent, |child| {
            child.is_present && child.name_to_be.as_ref() == Some(name)
        })
    }

    fn removed(&self, parent: u32, index: u32) -> Option<&'a ChildWants> {
        let is_it = |child: &ChildWants| child.present.iter().any(|(_, present)| *present == index);
        self.child(parent, |child| !child.is_present && is_it(child))
    }

    fn refused(&self, refusal: &HostRefusal) -> Option<&'a Origin> {
        match refusal {
            HostRefusal::Knob(error) => {
                let wants = self.by_name.get(error.link()?)?;
                Some(&wants.settings.get(error.key())?.declared.origin)
            }
            HostRefusal::Child { parent, pkey, .. } => {
                let wants = self.by_name.get(parent)?;
                let child = wants.children.iter().find(|child| child.pkey == *pkey)?;
                Some(&child.origin)
            }
            _ => None,
        }
    }
}

fn show(key: &Key, value: &Value) -> String {
    value.show(&key.knob().domain)
}

/// Returns the JSON form: the steps in their order, each with the declaration behind it.
fn document(plan: &HostPlan, why: &Why<'_>, found: &[Diagnostic]) -> Json {
    let steps: Vec<Json> = plan
        .actions
        .iter()
        .map(|action| step(plan, why, action))
        .collect();
    let skips = plan.links.iter().flat_map(|link| {
        link.skips.iter().map(|skip| {
            let want = why.want(link.target.index, &skip.key);
            present(json!({
                "link": link.target.name,
                "knob": skip.key,
                "value": show(&skip.key, &skip.value),
                "no-effect": skip.no_effect,
                "origin": want.map(|want| &want.declared.origin),
            }))
        })
    });
    let refused = plan.refused.iter().map(|refusal| {
        let (link, knob, pkey, reason) = match refusal {
            HostRefusal::Knob(error) => (error.link(), Some(error.key()), None, error.why()),
            HostRefusal::Child { parent, pkey, why } => {
                (Some(parent), None, Some(pkey), why.clone())
            }
            other => (None, None, None, other.to_string()),
        };
        present(json!({
            "link": link,
            "knob": knob,
            "pkey": pkey,
            "why": reason,
            "code": refusal.code(),
            "origin": why.refused(refusal),
        }))
    });
    json!({
        "steps": steps,
        "already-so": skips.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "findings": found,
    })
}

fn step(plan: &HostPlan, why: &Why<'_>, action: &Action) -> Json {
    match action {
        Action::Set { link, step } => {
            let target = plan.links.get(*link).map(|link| &link.target);
            let want = target.and_then(|target| why.want(target.index, &step.key));
            let overrides = want.into_iter().flat_map(|want| &want.overridden);
            let overrides: Vec<Json> = overrides.map(|one| overridden(&step.key, one)).collect();
            present(json!({
                "do": "set",
                "link": target.map(|target| &target.name),
                "knob": step.key,
                "from": step.from.as_ref().map(|from| show(&step.key, from)),
                "to": show(&step.key, &step.to),
                "via": step.carrier.channel(),
                "no-effect": step.no_effect,
                "policy": want.map(|want| want.declared.policy),
                "origin": want.map(|want| &want.declared.origin),
                "overrides": Some(overrides).filter(|overrides| !overrides.is_empty()),
            }))
        }
        Action::Make { child, wants } => {
            let knobs = wants
                .iter()
                .map(|want| (want.key.to_string(), json!(show(&want.key, &want.value))));
            let knobs: serde_json::Map<String, Json> = knobs.collect();
            present(json!({
                "do": "make",
                "child": child.name,
                "parent": child.parent.name,
                "pkey": child.pkey,
                "kind": child.kind,
                "knobs": knobs,
                "origin": why.made(child.parent.index, &child.name).map(|child| &child.origin),
            }))
        }
        Action::Remove { child, kind, .. } => present(json!({
            "do": "remove",
            "child": child.child.name,
            "parent": child.parent.name,
            "pkey": child.pkey,
            "kind": kind,
            "origin": why.removed(child.parent.index, child.child.index).map(|child| &child.origin),
        })),
    }
}

/// Leaves out what is absent.
fn present(mut form: Json) -> Json {
    if let Some(fields) = form.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    form
}

fn overridden(key: &Key, declared: &Declared) -> Json {
    json!({ "value": show(key, &declared.value), "origin": declared.origin })
}

fn table(plan: &HostPlan, why: &Why<'_>, out: &mut dyn Write) -> Result<(), Error> {
    if plan.actions.is_empty() && plan.refused.is_empty() {
        return Ok(writeln!(out, "nothing to do")?);
    }
    let mut table = Table::default();
    table.row(["STEP", "LINK", "WHAT", "VALUE", "VIA", "FROM", "NOTE"].map(Cow::from));
    for (at, action) in plan.actions.iter().enumerate() {
        let cells = match action {
            Action::Set { link, step } => {
                let target = plan.links.get(*link).map(|link| &link.target);
                let want = target.and_then(|target| why.want(target.index, &step.key));
                let from = step
                    .from
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |from| show(&step.key, from));
                [
                    target
                        .map(|target| target.name.to_string())
                        .unwrap_or_default(),
                    step.key.to_string(),
                    format!("{from} -> {}", show(&step.key, &step.to)),
                    step.carrier.channel().name().to_owned(),
                    want.map(|want| want.declared.origin.to_string())
                        .unwrap_or_default(),
                    note(&step.key, step.no_effect.as_deref(), want),
                ]
            }
            Action::Make { child, wants } => {
                let values: Vec<String> = wants.iter().map(ToString::to_string).collect();
                [
                    child.name.to_string(),
                    "make child".to_owned(),
                    format!("{} on {}", child.pkey, child.parent.name),
                    child.kind.name().to_owned(),
                    origin(why.made(child.parent.index, &child.name)),
                    values.join(" "),
                ]
            }
            Action::Remove { child, .. } => [
                child.child.name.to_string(),
                "remove child".to_owned(),
                format!("{} on {}", child.pkey, child.parent.name),
                child.via.name().to_owned(),
                origin(why.removed(child.parent.index, child.child.index)),
                String::new(),
            ],
        };
        let step = [(at + 1).to_string()];
        table.row(step.into_iter().chain(cells).map(Cow::from));
    }
    for refusal in &plan.refused {
        let origin = why.refused(refusal).map(ToString::to_string);
        let (link, what, reason) = match refusal {
            HostRefusal::Knob(error) => (
                error.link().map(ToString::to_string).unwrap_or_default(),
                error.key().to_string(),
                error.why(),
            ),
            HostRefusal::Child { parent, pkey, why } => {
                (parent.to_string(), format!("child {pkey}"), why.clone())
            }
            other => (String::new(), String::new(), other.to_string()),
        };
        let note = format!("can't be done: {reason}");
        let cells = [
            String::new(),
            link,
            what,
            String::new(),
            String::new(),
            origin.unwrap_or_default(),
            note,
        ];
        table.row(cells.map(Cow::from));
    }
    table.drop_empty_columns();
    Ok(table.write(out)?)
}

fn origin(child: Option<&ChildWants>) -> String {
    child
        .map(|child| child.origin.to_string())
        .unwrap_or_default()
}

/// Says what is worth knowing of a step: that it has no effect, and what it overrides.
fn note(key: &Key, no_effect: Option<&str>, want: Option<&Want>) -> String {
    let mut notes: Vec<String> = Vec::new();
    if let Some(why) = no_effect {
        notes.push(format!("will be stored without effect: {why}"));
    }
    let differs =
        |declared: &&Declared| want.is_some_and(|want| want.declared.value != declared.value);
    let overridden = want.into_iter().flat_map(|want| &want.overridden);
    for declared in overridden.filter(differs) {
        notes.push(format!(
            "overrides {} of {}",
            show(key, &declared.value),
            declared.origin
        ));
    }
    notes.join("; ")
}
