// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text for terminals: escaped, wrapped, aligned.

use std::borrow::Cow;
use std::io::{self, Write};

/// Width that wrapped text fills, in columns.
const WIDTH: usize = 80;

/// Returns `text` with control and direction characters escaped: names and texts that other programs
/// chose must not steer the terminal.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Writes `text` in lines of at most 80 columns; all but the first are indented by `indent`.
pub(crate) fn write_wrapped(
    out: &mut dyn Write,
    first: &str,
    indent: usize,
    text: &str,
) -> io::Result<()> {
    let mut line = first.to_owned();
    let mut is_blank = true;
    for word in text.split_whitespace() {
        let word = plain(word);
        let gap = usize::from(!is_blank);
        if !is_blank && columns(&line) + gap + columns(&word) > WIDTH {
            writeln!(out, "{line}")?;
            line = " ".repeat(indent);
            is_blank = true;
        }
        if !is_blank {
            line.push(' ');
        }
        line.push_str(&word);
        is_blank = false;
    }
    writeln!(out, "{}", line.trim_end())
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

enum Row<'a> {
    Cells(Vec<Cow<'a, str>>),
    Line(Cow<'a, str>),
    Wrapped(String),
}

/// Left-aligned columns, with lines in between that stand across them.
#[derive(Default)]
pub(crate) struct Table<'a> {
    indent: usize,
    rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    /// Returns a table whose cells are indented.
    pub(crate) fn indented(indent: usize) -> Self {
        Self {
            indent,
            rows: Vec::new(),
        }
    }

    /// Adds a row. An empty cell prints as `-` when another one follows.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cow<'a, str>>) {
        self.rows
            .push(Row::Cells(cells.into_iter().map(escaped).collect()));
    }

    /// Adds a line of text across the columns.
    pub(crate) fn line(&mut self, text: impl Into<Cow<'a, str>>) {
        self.rows.push(Row::Line(text.into()));
    }

    /// Adds a text across the columns, wrapped.
    pub(crate) fn wrapped(&mut self, text: String) {
        self.rows.push(Row::Wrapped(text));
    }

    /// Removes the columns that are empty in all rows but the first, which holds the headings.
    pub(crate) fn drop_empty_columns(&mut self) {
        let filled = |at: usize| {
            self.cells()
                .skip(1)
                .any(|cells| cells.get(at).is_some_and(|cell| !cell.is_empty()))
        };
        if self.cells().count() < 2 {
            return;
        }
        let count = self.cells().map(Vec::len).max().unwrap_or(0);
        let keep: Vec<bool> = (0..count).map(filled).collect();
        for row in &mut self.rows {
            if let Row::Cells(cells) = row {
                let mut kept = keep.iter();
                cells.retain(|_| kept.next().copied().unwrap_or(true));
            }
        }
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Cow<'a, str>>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Line(_) | Row::Wrapped(_) => None,
        })
    }

    /// Writes all rows.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths: Vec<usize> = Vec::new();
        for cells in self.cells() {
            widths.resize(widths.len().max(cells.len()), 1);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(columns(cell));
            }
        }
        let mut line = String::new();
        for row in &self.rows {
            let cells = match row {
                Row::Cells(cells) => cells,
                Row::Line(text) => {
                    writeln!(out, "{text}")?;
                    continue;
                }
                Row::Wrapped(text) => {
                    write_wrapped(out, &" ".repeat(self.indent), self.indent + 2, text)?;
                    continue;
                }
            };
            line.clear();
            line.extend(std::iter::repeat_n(' ', self.indent));
            let filled = cells.iter().rposition(|cell| !cell.is_empty());
            for (at, cell) in cells.iter().enumerate().take(filled.map_or(0, |at| at + 1)) {
                let cell = if cell.is_empty() { "-" } else { cell.as_ref() };
                line.push_str(cell);
                if Some(at) != filled {
                    let gap = widths[at] - columns(cell) + 2;
                    line.extend(std::iter::repeat_n(' ', gap));
                }
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

fn escaped(cell: Cow<'_, str>) -> Cow<'_, str> {
    match cell {
        Cow::Borrowed(text) => plain(text),
        Cow::Owned(text) => match plain(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(escaped) => Cow::Owned(escaped),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table<'_>) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_align_and_trailing_blanks_vanish() {
        let mut table = Table::default();
        table.row(["NAME".into(), "MTU".into(), "NOTE".into()]);
        table.row(["ib0".into(), "".into(), "x".into()]);
        table.row(["b\u{e4}h".into(), "2044".into(), "".into()]);
        table.row(["".into(), "".into(), "".into()]);
        assert_eq!(
            text(&table),
            "NAME  MTU   NOTE\nib0   -     x\nb\u{e4}h   2044\n\n"
        );
    }

    #[test]
    fn columns_without_a_value_are_dropped() {
        let mut table = Table::default();
        table.row(["NAME".into(), "PKEY".into(), "MTU".into()]);
        table.row(["lo".into(), "".into(), "65536".into()]);
        table.drop_empty_columns();
        assert_eq!(text(&table), "NAME  MTU\nlo    65536\n");
    }

    #[test]
    fn terminals_are_not_steered() {
        assert_eq!(plain("rail 1"), "rail 1");
        assert_eq!(plain("a\x1b[31m\n\u{202e}"), "a\\u{1b}[31m\\n\\u{202e}");
        let mut table = Table::default();
        table.row(["\x1b]0;x\x07".into(), String::from("\r").into()]);
        assert!(!text(&table).contains(['\x1b', '\x07', '\r']));
    }

    #[test]
    fn long_text_wraps_with_its_indent() {
        let mut out = Vec::new();
        write_wrapped(&mut out, "  note: ", 8, &"word ".repeat(30)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= 80));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("        word"))
        );
    }
}
