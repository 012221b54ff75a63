// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assignments in files that their tools source as shell scripts. Nothing is evaluated here: what
//! would need a shell is told apart and kept as it stands.

use std::iter::Peekable;
use std::str::Chars;

/// Something between two separators.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Item {
    /// Line, from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// `NAME=VALUE`.
    Assignment {
        name: String,
        /// The value without its quotes; expansions stand in it as they are written.
        value: String,
        /// What a shell would have to expand, such as `$(hostname -s)`.
        expansions: Vec<String>,
    },
    /// What only a shell could make something of.
    Other { text: String, why: &'static str },
}

/// Words that may stand before an assignment.
const DECLARATIONS: [&str; 4] = ["export", "readonly", "declare", "local"];

/// Reads a text.
pub(crate) fn parse(text: &str) -> Vec<Item> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        line: 1,
    };
    let mut items = Vec::new();
    while let Some(item) = reader.item() {
        items.push(item);
    }
    items
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

/// A word under construction.
#[derive(Default)]
struct Word {
    text: String,
    expansions: Vec<String>,
    is_closed: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn next_if(&mut self, is: impl FnOnce(char) -> bool) -> Option<char> {
        let c = *self.chars.peek()?;
        if is(c) { self.next() } else { None }
    }

    fn item(&mut self) -> Option<Item> {
        loop {
            self.skip_separators();
            self.chars.peek()?;
            let line = self.line;
            let mut name = String::new();
            while let Some(c) = self.next_if(|c| c.is_ascii_alphanumeric() || c == '_') {
                name.push(c);
            }
            if DECLARATIONS.contains(&name.as_str())
                && self.next_if(|c| c == ' ' || c == '\t').is_some()
            {
                continue;
            }
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let kind = if is_name && self.next_if(|c| c == '=').is_some() {
                self.assignment(name)
            } else {
                Kind::Other {
                    text: self.command(name),
                    why: "it is no assignment, and nothing is run",
                }
            };
            return Some(Item { line, kind });
        }
    }

    fn skip_separators(&mut self) {
        while let Some(&c) = self.chars.peek() {
            if c == '#' {
                while self.next_if(|c| c != '\n').is_some() {}
            } else if c.is_whitespace() || matches!(c, ';' | '&' | '|') {
                self.next();
            } else {
                return;
            }
        }
    }

    fn assignment(&mut self, name: String) -> Kind {
        if self.chars.peek() == Some(&'(') {
            let text = self.command(format!("{name}="));
            let why = "it is a list of the shell's";
            return Kind::Other { text, why };
        }
        let word = self.word();
        if !word.is_closed {
            let text = format!("{name}={}", first_line(&word.text));
            let why = "its quote is never closed, so all that follows belongs to it";
            return Kind::Other { text, why };
        }
        Kind::Assignment {
            name,
            value: word.text,
            expansions: word.expansions,
        }
    }

    /// Reads to the end of the line, quotes included.
    fn command(&mut self, mut text: String) -> String {
        let mut depth = 0_usize;
        while let Some(&c) = self.chars.peek() {
            match c {
                '\n' if depth == 0 => break,
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if matches!(c, '"' | '\'') {
                let word = self.word();
                text.push_str(&word.text);
                continue;
            }
            text.push(c);
            self.next();
        }
        first_line(&text)
    }

    /// Reads one word with its quotes.
    fn word(&mut self) -> Word {
        let mut word = Word {
            is_closed: true,
            ..Word::default()
        };
        while let Some(&c) = self.chars.peek() {
            match c {
                '\'' => {
                    self.next();
                    word.is_closed &= self.until('\'', &mut word.text);
                }
                '"' => {
                    self.next();
                    self.double_quoted(&mut word);
                }
                '\\' => {
                    self.next();
                    // A line that is continued.
                    if let Some(c) = self.next()
                        && c != '\n'
                    {
                        word.text.push(c);
                    }
                }
                '$' | '`' => self.expansion(&mut word),
                c if c.is_whitespace() || matches!(c, ';' | '&' | '|') => break,
                c => {
                    word.text.push(c);
                    self.next();
                }
            }
        }
        word
    }

    fn double_quoted(&mut self, word: &mut Word) {
        loop {
            match self.chars.peek() {
                None => {
                    word.is_closed = false;
                    return;
                }
                Some('"') => {
                    self.next();
                    return;
                }
                Some('\\') => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                        Some(c) => word.text.extend(['\\', c]),
                    }
                }
                Some('$' | '`') => self.expansion(word),
                Some(&c) => {
                    word.text.push(c);
                    self.next();
                }
            }
        }
    }

    /// Keeps what a shell would expand, and `$'…'`, which it would not.
    fn expansion(&mut self, word: &mut Word) {
        let Some(first) = self.next() else { return };
        let mut text = String::from(first);
        match self.chars.peek().copied() {
            _ if first == '`' => {
                word.is_closed &= self.until('`', &mut text);
                text.push('`');
            }
            Some('\'') => {
                self.next();
                word.is_closed &= self.ansi_quoted(&mut word.text);
                return;
            }
            Some(open @ ('(' | '{')) => {
                let close = if open == '(' { ')' } else { '}' };
                let mut depth = 0_usize;
                loop {
                    let Some(c) = self.next() else {
                        word.is_closed = false;
                        break;
                    };
                    text.push(c);
                    if c == open {
                        depth += 1;
                    } else if c == close {
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                }
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                while let Some(c) = self.next_if(|c| c.is_ascii_alphanumeric() || c == '_') {
                    text.push(c);
                }
            }
            Some(c @ ('@' | '*' | '#' | '?' | '-' | '$' | '!')) => {
                self.next();
                text.push(c);
            }
            // A dollar alone is itself.
            Some(_) | None => {
                word.text.push('$');
                return;
            }
        }
        word.text.push_str(&text);
        word.expansions.push(text);
    }

    /// Reads `$'…'`, whose escapes NetworkManager writes; rare ones stay as they are.
    fn ansi_quoted(&mut self, text: &mut String) -> bool {
        while let Some(c) = self.next() {
            match c {
                '\'' => return true,
                '\\' => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(c @ ('\\' | '\'' | '"')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                c => text.push(c),
            }
        }
        false
    }

    fn until(&mut self, end: char, text: &mut String) -> bool {
        while let Some(c) = self.next() {
            if c == end {
                return true;
            }
            text.push(c);
        }
        false
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(usize, String, String)> {
        let of = |item: Item| match item.kind {
            Kind::Assignment { name, value, .. } => (item.line, name, value),
            Kind::Other { text, .. } => (item.line, "-".to_owned(), text),
        };
        parse(text).into_iter().map(of).collect()
    }

    #[track_caller]
    fn assert_value(text: &str, wanted: &str) {
        let values = values(text);
        assert_eq!(
            values.first().map(|(.., value)| value.as_str()),
            Some(wanted)
        );
    }

    #[test]
    fn quotes_are_removed_as_a_shell_removes_them() {
        assert_value("A=plain", "plain");
        assert_value("A='it is'", "it is");
        assert_value("A=\"it is\" # why", "it is");
        assert_value("A=\"a \\\"b\\\" \\$c \\d\"", "a \"b\" $c \\d");
        assert_value("A=a\\ b", "a b");
        assert_value("A=a'b'\"c\"", "abc");
        assert_value("A=$'a\\'b\\n'", "a'b\n");
        assert_value("A=", "");
        assert_value("A=a#b", "a#b");
        assert_value("A=\"one \\\ntwo\"", "one two");
        assert_value("export A=1", "1");
    }

    #[test]
    fn lines_are_counted_through_quotes() {
        let text = "# first\nA=1\n\nB='x\ny'\nC=3; D=4\r\n";
        let lines: Vec<_> = values(text)
            .into_iter()
            .map(|(line, name, _)| (line, name))
            .collect();
        let wanted = [(2, "A"), (4, "B"), (6, "C"), (6, "D")];
        assert_eq!(lines, wanted.map(|(line, name)| (line, name.to_owned())));
    }

    #[test]
    fn what_needs_a_shell_is_kept_and_not_evaluated() {
        for (text, wanted) in [
            ("A=$(rm -rf / (x))", "$(rm -rf / (x))"),
            ("A=`id`", "`id`"),
            ("A=${B:-$(x)}", "${B:-$(x)}"),
            ("A=$B", "$B"),
            ("A=\"x $B\"", "$B"),
        ] {
            let items = parse(text);
            let Kind::Assignment { expansions, .. } = &items[0].kind else {
                panic!("{text}");
            };
            assert_eq!(expansions, &[wanted], "{text}");
        }
        assert_value("A='$B'", "$B");
        let quoted = parse("A='$B' C=\"\\$D\" E=5$");
        for item in quoted {
            assert!(
                matches!(&item.kind, Kind::Assignment { expansions, .. } if expansions.is_empty()),
                "{item:?}"
            );
        }
    }

    #[test]
    fn commands_and_broken_quotes_are_told_apart() {
        for text in [
            ". /etc/other",
            "if [ x ]; then",
            "A+=b",
            "A=(1 2)",
            "A='open",
            "A=\"open\nB=2",
            "A=$(open",
            "1A=2",
        ] {
            let items = parse(text);
            assert!(
                matches!(items[0].kind, Kind::Other { .. }),
                "{text}: {items:?}"
            );
        }
    }
}
