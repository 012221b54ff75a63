// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is wrong with a file, where, and what would be right.

use std::fmt;
use std::sync::Arc;

use ibmgr_api::Origin;
use ibmgr_api::form::FindingForm;
use serde::Serialize;

use crate::text::{Spot, Text};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is used all the same.
    Warning,
    /// The file is not used.
    Error,
}

impl Severity {
    /// Returns the word in messages and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A finding in a file.
///
/// `Display` prints it as compilers do: message, place, the line with a caret, and what to do.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where: the file, and unless it is about the whole file line and column.
    #[serde(flatten)]
    pub origin: Origin,
    /// What to do, or the nearest right name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line, with control characters replaced; empty when it is about the whole file.
    #[serde(skip)]
    excerpt: String,
    /// Characters that are wrong, from the column on.
    #[serde(skip)]
    width: u32,
}

impl From<&Diagnostic> for FindingForm {
    fn from(found: &Diagnostic) -> Self {
        Self {
            severity: found.severity.name().to_owned(),
            message: found.message.clone(),
            origin: found.origin.clone(),
            help: found.help.clone(),
        }
    }
}

/// Most findings that are told of one file.
pub(crate) const FOUND_MAX: usize = 100;

/// Most characters of a line that an excerpt shows.
const EXCERPT_MAX: usize = 100;

impl Diagnostic {
    /// Returns an error that is about a whole file.
    #[must_use]
    pub fn of_file(file: &Arc<str>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            origin: Origin {
                file: file.clone(),
                line: 0,
                column: 0,
            },
            help: None,
            excerpt: String::new(),
            width: 0,
        }
    }

    pub(crate) fn at(text: &Text, spot: Spot, message: impl Into<String>) -> Self {
        let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let line = text.line(spot.line);
        Self {
            severity: Severity::Error,
            message: message.into(),
            origin: text.origin(spot),
            help: None,
            excerpt: line.replace('\t', " ").chars().map(visible).collect(),
            width: spot.width,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds what to do, where there is something.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    pub(crate) fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Says whether the file cannot be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.severity.name(), self.message)?;
        write!(f, "  --> {}", self.origin)?;
        if self.origin.line == 0 {
            return match &self.help {
                Some(help) => write!(f, "\n  = {help}"),
                None => Ok(()),
            };
        }
        let column = usize::try_from(self.origin.column).unwrap_or(1).max(1) - 1;
        // A long line is shown around its caret.
        let skipped = column.saturating_sub(EXCERPT_MAX / 2);
        let shown: String = self
            .excerpt
            .chars()
            .skip(skipped)
            .take(EXCERPT_MAX)
            .collect();
        let left = column - skipped;
        let room = shown.chars().count().saturating_sub(left).max(1);
        let width = usize::try_from(self.width).unwrap_or(1).clamp(1, room);
        let number = self.origin.line.to_string();
        let gutter = " ".repeat(number.len());
        write!(f, "\n {gutter} |\n {number} | {}", shown.trim_end())?;
        write!(f, "\n {gutter} | {}{}", " ".repeat(left), "^".repeat(width))?;
        if let Some(help) = &self.help {
            write!(f, " {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_print_as_compilers_do() {
        let text = Text::new("10.toml".into(), "[[link]]\n\tmut = 2044\n");
        let found = Diagnostic::at(&text, text.spot(10..13), "no setting is called 'mut'");
        let wanted = "error: no setting is called 'mut'\n  --> 10.toml:2:2\n   |\n 2 |  mut = 2044\n   |  ^^^ did you mean 'mtu'?";
        assert_eq!(found.help("did you mean 'mtu'?").to_string(), wanted);
        let whole = Diagnostic::of_file(&"x.toml".into(), "it is too large").help("split it");
        assert_eq!(
            whole.to_string(),
            "error: it is too large\n  --> x.toml\n  = split it"
        );
    }

    #[test]
    fn long_and_odd_lines_stay_readable() {
        let line = format!("a = \"\u{1b}[31m{}\" oops", "x".repeat(5000));
        let text = Text::new("f".into(), &line);
        let at = line.len() - 4;
        let shown = Diagnostic::at(&text, text.spot(at..at + 4), "odd")
            .warning()
            .to_string();
        assert!(
            shown.lines().all(|line| line.chars().count() < 120),
            "{shown}"
        );
        assert!(
            shown.contains("oops") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        assert!(shown.starts_with("warning: odd"), "{shown}");
        let caret = shown.lines().last().and_then(|line| line.find('^'));
        let word = shown
            .lines()
            .rev()
            .nth(1)
            .and_then(|line| line.find("oops"));
        assert_eq!(caret, word);
    }
}
