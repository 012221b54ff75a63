// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manual pages of commands and files.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use ibmgr_api::registry;

use crate::{LICENCE, prose};

/// A page as text, section by section.
struct Page {
    text: String,
}

impl Page {
    /// Begins with licence and title.
    fn begin(title: &str, section: &str) -> Self {
        let mut page = Self {
            text: format!(
                ".\\\" {LICENCE}\n.\\\" Written by tests/tests/manuals; run it with UPDATE=1 instead of editing.\n"
            ),
        };
        // The preamble, which names what quotes become.
        page.text.push_str(&Roff::default().render());
        // By hand: the date is left out, and roff's crate leaves empty arguments out.
        let version = env!("CARGO_PKG_VERSION");
        page.line(&format!(
            ".TH {title} {section} \"\" \"ibmgr {version}\" \"ibmgr\""
        ));
        page
    }

    /// Adds what a renderer of clap's writes, without its preamble: one is enough.
    fn clap(
        &mut self,
        man: &Man,
        render: fn(&Man, &mut dyn std::io::Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        render(man, &mut bytes)?;
        let text = String::from_utf8(bytes)?;
        for line in text.lines() {
            let is_preamble = line.starts_with(".ie \\n(.g") || line.starts_with(".el .ds");
            if !is_preamble {
                self.line(line);
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn roff(&mut self, roff: &Roff) {
        for line in roff.to_roff().lines() {
            self.line(line);
        }
    }

    fn section(&mut self, title: &str, text: &str) {
        let mut roff = Roff::default();
        roff.control("SH", [title]);
        for line in text.lines() {
            roff.text([roman(line)]);
        }
        self.roff(&roff);
    }

    /// Adds the text below a command's help: paragraphs, and blocks after a line with a colon, which get
    /// a section each.
    fn after_help(&mut self, text: &str) {
        let mut roff = Roff::default();
        let mut is_block = false;
        let mut has_heading = false;
        for line in text.lines() {
            let title = line
                .strip_suffix(':')
                .filter(|title| !title.starts_with(' ') && title.len() < 20);
            if let Some(title) = title {
                if is_block {
                    roff.control("fi", []);
                }
                roff.control("SH", [title.to_uppercase().as_str()]);
                roff.control("nf", []);
                is_block = true;
            } else if !is_block && !has_heading {
                roff.control("SH", ["NOTES"]);
                roff.text([roman(line)]);
                has_heading = true;
            } else if is_block || !line.is_empty() {
                roff.text([roman(line)]);
            }
        }
        if is_block {
            roff.control("fi", []);
        }
        self.roff(&roff);
    }

    fn see_also(&mut self, pages: &[(&str, &str)]) {
        let mut roff = Roff::default();
        roff.control("SH", ["SEE ALSO"]);
        for (at, (name, section)) in pages.iter().enumerate() {
            let end = if at + 1 == pages.len() { "" } else { "," };
            roff.text([bold(*name), roman(format!("({section}){end}"))]);
        }
        self.roff(&roff);
    }

    fn finish(self) -> String {
        // Blank lines are discouraged in pages, and some formatters warn of them.
        let mut text = String::with_capacity(self.text.len());
        let mut is_block = false;
        for line in self.text.lines() {
            match line {
                ".nf" => is_block = true,
                ".fi" => is_block = false,
                _ => {}
            }
            match line {
                "" if is_block => text.push_str(".sp\n"),
                "" => {}
                line => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }
}

/// The page of `ibctl`: what holds for all verbs.
pub(crate) fn of_program(command: &Command) -> Result<String> {
    let mut page = Page::begin("ibctl", "1");
    let man = Man::new(command.clone());
    page.clap(&man, Man::render_name_section)?;
    page.clap(&man, Man::render_synopsis_section)?;
    page.section(
        "DESCRIPTION",
        "Shows, changes, verifies and explains the settings of network interfaces, of IP over InfiniBand first of all.\n\
         The kernel spreads them over rtnetlink, ethtool, netdev netlink and sysfs; here they are knobs with one name each.\n\
         Every change is read back and compared, and put back when one of its parts fails.\n\
         Reading needs no privilege; changing needs CAP_NET_ADMIN.",
    );
    page.clap(&man, Man::render_options_section)?;
    page.clap(&man, Man::render_subcommands_section)?;
    page.after_help(&after_help(command));
    page.section(
        "FILES",
        "Declarations are read from /usr/lib/ibmgr/conf.d, /run/ibmgr/conf.d and /etc/ibmgr/conf.d.\n\
         /run/ibmgr holds the journal of changes and the socket of the daemon.",
    );
    let verbs: Vec<String> = command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .map(|verb| format!("ibctl-{}", verb.get_name()))
        .collect();
    let mut pages: Vec<(&str, &str)> = verbs.iter().map(|verb| (verb.as_str(), "1")).collect();
    pages.extend([
        ("ibmgr.conf", "5"),
        ("ibmgrd", "8"),
        ("ip-link", "8"),
        ("ethtool", "8"),
    ]);
    page.see_also(&pages);
    Ok(page.finish())
}

/// The page of one verb.
pub(crate) fn of_verb(verb: &Command, program: &Command) -> Result<String> {
    let name = format!("ibctl-{}", verb.get_name());
    let mut page = Page::begin(&name, "1");
    let man = Man::new(verb.clone());
    page.clap(&man, Man::render_name_section)?;
    page.clap(&man, Man::render_synopsis_section)?;
    page.clap(&man, Man::render_options_section)?;
    if verb.has_subcommands() {
        // What they take stands here: they have no pages of their own.
        for part in verb.get_subcommands().filter(|part| !part.is_hide_set()) {
            let mut roff = Roff::default();
            roff.control("SH", [part.get_name().to_uppercase().as_str()]);
            page.roff(&roff);
            let about = part
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let usage = part.clone().render_usage().to_string();
            let mut roff = Roff::default();
            roff.text([roman(about)]);
            roff.control("PP", []);
            roff.text([bold(usage.trim_start_matches("Usage: ").to_owned())]);
            for argument in part
                .get_arguments()
                .filter(|argument| !argument.is_hide_set())
            {
                roff.control("TP", []);
                roff.text([bold(argument.to_string())]);
                let help = argument
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                roff.text([roman(help)]);
            }
            page.roff(&roff);
        }
    }
    page.after_help(&after_help(verb));
    let exits = "The exit status is that of the one table in ibctl(1).";
    page.section("EXIT STATUS", exits);
    page.see_also(&[
        (program.get_name(), "1"),
        ("ibmgr.conf", "5"),
        ("ibmgrd", "8"),
    ]);
    Ok(page.finish())
}

/// The page of the daemon: its command line, and its document.
pub(crate) fn of_daemon(command: &Command, document: &str) -> Result<String> {
    let mut page = Page::begin("ibmgrd", "8");
    let man = Man::new(command.clone());
    page.clap(&man, Man::render_name_section)?;
    page.clap(&man, Man::render_synopsis_section)?;
    page.line(".SH DESCRIPTION");
    page.roff(&prose::sections(document));
    page.clap(&man, Man::render_options_section)?;
    page.after_help(&after_help(command));
    page.see_also(&[
        ("ibctl", "1"),
        ("ibmgr.conf", "5"),
        ("systemd.service", "5"),
    ]);
    Ok(page.finish())
}

/// The page of configuration files: their document, and each knob.
pub(crate) fn of_files(document: &str) -> Result<String> {
    let mut page = Page::begin("ibmgr.conf", "5");
    page.section(
        "NAME",
        "ibmgr.conf - declared settings of network interfaces",
    );
    page.section("SYNOPSIS", "/etc/ibmgr/conf.d/*.toml, *.yaml\n");
    page.line(".SH DESCRIPTION");
    page.roff(&prose::sections(document));
    let mut roff = Roff::default();
    roff.control("SH", ["KNOBS"]);
    roff.text([roman("Which of them a device takes, and why not, tells ")]);
    roff.text([bold("ibctl explain"), roman(" "), roman("KNOB LINK.")]);
    for knob in registry::knobs() {
        let member = if knob.is_family { ".NAME" } else { "" };
        roff.control("TP", []);
        roff.text([
            bold(format!("{}{member}", knob.name)),
            roman(" = "),
            roman(knob.domain.expected()),
        ]);
        roff.text([roman(knob.summary)]);
    }
    page.roff(&roff);
    page.see_also(&[
        ("ibctl", "1"),
        ("ibctl-check", "1"),
        ("ibctl-plan", "1"),
        ("ibmgrd", "8"),
    ]);
    Ok(page.finish())
}

fn after_help(command: &Command) -> String {
    let text = command.get_after_long_help().or(command.get_after_help());
    text.map(ToString::to_string).unwrap_or_default()
}
