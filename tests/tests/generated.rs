// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reference pages are written from the tables that the programs use, and equal to them.
//!
//! `UPDATE=1 cargo test -p ib-tests --test generated` rewrites the pages.

use std::fmt::Write;

use anyhow::{Context, Result};
use ib_tests::committed;
use ibmgr_api::registry::{GROUPS, Group, Knob};
use ibmgr_api::{Domain, ErrorCode, Key};
use ibmgrd_import::{Format, Outcome};

const NOTE: &str =
    "<!-- Written by tests/tests/generated.rs; run it with UPDATE=1 instead of editing. -->\n";

/// Compares a page with what it should be, or rewrites it when `UPDATE` is set.
fn compare(path: &str, wanted: &str) -> Result<()> {
    committed::compare(path, wanted, "generated")
}

fn knobs_page() -> Result<String> {
    let mut page = format!(
        "{NOTE}# Knobs\n\n\
         Every setting that ibmgr can show, set and verify.\n\
         *Through* names the kernel interfaces that carry it, the preferred one first; `--via` picks one.\n\
         *Told by* names the kernel's notifications after a change; what can change without one is polled.\n\
         Whether a device takes a knob, and why not, tells `ibctl explain KNOB LINK`.\n"
    );
    for Group { title, knobs } in GROUPS {
        let title = capitalised(title);
        write!(
            page,
            "\n## {title}\n\n| knob | values | through | told by | while it changes |\n\
             |---|---|---|---|---|\n"
        )?;
        for knob in knobs {
            writeln!(
                page,
                "| `{}` | {} | {} | {} | {} |",
                shown_name(knob),
                values(&knob.domain),
                channels(knob),
                told_by(knob),
                knob.effect.sentence()
            )?;
        }
        // Families of rows share one text: print it once, below the first of them.
        let mut last = "";
        for knob in knobs {
            write!(page, "\n### `{}`\n\n{}\n", shown_name(knob), knob.summary)?;
            if knob.details != last {
                writeln!(page, "{}", knob.details)?;
                last = knob.details;
            }
            if !knob.disturbs.is_empty() {
                writeln!(
                    page,
                    "A change also changes `{}`.",
                    knob.disturbs.join("`, `")
                )?;
            }
        }
    }
    Ok(page)
}

fn shown_name(knob: &Knob) -> String {
    let member = if knob.is_family { ".NAME" } else { "" };
    format!("{}{member}", knob.name)
}

fn channels(knob: &Knob) -> String {
    let names: Vec<_> = knob
        .carriers
        .iter()
        .map(|carrier| carrier.channel().name())
        .collect();
    names.join(", ")
}

fn told_by(knob: &Knob) -> String {
    let notices = knob.notices().into_iter().map(|notice| notice.name());
    let down = if knob.is_polled(true) {
        Some("polled")
    } else if knob.is_polled(false) {
        Some("polled while down")
    } else {
        None
    };
    notices.chain(down).collect::<Vec<_>>().join(", ")
}

fn values(domain: &Domain) -> String {
    match domain {
        Domain::Choice(choices) => {
            let names: Vec<_> = choices
                .iter()
                .map(|choice| format!("`{}`", choice.name))
                .collect();
            names.join(", ")
        }
        Domain::Number { unit, min, max } => format!("{min} to {max} {}", unit.name())
            .trim_end()
            .to_owned(),
        Domain::Duration { max, .. } => {
            format!(
                "a time, `0` to `{}`",
                domain.show(&domain.from_kernel(*max))
            )
        }
        Domain::Cpus => "CPUs such as `0-3,8`, `local`, `none`".to_owned(),
        Domain::Text { max_len } => format!("text of up to {max_len} bytes"),
    }
}

fn capitalised(title: &str) -> String {
    let mut chars = title.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn errors_page() -> Result<String> {
    let mut page = format!(
        "{NOTE}# Errors\n\n\
         One table for every surface: `ibctl` ends with the exit status and prints the name with `-o json`;\n\
         the D-Bus name and the HTTP status are what the daemon will answer with.\n\
         0 is success, and so is a reader that closes the pipe.\n\n\
         | exit status | name | meaning | D-Bus name | HTTP status |\n|---|---|---|---|---|\n"
    );
    for code in ErrorCode::all() {
        writeln!(
            page,
            "| {} | `{}` | {} | `{}` | {} |",
            code.exit_status(),
            code.name(),
            code.title(),
            code.dbus_name(),
            code.http_status()
        )?;
    }
    page.push_str(
        "\nWhen several knobs of one command fail, the gravest decides: a change that could not be put back,\n\
         then an interface that disappeared, then the first refusal; `no-effect` counts only when all else is well.\n",
    );
    Ok(page)
}

/// What the page of formats says before its tables.
const IMPORTING: &str = "\
`ibctl import` reads the configuration of other tools, writes a file of rules, and reports of each setting what became of it.
The files are parsed and never run: what a shell would have to expand is reported, and stays where it is.
Nothing is applied, and no file of the other tool is changed.

```text
ibctl import --from FORMAT PATH... [--to FILE [--force]] [--all-kinds] [-o json]
```

Rules go to standard output as TOML, or to the file that `--to` names: it is written as a whole, and one that is there stays without `--force`.
The report goes to standard error, a line for each setting, with file and line; `-o json` prints rules and report as one document.
Of a folder, all files of the format are read, without backups; files for one interface are joined, and children hung below their parents.

| result | meaning |
|---|---|
";

/// What the page says between the words of the report and the tables.
const TOGETHER: &str = "
Interfaces that are not InfiniBand's are not carried over, unless `--all-kinds` is given.
A file whose conditions can't all be carried is not carried at all: a rule for too many interfaces is worse than none.
A key that no table has is reported without its value, which could be a secret.

What catches people who do this by hand:

- The kernel sets the full-member bit (0x8000) of a child's P_Key, but not in its name: NetworkManager's `ib0.000a` is partition 0x800a. Red Hat's `PKEY_ID` has the bit in both.
- wicked's `IPOIB_UMCAST=allowed` is the kernel's `umcast` 1, which is our `ignore`.
- The first 12 bytes of an IPoIB address hold the QPN and change; rules match on the last 8, the port GUID.
- ConnectX-4 and later have datagram mode only.
- An MTU of 65520 takes connected mode. With datagram mode it is not carried: the kernel refuses it, and the other tool got nothing from it either.
- Two tools that set one knob undo each other's work. Take the settings out of the other tool's files once the rules are in force.
";

fn importing_page() -> Result<String> {
    let mut page = format!("{NOTE}# Importing\n\n{IMPORTING}");
    for outcome in Outcome::ALL {
        let meaning = match outcome {
            Outcome::Carried => "it means the same in the rules",
            Outcome::Changed => "it stands in the rules and means something else there",
            Outcome::NotCarried => "it does not stand in the rules; the note says why",
            Outcome::LeftToOwner => {
                "addresses, names and activation: once a file, with all such keys"
            }
        };
        writeln!(page, "| `{}` | {meaning} |", outcome.name())?;
    }
    page.push_str(TOGETHER);
    for format in Format::ALL {
        write!(page, "\n## {}\n\n{}.\n", format.name(), format.title())?;
        for table in format.tables() {
            write!(page, "\n### {}\n", of_format(format, table.title))?;
            page.push_str("\n| key | becomes | remark |\n|---|---|---|\n");
            for row in table.rows {
                let (key, becomes, remark) = (row.key(), row.becomes(), row.remark());
                writeln!(page, "| `{key}` | {becomes} | {remark} |")?;
            }
        }
    }
    Ok(page)
}

/// Returns a heading that no other format has.
fn of_format(format: Format, title: &str) -> String {
    format!("{title} ({format})")
}

#[test]
fn the_page_of_formats_is_the_tables() -> Result<()> {
    compare("docs/import.md", &importing_page()?)
}

#[test]
fn importers_name_knobs_that_there_are() -> Result<()> {
    for format in Format::ALL {
        for row in format.tables().iter().flat_map(|table| table.rows) {
            let becomes = row.becomes();
            let name = becomes
                .strip_prefix('`')
                .and_then(|name| name.strip_suffix('`'));
            let is_place = |name: &&str| {
                ["match.", "child."]
                    .iter()
                    .any(|place| name.starts_with(place))
            };
            if let Some(name) = name.filter(|name| !is_place(name) && !name.ends_with(".NAME")) {
                name.parse::<Key>()
                    .with_context(|| format!("{format}: {}", row.key()))?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_page_of_knobs_is_the_registry() -> Result<()> {
    compare("docs/reference/knobs.md", &knobs_page()?)
}

#[test]
fn the_page_of_errors_is_the_table() -> Result<()> {
    compare("docs/reference/errors.md", &errors_page()?)
}

#[test]
fn the_schema_of_files_is_the_registry() -> Result<()> {
    let schema = serde_json::to_string_pretty(&ibmgrd_config::schema())?;
    compare("docs/reference/config.schema.json", &format!("{schema}\n"))
}
