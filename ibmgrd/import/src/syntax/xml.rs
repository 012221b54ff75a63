// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XML as a tree whose elements know their lines. Prefixes such as `ipv4:` are part of a name, and
//! several elements may stand side by side at the top, as wicked writes both.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{DEEPEST, MOST_NODES};

/// An element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    /// Line, from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
    /// Text between the tags, without white space around it.
    pub(crate) text: String,
    pub(crate) children: Vec<Self>,
}

/// Where a text stops to be XML.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Flaw {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Element {
    /// Returns the first child of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// Counts lines up to offsets that only grow.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, offset: u64) -> usize {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let passed = self
            .text
            .as_bytes()
            .get(self.at..offset.min(self.text.len()));
        if let Some(passed) = passed {
            self.line += passed.iter().filter(|byte| **byte == b'\n').count();
            self.at += passed.len();
        }
        self.line
    }
}

/// Reads the elements at the top of a text.
pub(crate) fn parse(text: &str) -> Result<Vec<Element>, Flaw> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut lines = Lines {
        text,
        at: 0,
        line: 1,
    };
    let mut top = Vec::new();
    let mut open: Vec<Element> = Vec::new();
    let mut count = 0;
    loop {
        let line = lines.at(reader.buffer_position());
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let line = lines.at(reader.error_position());
                let what = error.to_string();
                return Err(Flaw { line, what });
            }
        };
        let flaw = |what: &str| {
            let what = what.to_owned();
            Err(Flaw { line, what })
        };
        match event {
            Event::Start(start) => {
                count += 1;
                if open.len() >= DEEPEST {
                    return flaw("it is nested too deeply");
                }
                if count > MOST_NODES {
                    return flaw("it holds too much");
                }
                open.push(begin(&start, line));
            }
            Event::End(_) => {
                let Some(mut element) = open.pop() else {
                    return flaw("an element ends that never began");
                };
                element.text.truncate(element.text.trim_end().len());
                match open.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => top.push(element),
                }
            }
            Event::Text(part) => push(&mut open, &part.xml10_content()),
            Event::CData(part) => push(&mut open, &part.xml10_content()),
            Event::GeneralRef(reference) => {
                let named = match &*reference {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "apos" => Some('\''),
                    "quot" => Some('"'),
                    _ => reference.resolve_char_ref().ok().flatten(),
                };
                let Some(c) = named else {
                    return flaw("it has an entity of its own, and none is looked up");
                };
                push(&mut open, c.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => return flaw("it has a document type, and none is read"),
            Event::Eof if open.is_empty() => return Ok(top),
            Event::Eof => return flaw("it ends inside of an element"),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn begin(start: &BytesStart<'_>, line: usize) -> Element {
    Element {
        line,
        name: start.name().as_ref().to_owned(),
        ..Element::default()
    }
}

fn push(open: &mut [Element], part: &str) {
    if let Some(element) = open.last_mut() {
        let part = if element.text.is_empty() {
            part.trim_start()
        } else {
            part
        };
        element.text.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_lines_texts_and_prefixes() {
        let text = "<?xml version='1.0'?>\n<interface>\n  <name>ib0</name>\n  <ipv4:static/>\n  \
                    <link><alias> a &lt;b&gt; &#65;\n</alias></link>\n</interface>\n<interface/>\n";
        let top = parse(text).unwrap();
        assert_eq!(top.len(), 2);
        assert_eq!((top[0].line, top[1].line), (2, 8));
        let name = top[0].get("name").unwrap();
        assert_eq!((name.line, name.text.as_str()), (3, "ib0"));
        assert!(top[0].get("ipv4:static").is_some());
        let alias = top[0]
            .get("link")
            .and_then(|link| link.get("alias"))
            .unwrap();
        assert_eq!(alias.text, "a <b> A");
    }

    #[test]
    fn flaws_have_their_line() {
        for (text, line) in [
            ("<a>\n<b>\n</a>", 3),
            ("<a>\n", 2),
            ("\n<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", 2),
            ("<a>\n\n&x;</a>", 3),
            ("</a>", 1),
        ] {
            let flaw = parse(text).unwrap_err();
            assert_eq!(flaw.line, line, "{text:?}: {}", flaw.what);
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        assert!(parse(&"<a>".repeat(100_000)).is_err());
        assert!(parse(&"<a/>".repeat(MOST_NODES + 1)).is_err());
    }
}
