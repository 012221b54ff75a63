// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What would be done, and which declaration wants it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize, Serializer};

use super::{Listed, shown};
use crate::desired::{Declared, Origin};
use crate::error::ErrorCode;
use crate::failure::Failure;
use crate::host::{Action, HostPlan, HostRefusal};
use crate::key::Key;
use crate::link::LinkName;
use crate::plan::Plan;
use crate::wants::{ChildWants, LinkWants, Want};

/// A declaration that another one wins over.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct OverrideForm {
    /// Its value.
    pub value: String,
    /// Where it stands.
    pub origin: Origin,
}

/// One thing to do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "do",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
pub enum StepForm {
    /// Write one value.
    Set {
        /// The interface.
        link: String,
        /// The knob.
        knob: String,
        /// The value at present.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The value to write.
        to: String,
        /// The kernel interface that it is written through.
        via: String,
        /// Why the driver will not use it, if it is known not to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_effect: Option<String>,
        /// What happens when somebody else changes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// The declaration that wants it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Those that it wins over.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overrides: Vec<OverrideForm>,
    },
    /// Make a P_Key child.
    Make {
        /// Its name.
        child: String,
        /// The interface that it belongs to.
        parent: String,
        /// Its P_Key.
        pkey: String,
        /// How: `netlink` or `legacy`.
        kind: String,
        /// Its values.
        knobs: Listed<String>,
        /// The declaration that wants it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
    },
    /// Remove a P_Key child.
    Remove {
        /// Its name.
        child: String,
        /// The interface that it belongs to.
        parent: String,
        /// Its P_Key.
        pkey: String,
        /// How it had been made.
        kind: String,
        /// How it is removed.
        via: String,
        /// The declaration that wants it gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
    },
}

/// A knob that is as wanted already.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct SkipForm {
    /// The interface; absent in a plan for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The knob.
    pub knob: String,
    /// Its value.
    pub value: String,
    /// Why the driver does not use it, if it is known not to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
    /// The declaration that wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Something that cannot be done.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct RefusalForm {
    /// The interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
    /// The P_Key of a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pkey: Option<String>,
    /// The reason.
    pub why: String,
    /// The whole sentence.
    pub message: String,
    /// The error's name.
    pub code: ErrorCode,
    /// The declaration that wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Something that is wrong with a file, or with a text that was sent.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct FindingForm {
    /// `error` or `warning`.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// Where: file, line and column.
    #[serde(flatten)]
    pub origin: Origin,
    /// What to do, or the nearest right name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// What would be done on a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct PlanForm {
    /// Steps, in their order.
    pub steps: Vec<StepForm>,
    /// Knobs that are as wanted already.
    pub already_so: Vec<SkipForm>,
    /// What cannot be done: with any, an apply does nothing.
    pub refused: Vec<RefusalForm>,
    /// What is worth knowing of the declarations.
    #[serde(default)]
    pub findings: Vec<FindingForm>,
}

impl PlanForm {
    /// Returns the form of a plan that was made from `wants`; without these, no step tells the
    /// declaration behind it.
    #[must_use]
    pub fn new(plan: &HostPlan, wants: &[LinkWants], findings: Vec<FindingForm>) -> Self {
        let why = Why::of(wants);
        let skips = plan.links.iter().flat_map(|link| {
            link.skips.iter().map(|skip| SkipForm {
                link: Some(link.target.name.to_string()),
                knob: skip.key.to_string(),
                value: shown(&skip.key, &skip.value),
                no_effect: skip.no_effect.clone(),
                origin: why.want(link.target.index, &skip.key).map(origin),
            })
        });
        Self {
            steps: plan
                .actions
                .iter()
                .filter_map(|action| step(plan, &why, action))
                .collect(),
            already_so: skips.collect(),
            refused: plan.refused.iter().map(|it| refusal(&why, it)).collect(),
            findings,
        }
    }

    /// Returns the failure that what cannot be done comes down to; `None` when all can.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let (first, rest) = self.refused.split_first()?;
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and {more} more cannot be done"),
        };
        let message = format!("{}{more}; nothing was changed", first.message);
        let failure = Failure::new(first.code, message);
        Some(failure.about(first.link.as_ref(), first.knob.as_ref()))
    }

    /// Says whether there is nothing to do.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.refused.is_empty()
    }
}

/// What a set of one interface would do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct SetPlanForm {
    /// The interface.
    pub link: String,
    /// Steps, in their order.
    pub steps: Vec<SetStepForm>,
    /// Knobs that are as wanted already.
    pub already_so: Vec<SkipForm>,
}

/// One write of a [`SetPlanForm`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct SetStepForm {
    /// The knob.
    pub knob: String,
    /// The value at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value to write.
    pub to: String,
    /// The kernel interface that it is written through.
    pub via: String,
    /// Why the driver will not use it, if it is known not to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
}

impl From<&Plan> for SetPlanForm {
    fn from(plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(|step| SetStepForm {
            knob: step.key.to_string(),
            from: step.from.as_ref().map(|from| shown(&step.key, from)),
            to: shown(&step.key, &step.to),
            via: step.carrier.channel().name().to_owned(),
            no_effect: step.no_effect.clone(),
        });
        let skips = plan.skips.iter().map(|skip| SkipForm {
            link: None,
            knob: skip.key.to_string(),
            value: shown(&skip.key, &skip.value),
            no_effect: skip.no_effect.clone(),
            origin: None,
        });
        Self {
            link: plan.link.to_string(),
            steps: steps.collect(),
            already_so: skips.collect(),
        }
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SetPlanForm::from(self).serialize(serializer)
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
    fn child(&self, parent: u32, is_it: impl Fn(&ChildWants) -> bool) -> Option<Origin> {
        let mut children = self.by_index.get(&parent)?.children.iter();
        Some(children.find(|child| is_it(child))?.origin.clone())
    }

    fn refused(&self, refusal: &HostRefusal) -> Option<Origin> {
        match refusal {
            HostRefusal::Knob(error) => {
                let wants = self.by_name.get(error.link()?)?;
                Some(origin(wants.settings.get(error.key())?))
            }
            HostRefusal::Child { parent, pkey, .. } => {
                let wants = self.by_name.get(parent)?;
                let child = wants.children.iter().find(|child| child.pkey == *pkey)?;
                Some(child.origin.clone())
            }
        }
    }
}

fn origin(want: &Want) -> Origin {
    want.declared.origin.clone()
}

/// `None` for an action on an interface that the plan does not have, which no planner makes.
fn step(plan: &HostPlan, why: &Why<'_>, action: &Action) -> Option<StepForm> {
    Some(match action {
        Action::Set { link, step } => {
            let target = &plan.links.get(*link)?.target;
            let want = why.want(target.index, &step.key);
            let overrides = want.into_iter().flat_map(|want| &want.overridden);
            let overridden = |declared: &Declared| OverrideForm {
                value: shown(&step.key, &declared.value),
                origin: declared.origin.clone(),
            };
            StepForm::Set {
                link: target.name.to_string(),
                knob: step.key.to_string(),
                from: step.from.as_ref().map(|from| shown(&step.key, from)),
                to: shown(&step.key, &step.to),
                via: step.carrier.channel().name().to_owned(),
                no_effect: step.no_effect.clone(),
                policy: want.map(|want| want.declared.policy.name().to_owned()),
                origin: want.map(origin),
                overrides: overrides.map(overridden).collect(),
            }
        }
        Action::Make { child, wants } => {
            let knobs = wants.iter();
            StepForm::Make {
                child: child.name.to_string(),
                parent: child.parent.name.to_string(),
                pkey: child.pkey.to_string(),
                kind: child.kind.name().to_owned(),
                knobs: knobs
                    .map(|want| (want.key.to_string(), shown(&want.key, &want.value)))
                    .collect(),
                origin: why.child(child.parent.index, |it| {
                    it.is_present && it.name_to_be.as_ref() == Some(&child.name)
                }),
            }
        }
        Action::Remove { child, kind, .. } => StepForm::Remove {
            child: child.child.name.to_string(),
            parent: child.parent.name.to_string(),
            pkey: child.pkey.to_string(),
            kind: kind.name().to_owned(),
            via: child.via.name().to_owned(),
            origin: why.child(child.parent.index, |it| {
                let index = child.child.index;
                !it.is_present && it.present.iter().any(|(_, present)| *present == index)
            }),
        },
    })
}

fn refusal(why: &Why<'_>, refusal: &HostRefusal) -> RefusalForm {
    let (link, knob, pkey, reason) = match refusal {
        HostRefusal::Knob(error) => (error.link(), Some(error.key()), None, error.why()),
        HostRefusal::Child { parent, pkey, why } => (Some(parent), None, Some(pkey), why.clone()),
    };
    RefusalForm {
        link: link.map(ToString::to_string),
        knob: knob.map(ToString::to_string),
        pkey: pkey.map(ToString::to_string),
        why: reason,
        message: refusal.to_string(),
        code: refusal.code(),
        origin: why.refused(refusal),
    }
}
