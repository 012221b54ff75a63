// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sections with keys and values, in the dialects of GLib, systemd and TuneD.
//!
//! Parsers of others for this family of texts forget the line, or read one dialect only.

/// Whose rules hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dialect {
    /// GLib's `GKeyFile`: `#` comments, escapes in values.
    Keyfile,
    /// systemd.syntax(7): `#` and `;` comments, lines that end in `\` go on.
    Systemd,
    /// Python's configparser as TuneD sets it up: ` #` ends a value, indented lines go on.
    Tuned,
}

/// A key with its value.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Item {
    /// Line, from 1.
    pub(crate) line: usize,
    /// The section, without its brackets; empty before the first.
    pub(crate) section: String,
    /// The key; empty for a line that is none.
    pub(crate) key: String,
    /// The value, or the whole of a line that is no key.
    pub(crate) value: String,
}

/// Reads a text.
pub(crate) fn parse(text: &str, dialect: Dialect) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut section = String::new();
    let mut is_open = false;
    let mut lines = text.lines().enumerate();
    while let Some((at, raw)) = lines.next() {
        let line = raw.trim();
        let is_indented = raw.starts_with([' ', '\t']);
        if line.is_empty() {
            is_open = false;
            continue;
        }
        if line.starts_with('#') || line.starts_with(';') && dialect != Dialect::Keyfile {
            continue;
        }
        if dialect == Dialect::Tuned && is_indented && is_open {
            if let Some(item) = items.last_mut() {
                item.value.push('\n');
                item.value.push_str(without_comment(line));
            }
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            name.clone_into(&mut section);
            is_open = false;
            continue;
        }
        let mut whole = line.to_owned();
        while dialect == Dialect::Systemd && whole.ends_with('\\') {
            whole.pop();
            let mut more = lines.by_ref().map(|(_, line)| line.trim());
            // Comments between continued lines do not end them.
            let Some(next) = more.find(|line| !line.starts_with(['#', ';'])) else {
                break;
            };
            whole = format!("{} {next}", whole.trim_end());
        }
        let (key, value) = match whole.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => (key.trim(), value.trim()),
            _ => ("", whole.as_str()),
        };
        let value = match dialect {
            _ if key.is_empty() => value.to_owned(),
            Dialect::Keyfile => unescaped(value),
            Dialect::Systemd => value.to_owned(),
            Dialect::Tuned => without_quotes(without_comment(value)).to_owned(),
        };
        is_open = !key.is_empty();
        items.push(Item {
            line: at + 1,
            section: section.clone(),
            key: key.to_owned(),
            value,
        });
    }
    items
}

fn without_comment(value: &str) -> &str {
    let comment = value
        .match_indices('#')
        .find(|(at, _)| *at == 0 || value[..*at].ends_with([' ', '\t']));
    comment.map_or(value, |(at, _)| value[..at].trim_end())
}

fn without_quotes(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|value| value.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    value
}

/// Resolves the escapes of `GKeyFile`.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('s') => text.push(' '),
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\\') | None => text.push('\\'),
            Some(c) => text.extend(['\\', c]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, dialect: Dialect) -> Vec<(usize, String)> {
        let show = |item: Item| {
            let text = format!("{}.{}={}", item.section, item.key, item.value);
            (item.line, text)
        };
        parse(text, dialect).into_iter().map(show).collect()
    }

    fn is(found: &[(usize, String)], wanted: &[(usize, &str)]) {
        let found: Vec<_> = found
            .iter()
            .map(|(line, text)| (*line, text.as_str()))
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn keyfiles_have_escapes_and_hash_comments() {
        let text = "# c\n[a]\nkey = va\\slue\\n\n;odd\nalone\n[b]\r\nx=1;2;\r\n";
        is(
            &of(text, Dialect::Keyfile),
            &[
                (3, "a.key=va lue\n"),
                (4, "a.=;odd"),
                (5, "a.=alone"),
                (7, "b.x=1;2;"),
            ],
        );
    }

    #[test]
    fn units_go_on_after_a_backslash() {
        let text = "[Match]\nName=ib0 \\\n# between\n  ib1\n; c\n[Link]\nMTUBytes=2K\nA=b\\";
        is(
            &of(text, Dialect::Systemd),
            &[
                (2, "Match.Name=ib0 ib1"),
                (7, "Link.MTUBytes=2K"),
                (8, "Link.A=b"),
            ],
        );
    }

    #[test]
    fn profiles_have_comments_behind_values_and_indented_lines() {
        let text = "[net]\nfeatures=gro on # why\n  gso off\na=\"x # y\"\nb='q'\n\n  c=1\n";
        is(
            &of(text, Dialect::Tuned),
            &[
                (2, "net.features=gro on\ngso off"),
                (4, "net.a=\"x"),
                (5, "net.b=q"),
                (7, "net.c=1"),
            ],
        );
    }
}
