// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Markdown to the language of manual pages (man(7)), as far as our documents need it.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A page as it is being written.
#[derive(Default)]
struct Writer {
    roff: Roff,
    line: Vec<Inline>,
    cells: Vec<Vec<Inline>>,
    is_emphasis: bool,
    is_strong: bool,
    is_code: bool,
    is_title: bool,
}

/// Turns a document without its title into sections.
pub(crate) fn sections(text: &str) -> Roff {
    let mut writer = Writer::default();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        writer.take(event);
    }
    writer.roff
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.roff.text([roman(line)]);
                }
            }
            Event::Text(text) => {
                let text = text.into_string();
                self.line.push(match (self.is_strong, self.is_emphasis) {
                    (true, _) => bold(text),
                    (false, true) => italic(text),
                    (false, false) => roman(text),
                });
            }
            Event::Code(text) => self.line.push(bold(text.into_string())),
            Event::SoftBreak | Event::HardBreak => self.flush(),
            // Documents have comments for their readers, and nothing else of this kind.
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.is_title = true,
            Tag::Paragraph => {
                self.roff.control("PP", []);
            }
            Tag::Item => {
                self.roff.control("IP", ["\\(bu", "2"]);
            }
            Tag::CodeBlock(_) => {
                self.is_code = true;
                self.roff.control("PP", []);
                self.roff.control("RS", ["4"]);
                self.roff.control("nf", []);
            }
            Tag::TableRow => self.cells.clear(),
            Tag::Emphasis => self.is_emphasis = true,
            Tag::Strong => self.is_strong = true,
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                let title: String = self.line.drain(..).map(|part| plain(&part)).collect();
                self.is_title = false;
                match level as u8 {
                    1 => {}
                    2 => {
                        self.roff.control("SH", [title.to_uppercase().as_str()]);
                    }
                    _ => {
                        self.roff.control("SS", [title.as_str()]);
                    }
                }
            }
            TagEnd::Paragraph | TagEnd::Item => self.flush(),
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.roff.control("fi", []);
                self.roff.control("RE", []);
            }
            TagEnd::TableCell => self.cells.push(std::mem::take(&mut self.line)),
            TagEnd::TableHead => self.cells.clear(),
            TagEnd::TableRow => self.row(),
            TagEnd::Emphasis => self.is_emphasis = false,
            TagEnd::Strong => self.is_strong = false,
            _ => {}
        }
    }

    /// Writes what of a line there is.
    fn flush(&mut self) {
        if !self.line.is_empty() && !self.is_title {
            self.roff.text(std::mem::take(&mut self.line));
        }
    }

    /// Writes a row of a table: what it is about, and below it the rest.
    fn row(&mut self) {
        let mut cells = std::mem::take(&mut self.cells).into_iter();
        self.roff.control("TP", []);
        self.roff.text(cells.next().unwrap_or_default());
        let mut rest: Vec<Inline> = Vec::new();
        for cell in cells {
            if !rest.is_empty() {
                rest.push(roman("; "));
            }
            rest.extend(cell);
        }
        self.roff.text(rest);
    }
}

fn plain(part: &Inline) -> String {
    match part {
        Inline::Roman(text) | Inline::Italic(text) | Inline::Bold(text) => text.clone(),
        Inline::LineBreak => String::new(),
    }
}

#[test]
fn a_document_becomes_sections() {
    let text = "# T\n\nOne `a`,\nand *b*.\n\n## Two words\n\n- x\n\n```sh\n.ls\n```\n\n| k | v |\n|---|---|\n| `m` | n |\n";
    let page = sections(text).to_roff();
    for part in [
        ".PP\nOne \\fBa\\fR,\nand \\fIb\\fR.\n",
        ".SH \"TWO WORDS\"\n",
        ".IP \\(bu 2\nx\n",
        ".nf\n\\&.ls\n.fi\n",
        ".TP\n\\fBm\\fR\nn\n",
    ] {
        assert!(page.contains(part), "{part:?} is not in:\n{page}");
    }
}
