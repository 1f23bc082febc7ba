//! The preview of a result that is too large to be shown.
//!
//! It has the beginning and a little of the end of each text, and says how to get the rest. Images
//! and sounds stay, up to their own bound: clients do not show them as text. Others are described.
//!
//! Pure.

use serde_json::json;

use super::{
    definitions::MetaTool,
    result_document::{self, ContentBlock, DocumentOffset, DocumentPart, ResultDocument},
};
use crate::{
    config::defaults::{PREVIEW_BLOCKS_MAX, PREVIEW_MEDIA_BYTES_MAX},
    protocol::ObjectMembers,
    tool::{ToolId, text_block, tool_result::OriginalValue},
};

/// The key in `_meta` for the size of a result.
pub const META_KEY: &str = "metamcp/result";

/// The divisor of a text's room that gives the room of its end.
const TAIL_SHARE: usize = 8;

/// The divisor of the room that gives the maximum for all that is not text.
const SIDE_SHARE: usize = 4;

/// The maximum size of a block of another kind that is shown unchanged, in bytes. Links to
/// resources are smaller.
const SIDE_BYTES: usize = 1024;

/// The room for the text about the preview, in bytes. It takes about 600.
const WORDS_BYTES: usize = 1024;

/// The preview of a result that is too large to be shown.
#[derive(Clone, Debug)]
pub struct ResultPreview<'a> {
    /// The other members of the result.
    members: ObjectMembers<'a>,
    /// The blocks that are shown, as JSON text.
    blocks: Vec<String>,
    /// The error in the structured value, JSON text, unless it is large.
    error: Option<String>,
    document: ResultDocument,
    shown_bytes: usize,
    next: Option<DocumentOffset>,
}

impl<'a> ResultPreview<'a> {
    /// Returns the preview of `result`, JSON text, if the result is larger than `bytes_max`.
    pub fn of(result: &'a str, bytes_max: usize) -> Option<Self> {
        if result.len() <= bytes_max {
            return None;
        }
        let mut members = ObjectMembers::read(result).unwrap_or_default();
        let content = members.take("content");
        let structured = members.take("structuredContent").filter(|value| value != "null");
        let blocks = content.as_deref().and_then(ContentBlock::all);
        let media_bytes = |block: &ContentBlock<'_>| match block {
            ContentBlock::Media(json) => json.len(),
            ContentBlock::Text(_) | ContentBlock::Other(_) => 0,
        };
        let media: usize = blocks.iter().flatten().map(media_bytes).sum();
        let is_media_kept = media <= PREVIEW_MEDIA_BYTES_MAX;
        if is_media_kept && result.len() - media <= bytes_max {
            return None;
        }
        // A large result without any blocks is shown as text.
        let is_malformed = blocks.is_none() && structured.is_none();
        let blocks = blocks.unwrap_or_else(|| match is_malformed {
            true => vec![ContentBlock::Text(result.to_owned())],
            false => Vec::new(),
        });
        let side_max = bytes_max / SIDE_SHARE;
        let is_left_out = |value: &str| is_malformed || value.len() > side_max;
        let left_out = members.iter().filter(|(_, value)| is_left_out(value));
        let left_out: Vec<String> = left_out.map(|(name, _)| name.to_owned()).collect();
        for name in &left_out {
            members.take(name);
        }
        let error = structured.as_deref().and_then(|value| ObjectMembers::one(value, "error"));
        let error = error.filter(|error| error.len() <= side_max).map(str::to_owned);
        let mut builder = PreviewBuilder::new(bytes_max, is_media_kept);
        let n_other = members.to_string().len() + error.as_ref().map_or(0, String::len);
        builder.room = builder.room.saturating_sub(n_other);
        let not_in_text = structured.filter(|value| {
            let value = OriginalValue::read(value);
            !blocks.iter().any(|block| match (block, &value) {
                (ContentBlock::Text(text), Some(value)) => value.equals_text(text),
                _ => false,
            })
        });
        for block in blocks {
            builder.add(block);
        }
        if let Some(value) = not_in_text {
            builder.add(ContentBlock::Text(value.into_owned()));
        }
        Some(Self { error, ..builder.finish(members) })
    }

    /// Returns the document of the result, for reading on.
    pub fn document(&self) -> &ResultDocument {
        &self.document
    }

    /// Returns the position from which to read on.
    pub fn next(&self) -> Option<DocumentOffset> {
        self.next
    }

    /// Returns the preview as a result, JSON text, for a call of the tool `id` by `op`. `cursor`
    /// leads to the rest, if that is kept.
    pub fn to_result(&self, id: &ToolId, op: MetaTool, cursor: Option<&str>) -> String {
        let error = self.error.as_deref().filter(|_| op.runs_code());
        let mut blocks = self.blocks.clone();
        // The text of an error comes first.
        let note_at = blocks.len().min(usize::from(error.is_some()));
        blocks.insert(note_at, text_block(&self.note(id, op, cursor)));
        let size = size(self.document.bytes(), self.shown_bytes, cursor);
        let mut members = self.members.clone();
        members.set("content", format!("[{}]", blocks.join(",")));
        members.set_in_object("_meta", META_KEY, &size);
        // The definitions of these tools promise a structured value.
        if op.promises_value() {
            let mut structured = ObjectMembers::default();
            structured.set("preview", size);
            if let Some(error) = error {
                structured.set("error", error);
            }
            members.set("structuredContent", structured.to_string());
        }
        members.to_string()
    }

    fn note(&self, id: &ToolId, op: MetaTool, cursor: Option<&str>) -> String {
        let (bytes, shown) = (self.document.bytes(), self.shown_bytes);
        let mut note = format!("This is a preview: {shown} of {bytes} bytes of the result.");
        match cursor {
            Some(cursor) => note.push_str(&read_on(id, op, cursor)),
            None => note.push_str(" The rest is too large to keep: request less from the tool."),
        }
        if op == MetaTool::Call {
            note.push_str(" To get only parts of a JSON result, call again with `fields`.");
        }
        note
    }
}

/// Returns the instructions for reading on.
pub(super) fn read_on(id: &ToolId, op: MetaTool, cursor: &str) -> String {
    let name = op.name();
    let tool = match op {
        MetaTool::Execute => r#""code": """#.to_owned(),
        MetaTool::ExecuteCode => r#""language": "javascript", "code": """#.to_owned(),
        MetaTool::Call => {
            format!(r#""server": {}, "tool": {}"#, json!(id.server), json!(id.tool))
        }
        _ => format!(r#""tool_id": {}"#, json!(id.to_string())),
    };
    format!(
        r#" To read on without another call of the tool, call {name} with {{{tool}, "cursor": "{cursor}"}}."#
    )
}

/// Returns the size of a result, as JSON text for its `_meta`.
pub(super) fn size(bytes: usize, shown_bytes: usize, cursor: Option<&str>) -> String {
    let mut size = json!({ "bytes": bytes, "shownBytes": shown_bytes });
    if let Some(cursor) = cursor {
        size["nextCursor"] = cursor.into();
    }
    size.to_string()
}

/// A preview that is being built.
struct PreviewBuilder {
    /// The room left for texts, in bytes.
    room: usize,
    /// The room left for small blocks of other kinds, in bytes, which are shown unchanged.
    side_room: usize,
    is_media_kept: bool,
    document: ResultDocument,
    shown: Vec<ShownBlock>,
    shown_bytes: usize,
}

/// A block of a preview.
enum ShownBlock {
    /// A block that is shown unchanged, as JSON text.
    Whole(String),
    /// A text that is cut to its share of the room.
    Text(DocumentPart),
}

impl PreviewBuilder {
    fn new(bytes_max: usize, is_media_kept: bool) -> Self {
        Self {
            room: bytes_max.saturating_sub(WORDS_BYTES).max(bytes_max / 2),
            side_room: bytes_max / SIDE_SHARE,
            is_media_kept,
            document: ResultDocument::default(),
            shown: Vec::new(),
            shown_bytes: 0,
        }
    }

    fn add(&mut self, block: ContentBlock<'_>) {
        let has_room = self.shown.len() < PREVIEW_BLOCKS_MAX;
        match block {
            ContentBlock::Text(text) => {
                let part = self.document.add_text(&text);
                if has_room {
                    self.shown.push(ShownBlock::Text(part));
                }
            }
            ContentBlock::Media(json) if self.is_media_kept => {
                self.shown_bytes += json.len();
                self.shown.push(ShownBlock::Whole(json.to_owned()));
            }
            ContentBlock::Other(json)
                if json.len() <= SIDE_BYTES.min(self.side_room) && has_room =>
            {
                self.side_room -= json.len();
                self.room = self.room.saturating_sub(json.len());
                self.shown_bytes += json.len();
                self.shown.push(ShownBlock::Whole(json.to_owned()));
            }
            ContentBlock::Media(json) | ContentBlock::Other(json) => {
                self.document.add_other(json);
                if has_room {
                    let block = text_block(&result_document::description(json));
                    self.room = self.room.saturating_sub(block.len());
                    self.shown.push(ShownBlock::Whole(block));
                }
            }
        }
    }

    /// Returns the room of each text: short texts get what they need, the others equal shares.
    fn shares(&self) -> Vec<usize> {
        let mut needs: Vec<(usize, usize)> = Vec::new();
        for (number, shown) in self.shown.iter().enumerate() {
            if let ShownBlock::Text(part) = shown {
                let text = &self.document.text()[part.start..part.end];
                needs.push((result_document::json_bytes(text), number));
            }
        }
        needs.sort_unstable();
        let (mut room, mut n_left) = (self.room, needs.len());
        let mut shares = vec![0; self.shown.len()];
        for (need, number) in needs {
            let share = need.min(room / n_left);
            shares[number] = share;
            room -= share;
            n_left -= 1;
        }
        shares
    }

    fn finish(mut self, members: ObjectMembers<'_>) -> ResultPreview<'_> {
        let shares = self.shares();
        let (mut blocks, mut next) = (Vec::new(), None);
        let mut end_of_shown = 0;
        for (shown, share) in self.shown.iter().zip(shares) {
            let part = match shown {
                ShownBlock::Text(part) => part,
                ShownBlock::Whole(json) => {
                    blocks.push(json.clone());
                    continue;
                }
            };
            end_of_shown = part.end;
            let text = &self.document.text()[part.start..part.end];
            if result_document::json_bytes(text) <= share {
                self.shown_bytes += text.len();
                blocks.push(text_block(text));
                continue;
            }
            let tail = result_document::tail(text, share / TAIL_SHARE);
            let head =
                result_document::head(&text[..text.len() - tail.len()], share - share / TAIL_SHARE);
            let left_out = text.len() - head.len() - tail.len();
            next = next.or(Some(part.start + head.len()));
            self.shown_bytes += head.len() + tail.len();
            let shown = format!("{head}\n[… {left_out} bytes left out …]\n{tail}");
            blocks.push(text_block(&shown));
        }
        let is_more = end_of_shown < self.document.text().len();
        let next =
            next.or(is_more.then_some(end_of_shown)).or_else(|| self.document.first_non_text());
        let Self { document, shown_bytes, .. } = self;
        ResultPreview { members, blocks, error: None, document, shown_bytes, next }
    }
}

#[cfg(test)]
mod tests;
