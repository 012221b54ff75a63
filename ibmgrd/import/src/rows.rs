// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the keys of a format become: one row per key.

use crate::note::Kept;
use crate::spelling::Form;

/// What one key of a format becomes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub(crate) key: &'static str,
    pub(crate) to: To,
    pub(crate) note: &'static str,
    /// Whether the note tells of a change of meaning, which each report repeats.
    pub(crate) is_changed: bool,
}

/// The keys of one kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// What the files are.
    pub title: &'static str,
    /// Their keys.
    pub rows: &'static [Row],
}

/// Where the value of a key goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// A knob.
    Knob(&'static str, Form),
    /// The ethtool setting that the rest of the key names.
    Ethtool(Group),
    /// Words of ethtool's command line.
    EthtoolWords,
    /// Pairs of names and values of one group.
    EthtoolPairs(Group),
    /// Tells which interface it is, or what kind of thing the file is about.
    Which(&'static str),
    /// Stays out of the rules, for this reason.
    Nothing(&'static str),
    /// Stays with the tool.
    Kept(Kept),
}

/// Groups of ethtool settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Group {
    Feature,
    Coalesce,
    Ring,
    Channels,
    Pause,
}

impl Group {
    /// Returns the knobs that this group becomes, for the documentation.
    const fn knobs(self) -> &'static str {
        match self {
            Self::Feature => "`feature.NAME`",
            Self::Coalesce => "the coalescing knob of that name",
            Self::Ring => "`ring.NAME`",
            Self::Channels => "`channels.NAME`",
            Self::Pause => "nothing",
        }
    }
}

impl Row {
    /// Returns the key; a `*` at the end stands for any rest.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.key
    }

    /// Returns what the key becomes, as Markdown.
    #[must_use]
    pub fn becomes(&self) -> String {
        match self.to {
            To::Knob(knob, _) => format!("`{knob}`"),
            To::Ethtool(group) | To::EthtoolPairs(group) => group.knobs().to_owned(),
            To::EthtoolWords => "the knobs of ethtool's options `-K`, `-C`, `-G`, `-L`".to_owned(),
            To::Which(what) => what.to_owned(),
            To::Nothing(_) => "nothing".to_owned(),
            To::Kept(_) => "left to its owner".to_owned(),
        }
    }

    /// Returns what to know about it, as Markdown; empty when there is nothing.
    #[must_use]
    pub fn remark(&self) -> String {
        let about = match self.to {
            To::Nothing(why) => why,
            To::Kept(kept) => kept.why(),
            To::Knob(_, form) => form.about(),
            To::Ethtool(Group::Pause) | To::EthtoolPairs(Group::Pause) => NO_PAUSE,
            To::Ethtool(_) | To::EthtoolPairs(_) | To::EthtoolWords | To::Which(_) => "",
        };
        let parts = [about, self.note];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }

    /// Adds what to know about the key.
    pub(crate) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// Adds in which way the value means something else in the rules.
    pub(crate) const fn changes(self, note: &'static str) -> Self {
        Self {
            note,
            is_changed: true,
            ..self
        }
    }
}

/// Why pause parameters are lost.
pub(crate) const NO_PAUSE: &str =
    "InfiniBand has credits instead of pause frames, and no knob is for them";

pub(crate) const fn row(key: &'static str, to: To) -> Row {
    Row {
        key,
        to,
        note: "",
        is_changed: false,
    }
}

/// Finds the row of a key, the most exact one, with the part of the key that its `*` stands for. A `*`
/// stands at the end, or else at the start.
pub(crate) fn find<'k>(rows: &'static [Row], key: &'k str) -> Option<(&'static Row, &'k str)> {
    if let Some(row) = rows.iter().find(|row| row.key == key) {
        return Some((row, ""));
    }
    let rest = |row: &'static Row| -> Option<(&'static Row, &'k str)> {
        let rest = match row.key.strip_suffix('*') {
            Some(start) => key.strip_prefix(start)?,
            None => key.strip_suffix(row.key.strip_prefix('*')?)?,
        };
        Some((row, rest))
    };
    rows.iter()
        .filter_map(rest)
        .min_by_key(|(_, rest)| rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] = &[
        row("a*", To::Nothing("")),
        row("ab*", To::Nothing("")),
        row("abc", To::Nothing("")),
        row("*_end", To::Nothing("")),
    ];

    #[test]
    fn the_most_exact_row_counts() {
        let found = |key| find(ROWS, key).map(|(row, rest)| (row.key, rest));
        assert_eq!(found("abc"), Some(("abc", "")));
        assert_eq!(found("abd"), Some(("ab*", "d")));
        assert_eq!(found("a"), Some(("a*", "")));
        assert_eq!(found("b"), None);
        assert_eq!(found("b_end"), Some(("*_end", "b")));
        assert_eq!(found("abd_end"), Some(("*_end", "abd")));
    }
}
