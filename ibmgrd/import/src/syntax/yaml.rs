// SPDX-License-Identifier: Apache-2.0 OR MIT
//! YAML as a tree whose nodes know their lines.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{DEEPEST, MOST_NODES};

/// A value with its line.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Line, from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Text, a number, a boolean: as written. Null is empty.
    Scalar(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Pair>),
}

#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// Line of the key.
    pub(crate) line: usize,
    pub(crate) key: String,
    pub(crate) value: Node,
}

/// Where a text stops to be YAML.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Flaw {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Node {
    /// Returns the pairs of a mapping, none for anything else.
    pub(crate) fn pairs(&self) -> &[Pair] {
        match &self.kind {
            Kind::Mapping(pairs) => pairs,
            Kind::Scalar(_) | Kind::Sequence(_) => &[],
        }
    }

    /// Returns the nodes of a sequence, none for anything else.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Sequence(nodes) => nodes,
            Kind::Scalar(_) | Kind::Mapping(_) => &[],
        }
    }

    /// Returns the pair with that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Pair> {
        self.pairs().iter().find(|pair| pair.key == key)
    }

    /// Returns the text of a scalar.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// Says in one word what this is, where a scalar was expected.
    pub(crate) fn shown(&self) -> &str {
        match &self.kind {
            Kind::Scalar(text) => text,
            Kind::Sequence(_) => "(a list)",
            Kind::Mapping(_) => "(a mapping)",
        }
    }

    fn count(&self) -> usize {
        let below: usize = match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::Sequence(nodes) => nodes.iter().map(Self::count).sum(),
            Kind::Mapping(pairs) => pairs.iter().map(|pair| 1 + pair.value.count()).sum(),
        };
        below + 1
    }
}

/// A collection whose end has not come.
struct Open {
    line: usize,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    Sequence(Vec<Node>),
    Mapping {
        pairs: Vec<Pair>,
        /// Keys so far.
        known: HashSet<String>,
        key: Option<(usize, String)>,
    },
}

#[derive(Default)]
struct Builder {
    documents: Vec<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    count: usize,
}

/// Reads all documents of a text.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, Flaw> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| Flaw {
            line: error.marker().line(),
            what: error.info().to_owned(),
        })?;
        builder.take(event, span.start.line())?;
    }
    Ok(builder.documents)
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), Flaw> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_null =
                    style == ScalarStyle::Plain && matches!(text.as_ref(), "~" | "null" | "Null");
                let text = if is_null {
                    String::new()
                } else {
                    text.into_owned()
                };
                let kind = Kind::Scalar(text);
                self.add(Node { line, kind }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.begin(line, anchor, OpenKind::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                let kind = OpenKind::Mapping {
                    pairs: Vec::new(),
                    known: HashSet::new(),
                    key: None,
                };
                self.begin(line, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Ok(());
                };
                let kind = match open.kind {
                    OpenKind::Sequence(nodes) => Kind::Sequence(nodes),
                    OpenKind::Mapping { pairs, .. } => Kind::Mapping(pairs),
                };
                let node = Node {
                    line: open.line,
                    kind,
                };
                self.add(node, open.anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = node.clone();
                    self.count += node.count();
                    self.add(node, 0)
                }
                None => Err(flaw(line, "an alias stands inside of what it stands for")),
            },
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            // Comments, and what later versions tell besides.
            #[expect(unreachable_patterns, reason = "the crate may add events")]
            _ => Ok(()),
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, kind: OpenKind) -> Result<(), Flaw> {
        if self.open.len() >= DEEPEST {
            return Err(flaw(line, "it is nested too deeply"));
        }
        self.open.push(Open { line, anchor, kind });
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Flaw> {
        self.count += 1;
        if self.count > MOST_NODES {
            return Err(flaw(node.line, "it holds too much"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
            self.count += node.count();
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::Sequence(nodes) => nodes.push(node),
            OpenKind::Mapping { pairs, known, key } => match key.take() {
                None => {
                    let Some(text) = node.scalar() else {
                        return Err(flaw(node.line, "a key is no plain text"));
                    };
                    if !known.insert(text.to_owned()) {
                        return Err(flaw(node.line, &format!("the key '{text}' stands twice")));
                    }
                    *key = Some((node.line, text.to_owned()));
                }
                Some((line, key)) => pairs.push(Pair {
                    line,
                    key,
                    value: node,
                }),
            },
        }
        Ok(())
    }
}

fn flaw(line: usize, what: &str) -> Flaw {
    Flaw {
        line,
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_texts_are_kept() {
        let text = "---\ninterfaces:\n  - name: ib0\n    mtu: 0x10\n    on: ~\n";
        let documents = parse(text).unwrap();
        let list = &documents[0].get("interfaces").unwrap().value;
        let first = &list.items()[0];
        assert_eq!(first.line, 3);
        let mtu = first.get("mtu").unwrap();
        assert_eq!((mtu.line, mtu.value.scalar()), (4, Some("0x10")));
        assert_eq!(first.get("on").unwrap().value.scalar(), Some(""));
    }

    #[test]
    fn aliases_are_what_they_stand_for() {
        let documents = parse("a: &x {mtu: 5}\nb: *x\n").unwrap();
        let b = &documents[0].get("b").unwrap().value;
        assert_eq!(b.get("mtu").unwrap().value.scalar(), Some("5"));
    }

    #[test]
    fn flaws_have_their_line() {
        for (text, line) in [
            ("a: 1\na: 2\n", 2),
            ("a: [\n", 2),
            ("a: 1\n  b: 2\n", 2),
            ("a: &x [*x]\n", 1),
        ] {
            let flaw = parse(text).unwrap_err();
            assert_eq!(flaw.line, line, "{text}: {}", flaw.what);
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(10_000)).is_err());
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (from, to) in ["ab", "bc", "cd", "de", "ef", "fg", "gh"]
            .iter()
            .map(|pair| pair.split_at(1))
        {
            let list = vec![format!("*{from}"); 9].join(", ");
            bomb.push_str(&format!("{to}: &{to} [{list}]\n"));
        }
        assert!(parse(&bomb).is_err());
    }
}
