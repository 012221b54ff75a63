// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completions for shells: verbs and options from the command line, knobs and their values from the
//! registry, interfaces from the kernel at the time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::{Shell, generate};
use ibmgr_api::{Domain, registry};

use crate::LICENCE;

/// Stands for the names of interfaces until the file is written.
const LINKS: &str = "LINKS-OF-THE-KERNEL";

/// What lists them: no program of ours, which could be slow or missing.
const LIST: &str = "command ls /sys/class/net";

/// Returns the files by name.
pub(crate) fn all(command: Command) -> Result<BTreeMap<String, String>> {
    let command = with_words(command);
    let mut files = BTreeMap::new();
    for (shell, name, inserted) in [
        (Shell::Bash, "ibctl.bash", format!("$({LIST})")),
        (Shell::Zsh, "_ibctl", "_net_interfaces".to_owned()),
        (Shell::Fish, "ibctl.fish", String::new()),
    ] {
        let mut bytes = Vec::new();
        generate(shell, &mut command.clone(), "ibctl", &mut bytes);
        let text = String::from_utf8(bytes)?;
        let text = match shell {
            // The generator for fish leaves arguments without a dash out.
            Shell::Fish => text + &fish_words(&command)?,
            Shell::Zsh => replace(&text, &format!("({LINKS})"), &inserted)?,
            _ => replace(&text, LINKS, &inserted)?,
        };
        let lines = text.lines().map(str::trim_end);
        let mut out = String::new();
        for (at, line) in lines.enumerate() {
            // zsh reads the first line for what the file is about.
            if at == usize::from(shell == Shell::Zsh) {
                out.push_str(&format!("# {LICENCE}\n"));
            }
            out.push_str(line);
            out.push('\n');
        }
        files.insert(name.to_owned(), out);
    }
    Ok(files)
}

fn replace(text: &str, place: &str, inserted: &str) -> Result<String> {
    text.find(place)
        .context("no place for names of interfaces")?;
    Ok(text.replace(place, inserted))
}

/// Returns lines for fish with the words that the arguments of each verb may be.
fn fish_words(command: &Command) -> Result<String> {
    let mut text = String::new();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        for argument in verb.get_positionals() {
            let words: Vec<String> = argument
                .get_possible_values()
                .iter()
                .map(|word| word.get_name().to_owned())
                .collect();
            if words.is_empty() {
                continue;
            }
            let words = match words.join(" ") {
                links if links == LINKS => format!("({LIST})"),
                words => words,
            };
            writeln!(
                text,
                "complete -c ibctl -n \"__fish_ibctl_using_subcommand {}\" -f -a \"{words}\"",
                verb.get_name()
            )?;
        }
    }
    Ok(text)
}

/// Gives arguments the words that they may be, where the command line itself leaves that to the registry.
fn with_words(mut command: Command) -> Command {
    let verbs: Vec<String> = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    for verb in verbs {
        command = command.mut_subcommand(verb, |verb| {
            verb.mut_args(|argument| match argument.get_id().as_str() {
                "link" | "links" => argument.value_parser(PossibleValuesParser::new([LINKS])),
                "knob" | "knobs" => {
                    let names = registry::knobs()
                        .filter(|knob| !knob.is_family)
                        .map(|knob| knob.name);
                    argument.value_parser(PossibleValuesParser::new(names))
                }
                "assignments" => argument.value_parser(PossibleValuesParser::new(assignments())),
                _ => argument,
            })
        });
    }
    command
}

/// Returns `knob=value` for each choice, and `knob=` where there are no choices.
fn assignments() -> Vec<&'static str> {
    let mut words: Vec<String> = Vec::new();
    for knob in registry::knobs().filter(|knob| !knob.is_family) {
        match &knob.domain {
            Domain::Choice(choices) => {
                words.extend(
                    choices
                        .iter()
                        .map(|choice| format!("{}={}", knob.name, choice.name)),
                );
            }
            Domain::Number { .. }
            | Domain::Duration { .. }
            | Domain::Cpus
            | Domain::Text { .. } => {
                words.push(format!("{}=", knob.name));
            }
        }
    }
    // clap keeps words as long as the program runs, which is the length of a test.
    words.into_iter().map(|word| &*word.leak()).collect()
}
