// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lines of a journal: a checksum, a blank, JSON.

use ibmgr_api::{
    Action, Assignment, ChildKind, HostPlan, Key, LinkName, LinkPlan, NewChild, OldChild, Pkey,
    Step, Target, Value, Was,
};
use ibmgrd_engine::carrier_on;
use serde::{Deserialize, Serialize};

/// Version of the form. A reader of another version refuses it.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Begin(Box<Header>),
    Intent(usize),
    Done(usize),
    Verified,
    Applied,
    /// Why everything is taken back, when it is not for a failure of the change itself.
    Why(String),
    RollBack,
    RolledBack,
    Confirmed,
    /// How it went, in the form that `-o json` prints.
    Report(serde_json::Value),
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) boot: String,
    pub(crate) id: String,
    pub(crate) what: String,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub(crate) started: u64,
    pub(crate) confirm_by: Option<u64>,
    pub(crate) plan: PlanForm,
}

/// The version alone, of a line whose other fields may be any.
#[derive(Deserialize)]
pub(crate) struct Versioned {
    pub(crate) begin: VersionOnly,
}

#[derive(Deserialize)]
pub(crate) struct VersionOnly {
    pub(crate) version: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PlanForm {
    links: Vec<LinkForm>,
    actions: Vec<ActionForm>,
}

#[derive(Debug, Deserialize, Serialize)]
struct TargetForm {
    name: String,
    index: u32,
}

#[derive(Debug, Deserialize, Serialize)]
struct LinkForm {
    link: TargetForm,
    before: Vec<WasForm>,
}

#[derive(Debug, Deserialize, Serialize)]
struct WasForm {
    knob: String,
    value: ValueForm,
    via: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum ValueForm {
    Number(u64),
    Text(String),
}

#[derive(Debug, Deserialize, Serialize)]
struct WantForm {
    knob: String,
    value: ValueForm,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ActionForm {
    Set {
        link: usize,
        knob: String,
        from: Option<ValueForm>,
        to: ValueForm,
        via: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        no_effect: Option<String>,
    },
    Make {
        name: String,
        parent: TargetForm,
        pkey: u16,
        kind: String,
        wants: Vec<WantForm>,
    },
    Remove {
        child: TargetForm,
        parent: TargetForm,
        pkey: u16,
        via: String,
        kind: String,
        settings: Vec<WantForm>,
    },
}

impl Line {
    /// Returns the line as it stands in the file.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_vec(self)?;
        let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
        line.extend_from_slice(&json);
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line without its newline; `None` when it is not what was written.
    pub(crate) fn decode(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(checked(line)?).ok()
    }
}

/// Returns the JSON of a line whose checksum is right.
pub(crate) fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, rest) = line.split_at_checked(8)?;
    let json = rest.strip_prefix(b" ")?;
    let sum = std::str::from_utf8(sum).ok()?;
    (u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(json)).then_some(json)
}

impl From<&Target> for TargetForm {
    fn from(target: &Target) -> Self {
        Self {
            name: target.name.to_string(),
            index: target.index,
        }
    }
}

impl TargetForm {
    fn read(&self) -> Option<Target> {
        Some(Target {
            name: self.name.parse().ok()?,
            index: self.index,
        })
    }
}

impl From<&Value> for ValueForm {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(*number),
            Value::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl ValueForm {
    fn read(self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(text),
        }
    }
}

fn wants(assignments: &[Assignment]) -> Vec<WantForm> {
    let want = |want: &Assignment| WantForm {
        knob: want.key.to_string(),
        value: (&want.value).into(),
    };
    assignments.iter().map(want).collect()
}

fn read_wants(wants: Vec<WantForm>) -> Option<Vec<Assignment>> {
    let want = |want: WantForm| {
        Some(Assignment {
            key: want.knob.parse().ok()?,
            value: want.value.read(),
        })
    };
    wants.into_iter().map(want).collect()
}

impl From<&HostPlan> for PlanForm {
    fn from(plan: &HostPlan) -> Self {
        let was = |was: &Was| WasForm {
            knob: was.key.to_string(),
            value: (&was.value).into(),
            via: was.carrier.channel().name().to_owned(),
        };
        let link = |link: &LinkPlan| LinkForm {
            link: (&link.target).into(),
            before: link.before.iter().map(was).collect(),
        };
        Self {
            links: plan.links.iter().map(link).collect(),
            actions: plan.actions.iter().map(ActionForm::from).collect(),
        }
    }
}

impl From<&Action> for ActionForm {
    fn from(action: &Action) -> Self {
        match action {
            Action::Set { link, step } => Self::Set {
                link: *link,
                knob: step.key.to_string(),
                from: step.from.as_ref().map(ValueForm::from),
                to: (&step.to).into(),
                via: step.carrier.channel().name().to_owned(),
                no_effect: step.no_effect.clone(),
            },
            Action::Make { child, wants: them } => Self::Make {
                name: child.name.to_string(),
                parent: (&child.parent).into(),
                pkey: child.pkey.raw(),
                kind: child.kind.name().to_owned(),
                wants: wants(them),
            },
            Action::Remove {
                child,
                kind,
                settings,
            } => Self::Remove {
                child: (&child.child).into(),
                parent: (&child.parent).into(),
                pkey: child.pkey.raw(),
                via: child.via.name().to_owned(),
                kind: kind.name().to_owned(),
                settings: wants(settings),
            },
        }
    }
}

impl PlanForm {
    /// Returns the plan, without what it skipped; `None` when it names what this program does not know.
    pub(crate) fn read(self) -> Option<HostPlan> {
        let links = self.links.into_iter().map(LinkForm::read);
        let links: Vec<LinkPlan> = links.collect::<Option<_>>()?;
        let actions = self.actions.into_iter().map(ActionForm::read);
        let actions: Vec<Action> = actions.collect::<Option<_>>()?;
        let is_known = |action: &Action| match action {
            Action::Set { link, .. } => *link < links.len(),
            Action::Make { .. } | Action::Remove { .. } => true,
        };
        actions.iter().all(is_known).then_some(())?;
        Some(HostPlan {
            links,
            actions,
            refused: Vec::new(),
        })
    }
}

impl LinkForm {
    fn read(self) -> Option<LinkPlan> {
        let was = |was: WasForm| {
            let key: Key = was.knob.parse().ok()?;
            Some(Was {
                carrier: carrier_on(&key, was.via.parse().ok()?).ok()?,
                key,
                value: was.value.read(),
            })
        };
        Some(LinkPlan {
            target: self.link.read()?,
            skips: Vec::new(),
            before: self.before.into_iter().map(was).collect::<Option<_>>()?,
        })
    }
}

impl ActionForm {
    fn read(self) -> Option<Action> {
        Some(match self {
            Self::Set {
                link,
                knob,
                from,
                to,
                via,
                no_effect,
            } => {
                let key: Key = knob.parse().ok()?;
                let step = Step {
                    carrier: carrier_on(&key, via.parse().ok()?).ok()?,
                    key,
                    from: from.map(ValueForm::read),
                    to: to.read(),
                    no_effect,
                };
                Action::Set { link, step }
            }
            Self::Make {
                name,
                parent,
                pkey,
                kind,
                wants,
            } => Action::Make {
                child: NewChild {
                    parent: parent.read()?,
                    name: name.parse::<LinkName>().ok()?,
                    pkey: Pkey::new(pkey)?,
                    kind: ChildKind::named(&kind)?,
                },
                wants: read_wants(wants)?,
            },
            Self::Remove {
                child,
                parent,
                pkey,
                via,
                kind,
                settings,
            } => Action::Remove {
                child: OldChild {
                    child: child.read()?,
                    parent: parent.read()?,
                    pkey: Pkey::new(pkey)?,
                    via: ChildKind::named(&via)?,
                },
                kind: ChildKind::named(&kind)?,
                settings: read_wants(settings)?,
            },
        })
    }
}
