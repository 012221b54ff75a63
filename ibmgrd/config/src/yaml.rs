// SPDX-License-Identifier: Apache-2.0 OR MIT
//! YAML texts to trees.
//!
//! Anchors and aliases are understood; a budget keeps a few lines of them from growing into gigabytes.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::diagnostic::Diagnostic;
use crate::text::{Spot, Text, count};
use crate::tree::{Body, DEPTH_MAX, Entry, Node};

/// Most nodes of a file, what its aliases stand for included.
const NODES_MAX: usize = 200_000;

/// Reads a text. `None` for one without a document, or that is no YAML from the start.
pub(crate) fn read(text: &Text, found: &mut Vec<Diagnostic>) -> Option<Node> {
    let mut reader = Reader {
        text,
        events: Parser::new_from_str(text.as_str()),
        anchors: HashMap::new(),
        nodes: 0,
    };
    match reader.stream() {
        Ok(node) => node,
        Err(error) => {
            found.push(*error);
            None
        }
    }
}

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

struct Reader<'a> {
    text: &'a Text,
    events: Parser<'a, StrInput<'a>>,
    /// Anchored nodes, with the number of nodes in them.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span)> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.malformed(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn malformed(&self, error: &ScanError) -> Box<Diagnostic> {
        let spot = self.text.within(spot(*error.marker(), 1));
        let message = format!("this is no YAML: {}", error.info());
        Box::new(Diagnostic::at(self.text, spot, message))
    }

    fn wrong(&self, spot: Spot, message: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::at(self.text, self.text.within(spot), message))
    }

    fn stream(&mut self) -> Result<Option<Node>> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(document),
                Event::DocumentStart(_) if document.is_some() => {
                    let message = "a file holds one document; remove what follows this '---'";
                    return Err(self.wrong(spot_of(span), message));
                }
                Event::Nothing
                | Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd => {}
                event => document = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node> {
        let spot = self.text.within(spot_of(span));
        if depth > DEPTH_MAX {
            let message = format!("this is nested more than {DEPTH_MAX} levels deep");
            return Err(self.wrong(spot, &message));
        }
        self.spend(1, spot)?;
        let before = self.nodes;
        let (body, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain
                    && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
                let body = if is_null {
                    Body::Nothing
                } else {
                    Body::Scalar(text.into_owned())
                };
                (body, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.table(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some((node, nodes)) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.wrong(spot, "this alias stands inside of what it names"));
                };
                self.spend(nodes, spot)?;
                return Ok(node);
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => {
                return Err(self.wrong(spot, "this is no YAML: the text ends too early"));
            }
        };
        let node = Node { spot, body };
        if anchor != 0 {
            let nodes = self.nodes - before + 1;
            self.spend(nodes, spot)?;
            self.anchors.insert(anchor, (node.clone(), nodes));
        }
        Ok(node)
    }

    fn spend(&mut self, nodes: usize, spot: Spot) -> Result<()> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            let message =
                format!("this and the aliases before it stand for over {NODES_MAX} values");
            return Err(self.wrong(spot, &message));
        }
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<Body> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Body::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Result<Body> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut lines: HashMap<String, u32> = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Body::Table(entries));
            }
            let key = self.node(event, span, depth + 1)?;
            let Body::Scalar(name) = key.body else {
                return Err(self.wrong(key.spot, "a key is a word here"));
            };
            if name == "<<" {
                let message = "merge keys are not read; name a profile instead";
                return Err(self.wrong(key.spot, message));
            }
            if let Some(first) = lines.insert(name.clone(), key.spot.line) {
                let message = format!("'{name}' stands here a second time; line {first} has it");
                return Err(self.wrong(key.spot, &message));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            entries.push(Entry {
                key: name,
                spot: key.spot,
                value,
            });
        }
    }
}

/// Returns the place of a span, as far as it is on its first line.
fn spot_of(span: Span) -> Spot {
    let (start, end) = (span.start, span.end);
    let width = if end.line() == start.line() {
        end.col().saturating_sub(start.col())
    } else {
        1
    };
    spot(start, width)
}

fn spot(marker: Marker, width: usize) -> Spot {
    Spot {
        line: count(marker.line()).max(1),
        column: count(marker.col()).saturating_add(1),
        width: count(width).max(1),
    }
}
