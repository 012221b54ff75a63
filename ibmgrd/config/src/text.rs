// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Texts, and places in them.

use std::ops::Range;
use std::sync::Arc;

use ibmgr_api::Origin;

/// A part of one line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Spot {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
    /// Characters, at least 1.
    pub(crate) width: u32,
}

/// A file's text, with its lines.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) file: Arc<str>,
    text: Arc<str>,
    /// Where lines begin, in bytes.
    starts: Arc<[usize]>,
}

impl Text {
    pub(crate) fn new(file: Arc<str>, text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
        Self {
            file,
            text: text.into(),
            starts: starts.collect(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the line of that number, without its end; empty when there is none.
    pub(crate) fn line(&self, number: u32) -> &str {
        let at = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .wrapping_sub(1);
        let Some(start) = self.starts.get(at) else {
            return "";
        };
        let end = self.starts.get(at + 1).copied().unwrap_or(self.text.len());
        self.text[*start..end].trim_end_matches(['\n', '\r'])
    }

    /// Returns the place of a range of bytes, as far as it is on its first line.
    pub(crate) fn spot(&self, range: Range<usize>) -> Spot {
        let start = self.boundary(range.start);
        let end = self.boundary(range.end.max(start));
        let at = self.starts.partition_point(|begin| *begin <= start).max(1);
        let before = &self.text[self.starts[at - 1]..start];
        let inside = self.text[start..end].lines().next().unwrap_or_default();
        Spot {
            line: count(at),
            column: count(before.chars().count()).saturating_add(1),
            width: count(inside.chars().count()).max(1),
        }
    }

    /// Returns the place, or the end of the text for one behind it.
    pub(crate) fn within(&self, spot: Spot) -> Spot {
        let lines = count(self.starts.len());
        if spot.line <= lines {
            return spot;
        }
        Spot {
            line: lines,
            column: count(self.line(lines).chars().count()).saturating_add(1),
            width: 1,
        }
    }

    /// Returns the nearest start of a character at or before `at`.
    fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        (0..=at)
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0)
    }

    pub(crate) fn origin(&self, spot: Spot) -> Origin {
        Origin {
            file: self.file.clone(),
            line: spot.line,
            column: spot.column,
        }
    }
}

/// Returns a count of lines or columns; files are far too small to reach the bound.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns_of_characters() {
        let text = Text::new("x".into(), "a = 1\nb\u{e4}h = \"x\ny\"\n");
        let spot = |range| {
            let spot = text.spot(range);
            (spot.line, spot.column, spot.width)
        };
        assert_eq!(spot(0..1), (1, 1, 1));
        assert_eq!(spot(6..10), (2, 1, 3));
        assert_eq!(spot(13..17), (2, 7, 2), "a range ends with its line");
        assert_eq!(spot(900..901), (4, 1, 1));
        assert_eq!(spot(8..8), (2, 2, 1), "inside a character");
        assert_eq!(
            (text.line(2), text.line(0), text.line(9)),
            ("b\u{e4}h = \"x", "", "")
        );
    }
}
