// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models to rules: defaults and profiles become part of what uses them.

use std::collections::{BTreeMap, HashMap};

use ibmgr_api::{Child, Declared, Key, Match, Policy, Rule, nearest};

use crate::diagnostic::Diagnostic;
use crate::model::{Bundle, ChildRule, LinkRule, Model, Profile, Setting, Use};
use crate::text::Text;

/// The profiles of all files, by name. Of two with one name, the later file's counts as a whole.
pub(crate) struct Profiles<'a>(HashMap<&'a str, (&'a Text, &'a Profile)>);

impl<'a> Profiles<'a> {
    /// Collects from models in ascending precedence.
    pub(crate) fn of(models: impl IntoIterator<Item = &'a Model>) -> Self {
        let mut all = HashMap::new();
        for model in models {
            for profile in &model.profiles {
                all.insert(profile.name.as_str(), (&model.text, profile));
            }
        }
        Self(all)
    }
}

type Declarations = BTreeMap<Key, Declared>;

/// Returns the rules of a file: its defaults first, then its rules in their order.
pub(crate) fn expand(
    model: &Model,
    profiles: &Profiles<'_>,
    found: &mut Vec<Diagnostic>,
) -> Vec<Rule> {
    let mut expander = Expander {
        text: &model.text,
        profiles,
        found,
    };
    let mut rules = Vec::with_capacity(model.rules.len());
    let mut default_policy = None;
    if let Some((spot, bundle)) = &model.defaults {
        default_policy = bundle.policy;
        let settings = expander.declare(bundle, default_policy);
        let mut seen: Vec<&Match> = Vec::new();
        // They count for the interfaces of the file's rules, and any rule of the file wins over them.
        for rule in model.rules.iter().filter(|_| !settings.is_empty()) {
            if !seen.contains(&&rule.matches) {
                seen.push(&rule.matches);
                rules.push(Rule {
                    origin: model.text.origin(*spot),
                    matches: rule.matches.clone(),
                    settings: settings.clone(),
                    children: Vec::new(),
                });
            }
        }
    }
    let expanded = model
        .rules
        .iter()
        .map(|rule| expander.rule(rule, default_policy));
    rules.extend(expanded);
    rules
}

struct Expander<'a> {
    text: &'a Text,
    profiles: &'a Profiles<'a>,
    found: &'a mut Vec<Diagnostic>,
}

impl Expander<'_> {
    fn rule(&mut self, rule: &LinkRule, default_policy: Option<Policy>) -> Rule {
        let policy = rule.bundle.policy.or(default_policy);
        let settings = self.declare(&rule.bundle, policy);
        let children = rule.children.iter();
        let children = children.map(|child| self.child(child, policy)).collect();
        Rule {
            origin: self.text.origin(rule.spot),
            matches: rule.matches.clone(),
            settings,
            children,
        }
    }

    fn child(&mut self, child: &ChildRule, policy: Option<Policy>) -> Child {
        let policy = child.bundle.policy.or(policy);
        Child {
            pkey: child.pkey,
            kind: child.kind,
            name: child.name.clone(),
            is_present: child.is_present,
            policy: policy.unwrap_or_default(),
            origin: self.text.origin(child.spot),
            settings: self.declare(&child.bundle, policy),
        }
    }

    /// Returns the values of a bundle: those of its profiles, and its own, which win.
    fn declare(&mut self, bundle: &Bundle, policy: Option<Policy>) -> Declarations {
        let mut all = Declarations::new();
        for used in &bundle.profiles {
            let Some((text, profile)) = self.profiles.0.get(used.name.as_str()) else {
                self.unknown_profile(used);
                continue;
            };
            let policy = profile.bundle.policy.or(policy);
            all.extend(declared(text, &profile.bundle, policy));
        }
        all.extend(declared(self.text, bundle, policy));
        all
    }

    fn unknown_profile(&mut self, used: &Use) {
        let message = format!("no profile is called '{}'", used.name.escape_debug());
        let mut names: Vec<&str> = self.profiles.0.keys().copied().collect();
        names.sort_unstable();
        let help = match (
            nearest(&used.name, names.iter().copied()).first(),
            names.as_slice(),
        ) {
            (Some(name), _) => format!("did you mean '{name}'?"),
            (None, []) => format!(
                "no file that can be read has a [profile.{}]",
                used.name.escape_debug()
            ),
            (None, names) => format!("there is {}", names.join(", ")),
        };
        self.found
            .push(Diagnostic::at(self.text, used.spot, message).help(help));
    }
}

fn declared(
    text: &Text,
    bundle: &Bundle,
    policy: Option<Policy>,
) -> impl Iterator<Item = (Key, Declared)> {
    let declared = move |(key, setting): (&Key, &Setting)| {
        let declared = Declared {
            value: setting.value.clone(),
            policy: setting.policy.or(policy).unwrap_or_default(),
            origin: text.origin(setting.spot),
        };
        (key.clone(), declared)
    };
    bundle.settings.iter().map(declared)
}
