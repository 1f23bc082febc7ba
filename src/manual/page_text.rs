//! Markdown as the text of a manual page.

use roff::{Inline, Roff, bold, roman};

/// The date in the title of each page, that of the last change to their form. The date of the build
/// would differ between two builds of the same source.
pub const PAGE_DATE: &str = "2026-11-26";

/// The program and its version, in the footer of each page.
pub const PAGE_SOURCE: &str = concat!("metamcp ", env!("CARGO_PKG_VERSION"));

/// Returns the spans of a line of Markdown: code is bold, and a link is its text.
pub(super) fn spans(markdown: &str) -> Vec<Inline> {
    let mut spans = Vec::new();
    for (index, part) in without_links(markdown).split('`').enumerate() {
        if !part.is_empty() {
            spans.push(if index % 2 == 1 { bold(part) } else { roman(part) });
        }
    }
    spans
}

/// Returns `markdown` with each link replaced by its text.
pub(super) fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, target)) = rest.split_once("](") {
        let (before, words) = before.rsplit_once('[').unwrap_or((before, ""));
        text.push_str(before);
        text.push_str(words);
        rest = target.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

/// Adds the title line and the name of a page.
pub(super) fn begin(page: &mut Roff, name: &str, section: &str, about: &str) {
    page.control("TH", [name, section, PAGE_DATE, PAGE_SOURCE, "metamcp"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {about}"))]);
}

/// Adds a section, with its first paragraph in Markdown.
pub(super) fn section(page: &mut Roff, title: &str, markdown: &str) {
    page.control("SH", [title.to_uppercase().as_str()]);
    page.text(spans(markdown));
}

/// Adds a paragraph of Markdown.
pub(super) fn paragraph(page: &mut Roff, markdown: &str) {
    page.control("PP", []);
    page.text(spans(markdown));
}

/// Adds a term, and the lines that describe it.
pub(super) fn item(page: &mut Roff, term: &str, lines: &[String]) {
    page.control("TP", []);
    page.text([bold(term)]);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            page.control("br", []);
        }
        page.text(spans(line));
    }
}

/// Adds an example as it is written.
pub(super) fn example(page: &mut Roff, text: &str) {
    page.control("PP", []);
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_becomes_its_text_and_code_becomes_bold() {
        let expected = vec![roman("See logins, or set "), bold("auth"), roman(".")];
        assert_eq!(spans("See [logins](servers/remote.md#a), or set `auth`."), expected);
    }
}
