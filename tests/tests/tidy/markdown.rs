// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Documents: each can be found from an index, and what they link to and name is there.

use std::collections::HashMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::problem::Problem;
use crate::tree::Tree;

/// Records of what was: they may name files that are gone.
const HISTORY: [&str; 2] = ["docs/CHANGELOG.md", "docs/adr/"];

/// Folders whose files are named in documents by their path.
const NAMED: [&str; 7] = [
    "api/",
    "docs/",
    "driver/",
    "ibctl/",
    "ibmgrd/",
    "packaging/",
    "tests/",
];

/// What a document has.
#[derive(Debug, Default)]
struct Page {
    links: Vec<(usize, String)>,
    code_spans: Vec<(usize, String)>,
    anchors: Vec<String>,
}

/// Checks all documents.
pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    let documents = tree.files.iter().filter(|file| file.extension() == "md");
    let pages: HashMap<&str, Page> = documents
        .map(|file| (file.path.as_str(), read(file.text())))
        .collect();
    let mut paths: Vec<&str> = pages.keys().copied().collect();
    paths.sort_unstable();

    let mut problems = Vec::new();
    for path in &paths {
        let page = &pages[path];
        for (line, link) in &page.links {
            if let Some(what) = dead(path, link, tree, &pages) {
                problems.push(Problem::line(path, *line, what));
            }
        }
        if !HISTORY.iter().any(|place| path.starts_with(place)) {
            for (line, span) in &page.code_spans {
                if names_file(span) && !tree.has(span.trim_end_matches('/')) {
                    let what = format!("names `{span}`, which is not there");
                    problems.push(Problem::line(path, *line, what));
                }
            }
        }
    }
    for path in paths.iter().filter(|path| path.starts_with("docs/")) {
        let index = index_of(path);
        let links = index
            .iter()
            .filter_map(|index| Some((index, pages.get(index)?)));
        let linked = links
            .flat_map(|(index, page)| targets(index, page))
            .any(|to| to == **path);
        if !linked && !index.contains(path) {
            let what = format!(
                "is linked from nowhere: link it from {}",
                index.join(" or ")
            );
            problems.push(Problem::new(*path, what));
        }
    }
    problems
}

/// Returns the documents that a page must be linked from, one of them.
fn index_of(path: &str) -> &'static [&'static str] {
    match path {
        "docs/README.md" | "docs/adr/README.md" => &["README.md", "docs/README.md"],
        _ if path.starts_with("docs/adr/") => &["docs/adr/README.md"],
        _ => &["docs/README.md", "README.md"],
    }
}

fn targets<'a>(from: &'a str, page: &'a Page) -> impl Iterator<Item = String> + 'a {
    page.links
        .iter()
        .filter_map(move |(_, link)| resolve(from, link.split('#').next()?))
}

/// Says what is wrong with a link.
fn dead(from: &str, link: &str, tree: &Tree, pages: &HashMap<&str, Page>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link
        .split_once('#')
        .map_or((link, None), |(path, a)| (path, Some(a)));
    let to = if path.is_empty() {
        Some(from.to_owned())
    } else {
        resolve(from, path)
    };
    let Some(to) = to.filter(|to| tree.has(to)) else {
        return Some(format!("links to {link}, which is not there"));
    };
    let anchors = pages.get(to.as_str()).map_or(&[][..], |page| &page.anchors);
    match anchor {
        Some(anchor) if !anchors.iter().any(|known| known == anchor) => {
            Some(format!("links to {link}, but {to} has no such heading"))
        }
        _ => None,
    }
}

/// Resolves a relative link; `None` when it leaves the repo.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    (!link.starts_with('/')).then(|| parts.join("/"))
}

/// Says whether a code span is the path of a file or folder of the repo.
fn names_file(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    NAMED.iter().any(|folder| span.starts_with(folder)) && span.chars().all(plain)
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links
                    .push((line_at(range.start), dest_url.into_string()));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let again = page.anchors.iter().filter(|known| **known == slug).count();
                page.anchors.push(if again == 0 {
                    slug
                } else {
                    format!("{slug}-{again}")
                });
            }
            Event::Code(code) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&code);
                }
                page.code_spans
                    .push((line_at(range.start), code.into_string()));
            }
            Event::Text(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    page
}

/// Returns the anchor that hosts of Markdown give to a heading.
fn slug(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::assert_one;

    const ROOT: (&str, &str) = ("README.md", "[docs](docs/README.md)\n");
    const INDEX: (&str, &str) = ("docs/README.md", "# Index\n\n[a](a.md#one-two)\n");
    const PAGE: (&str, &str) = (
        "docs/a.md",
        "# One, two\n\n[up](../README.md), `docs/a.md`\n",
    );

    fn with(path: &str, text: &str) -> Vec<Problem> {
        check(&Tree::sample(&[ROOT, INDEX, PAGE, (path, text)]))
    }

    #[test]
    fn good_documents_pass() {
        assert_eq!(with("api/src/lib.rs", "[no](markdown.md)"), []);
        assert_eq!(
            with("api/README.md", "[x](https://example.org/x) `docs/`\n"),
            []
        );
    }

    #[test]
    fn dead_links_are_refused() {
        assert_one(
            &with("api/README.md", "\n[x](gone.md)\n"),
            "api/README.md:2",
        );
        assert_one(&with("api/README.md", "[x](../../out.md)\n"), "not there");
        assert_one(&with("api/README.md", "[x](/docs/a.md)\n"), "not there");
        assert_one(
            &with("api/README.md", "[x](../docs/a.md#three)\n"),
            "no such heading",
        );
        assert_one(&with("api/README.md", "![x](gone.svg)\n"), "not there");
    }

    #[test]
    fn dead_names_are_refused() {
        assert_one(
            &with("api/README.md", "See `docs/gone.md`.\n"),
            "names `docs/gone.md`",
        );
        assert_eq!(with("api/README.md", "See `docs/*.md`, `std/a`.\n"), []);
    }

    #[test]
    fn documents_that_nothing_links_are_refused() {
        assert_one(
            &with("docs/b.md", "# B\n"),
            "docs/b.md: is linked from nowhere",
        );
        let record = with("docs/adr/0001-x.md", "# X\n");
        assert_one(&record, "docs/adr/README.md");
    }

    #[test]
    fn anchors_are_those_of_the_usual_hosts() {
        assert_eq!(
            read("# A `b-c`: d_e!\n# A b\n# A b\n").anchors,
            ["a-b-c-d_e", "a-b", "a-b-1"]
        );
    }
}
