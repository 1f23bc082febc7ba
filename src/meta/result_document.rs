//! A result as a model reads it: its texts in order, and its other blocks.
//!
//! Large results are kept in this form, and read page by page. Pure.

use crate::{
    protocol::{
        ObjectMembers,
        json_array::{RESULT_BLOCKS_MAX, all_items},
    },
    redact,
    tool::text_block,
};

/// The maximum length of a word of a description, in bytes. Most addresses are shorter.
const WORD_BYTES_MAX: usize = 200;

/// A position in a document: a byte of its text, and after the text the number of another block.
pub type DocumentOffset = usize;

/// The range of one text in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DocumentPart {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A result as a model reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultDocument {
    text: String,
    /// The blocks of the result that are not text.
    others: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentPage {
    /// Its blocks, as JSON text.
    pub(super) blocks: Vec<String>,
    /// The size of the page, in bytes.
    pub(super) shown_bytes: usize,
    /// The position of the next page.
    pub(super) next: Option<DocumentOffset>,
}

impl ResultDocument {
    /// Adds a text, on a line of its own.
    pub(super) fn add_text(&mut self, text: &str) -> DocumentPart {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let start = self.text.len();
        self.text.push_str(text);
        DocumentPart { start, end: self.text.len() }
    }

    /// Adds a block that is not text.
    pub(super) fn add_other(&mut self, block: &str) {
        self.others.push(block.to_owned());
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the position of the first block that is not text.
    pub(super) fn first_non_text(&self) -> Option<DocumentOffset> {
        (!self.others.is_empty()).then_some(self.text.len())
    }

    /// Returns its size, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.others.iter().map(String::len).sum::<usize>()
    }

    /// Returns the page at `offset`: text of up to `bytes_max` bytes of JSON text, or one block.
    /// `None` if nothing begins there.
    pub(super) fn page(&self, offset: DocumentOffset, bytes_max: usize) -> Option<DocumentPage> {
        if offset < self.text.len() {
            let rest = self.text.get(offset..)?;
            let shown = head(rest, bytes_max);
            let end = offset + shown.len();
            let next = (end < self.text.len()).then_some(end).or_else(|| self.first_non_text());
            return Some(DocumentPage {
                blocks: vec![text_block(shown)],
                shown_bytes: shown.len(),
                next,
            });
        }
        let number = offset - self.text.len();
        let block = self.others.get(number)?;
        let next = (number + 1 < self.others.len()).then_some(offset + 1);
        Some(DocumentPage { blocks: vec![block.clone()], shown_bytes: block.len(), next })
    }
}

/// A block of a result.
pub(super) enum ContentBlock<'a> {
    /// A text.
    Text(String),
    /// An image or a sound, which clients show as such.
    Media(&'a str),
    /// Anything else, as JSON text.
    Other(&'a str),
}

impl<'a> ContentBlock<'a> {
    /// Reads the JSON text of a block.
    fn read(json: &'a str) -> Self {
        let Some(members) = ObjectMembers::read(json) else { return Self::Other(json) };
        let text = match members.string("type").as_deref() {
            Some("image" | "audio") => return Self::Media(json),
            Some("text") => members.string("text"),
            Some("resource") => {
                let resource = members.get("resource").and_then(ObjectMembers::read);
                resource.and_then(|resource| {
                    let uri = resource.string("uri").unwrap_or_default();
                    Some(format!("{uri}:\n{}", resource.string("text")?))
                })
            }
            _ => None,
        };
        text.map_or(Self::Other(json), Self::Text)
    }

    /// Reads the blocks of a result's `content`, if it is an array of up to [`RESULT_BLOCKS_MAX`].
    pub(super) fn all(content: &'a str) -> Option<Vec<Self>> {
        let blocks = all_items(content, RESULT_BLOCKS_MAX)?;
        Some(blocks.into_iter().map(|block| Self::read(block.get())).collect())
    }
}

/// Returns a short description of a block that is left out.
pub(super) fn description(block: &str) -> String {
    let members = ObjectMembers::read(block).unwrap_or_default();
    let kind = members.string("type").unwrap_or_else(|| "block".to_owned());
    let inner = members.get("resource").and_then(ObjectMembers::read).unwrap_or_default();
    let mime = members.string("mimeType").or_else(|| inner.string("mimeType"));
    let uri = members.string("uri").or_else(|| inner.string("uri"));
    let data = members.get("data").or_else(|| inner.get("blob"));
    // Four characters of base64 are three bytes, and there are two quotation marks.
    let bytes = data.map_or(block.len(), |data| data.len().saturating_sub(2) / 4 * 3);
    let words = [Some(kind), mime, uri].into_iter().flatten();
    let words: Vec<String> = words
        .map(|word| redact::sanitize(redact::cut(&word, WORD_BYTES_MAX)).into_owned())
        .collect();
    format!("[{}: {bytes} bytes, left out]", words.join(" "))
}

/// Returns the beginning of `text`, up to `bytes_max` bytes of JSON text, but at least one
/// character. It ends with a whole line, unless that loses more than half of it.
pub(super) fn head(text: &str, bytes_max: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find_map(|(at, found)| {
        taken += json_length(found);
        (taken > bytes_max && at > 0).then_some(at)
    });
    let Some(end) = end else { return text };
    match text[..end].rfind('\n') {
        Some(line) if line + 1 >= end / 2 => &text[..=line],
        _ => &text[..end],
    }
}

/// Returns the end of `text` in the same way as [`head`]; it may be empty.
pub(super) fn tail(text: &str, bytes_max: usize) -> &str {
    let mut taken = 0;
    let start = text.char_indices().rev().find_map(|(at, found)| {
        taken += json_length(found);
        (taken > bytes_max).then_some(at + found.len_utf8())
    });
    let Some(start) = start else { return text };
    let rest = &text[start..];
    match rest.find('\n') {
        Some(line) if line < rest.len() / 2 => &rest[line + 1..],
        _ => rest,
    }
}

/// Returns the size of a text as JSON text, in bytes, without its quotation marks.
pub(super) fn json_bytes(text: &str) -> usize {
    text.chars().map(json_length).sum()
}

fn json_length(found: char) -> usize {
    match found {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_text_is_cut_between_lines_unless_that_loses_too_much() {
        assert_eq!(head("one\ntwo\nthree", 100), "one\ntwo\nthree");
        assert_eq!(head("one\ntwo\nthree", 11), "one\ntwo\n");
        assert_eq!(head("a\nbbbbbbbbbbbbb", 10), "a\nbbbbbbb");
        assert_eq!(head("ää", 3), "ä");
        assert_eq!(head("ää", 0), "ä");
        assert_eq!(tail("one\ntwo\nthree", 9), "three");
        assert_eq!(tail("one\ntwo\nthree", 2), "ee");
        assert_eq!(tail("ää", 3), "ä");
        assert_eq!(tail("ää", 0), "");
    }

    #[test]
    fn a_block_that_is_left_out_is_described() {
        for (block, expected) in [
            (
                r#"{"type":"image","data":"AAAAAAAA","mimeType":"image/png"}"#,
                "[image image/png: 6 bytes, left out]",
            ),
            (
                r#"{"type":"resource","resource":{"uri":"a:b","blob":"AAAA"}}"#,
                "[resource a:b: 3 bytes, left out]",
            ),
            ("7", "[block: 1 bytes, left out]"),
        ] {
            assert_eq!(description(block), expected);
        }
    }

    proptest! {
        #[test]
        fn the_pages_of_a_document_contain_all_of_it(
            texts in prop::collection::vec("[a\n\"ä\\\\]{0,40}", 0..5),
            n_others in 0..3usize, bytes_max in 1..30usize,
        ) {
            let mut document = ResultDocument::default();
            for text in &texts {
                document.add_text(text);
            }
            let others: Vec<String> = (0..n_others).map(|n| n.to_string()).collect();
            others.iter().for_each(|other| document.add_other(other));
            let (mut text, mut blocks, mut shown) = (String::new(), Vec::new(), 0);
            let mut next = (document.bytes() > 0).then_some(0);
            while let Some(offset) = next {
                let page = document.page(offset, bytes_max).expect("it was given out");
                shown += page.shown_bytes;
                for block in page.blocks {
                    match ContentBlock::read(&block) {
                        ContentBlock::Text(part) => {
                            let one = part.chars().count() == 1;
                            prop_assert!(json_bytes(&part) <= bytes_max || one);
                            text.push_str(&part);
                        }
                        ContentBlock::Media(other) | ContentBlock::Other(other) => blocks.push(other.to_owned()),
                    }
                }
                next = page.next;
            }
            prop_assert_eq!(&text, document.text());
            prop_assert_eq!(blocks, others);
            prop_assert_eq!(shown, document.bytes());
        }

        #[test]
        fn a_head_and_a_tail_are_parts_of_the_text(text in ".{0,60}", bytes_max in 0..40usize) {
            prop_assert!(text.starts_with(head(&text, bytes_max)));
            prop_assert!(text.ends_with(tail(&text, bytes_max)));
            prop_assert!(json_bytes(tail(&text, bytes_max)) <= bytes_max);
            prop_assert_eq!(json_bytes(&text) + 2, Value::from(text).to_string().len());
        }
    }
}
