//! The fuzz targets for messages and their framing.

use bytes::Bytes;
use metamcp::{
    config::defaults::BATCH_MESSAGES_MAX,
    control,
    protocol::{
        Batch, Message, MessageKind,
        client_meta::ClientMeta,
        jsonrpc::MessagePart,
        list_page::{ListKind, ListPage},
        ndjson::{LineDecoder, NdjsonLine},
        payloads::ServerProfile,
        sse::{SseDecoder, SseItem},
    },
};
use serde_json::value::RawValue;

/// The message parts that metamcp reads and rewrites.
const PARTS: [MessagePart; 14] = [
    MessagePart::Id,
    MessagePart::ProgressToken,
    MessagePart::CancelledId,
    MessagePart::Name,
    MessagePart::Uri,
    MessagePart::Cursor,
    MessagePart::ProtocolVersion,
    MessagePart::Capabilities,
    MessagePart::Level,
    MessagePart::Progress,
    MessagePart::Result,
    MessagePart::Error,
    MessagePart::Meta,
    MessagePart::Reference,
];

/// Checks bodies and lines: any input is a message, a batch or an error.
pub(super) fn envelope(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(message) = Message::parse(bytes.clone()) {
        check(&message, data);
    }
    if Batch::is_batch(&bytes)
        && let Ok(batch) = Batch::parse(&bytes, BATCH_MESSAGES_MAX)
    {
        let mut n_members = 0;
        for message in batch.into_members().flatten() {
            n_members += 1;
            check(&message, message.bytes());
        }
        assert!(n_members <= BATCH_MESSAGES_MAX);
    }
    if let Ok(text) = str::from_utf8(data) {
        ServerProfile::read(text).ok();
        ServerProfile::discovered(text).ok();
        for list in
            [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates]
        {
            check_page(list, text);
        }
    }
}

/// Checks that a message keeps its bytes, and that each part is JSON and replaceable.
fn check(message: &Message, data: &[u8]) {
    assert_eq!(message.bytes(), data);
    for part in PARTS {
        let Some(text) = message.part(part) else { continue };
        serde_json::from_str::<&RawValue>(text).expect("a part is JSON");
        message.string(part);
        message.integer(part);
        assert_eq!(
            message.edit([(part, text)]),
            data,
            "an edit with the same text changes nothing"
        );
        if part == MessagePart::Id {
            let other = message.with(part, "\"another\"");
            let again = Message::parse(other.bytes().clone()).expect("it is still a message");
            assert_eq!(again.part(part), Some("\"another\""));
            assert_eq!(again.kind(), message.kind());
        }
    }
    assert_eq!(message.kind() == MessageKind::Response, message.method().is_none());
    ClientMeta::read(message).ok();
}

/// Checks that items are JSON and unique, and that rejected ones can be removed.
fn check_page(list: ListKind, result: &str) {
    let Ok(page) = ListPage::read(list, result) else { return };
    for item in &page.items {
        serde_json::from_str::<&RawValue>(item.json()).expect("an item is JSON");
        let renamed = item.renamed("another");
        serde_json::from_slice::<&RawValue>(&renamed).expect("a renamed item is JSON");
    }
    if let Some(rest) = page.without_rejected(list, result, |_| false) {
        let rest = ListPage::read(list, &rest).expect("it is still a list");
        assert_eq!((rest.items.len(), rest.rejected.len()), (page.items.len(), 0));
    }
}

/// Checks that lines and events are the same for any division of the bytes into chunks.
pub(super) fn framing(data: &[u8]) {
    let Some((sizes, data)) = data.split_first_chunk::<2>() else { return };
    let piece = usize::from(sizes[0]) + 1;
    // A limit that none of the data exceeds.
    let (whole, in_pieces) = (data.len() + 1, data.len().min(piece).max(1));
    assert_eq!(lines(data, whole, whole), lines(data, in_pieces, whole));
    assert_eq!(events(data, whole, whole), events(data, in_pieces, whole));
    // A limit that much of the data exceeds.
    let length_max = usize::from(sizes[1]);
    for line in lines(data, in_pieces, length_max) {
        match line {
            NdjsonLine::Whole(line) => assert!(!line.is_empty() && line.len() <= length_max),
            NdjsonLine::Oversized(oversized) => {
                oversized.response_id();
                assert!(oversized.length >= length_max);
            }
        }
    }
    for item in events(data, in_pieces, length_max) {
        match item {
            SseItem::Event(event) => assert!(event.data.len() <= length_max),
            SseItem::Oversized(oversized) => assert!(oversized.length >= length_max),
        }
    }
}

fn lines(data: &[u8], piece: usize, length_max: usize) -> Vec<NdjsonLine> {
    let mut lines = LineDecoder::new(length_max);
    let mut found = Vec::new();
    for piece in data.chunks(piece) {
        lines.buffer().extend_from_slice(piece);
        found.extend(std::iter::from_fn(|| lines.next_line()));
    }
    found.extend(lines.last_line());
    found
}

fn events(data: &[u8], piece: usize, length_max: usize) -> Vec<SseItem> {
    let mut events = SseDecoder::new(length_max);
    let mut found = Vec::new();
    for piece in data.chunks(piece) {
        events.push(Bytes::copy_from_slice(piece));
        found.extend(std::iter::from_fn(|| events.next_item()));
    }
    events.restart();
    found
}

/// Checks that the parameters of an operator's line are parsed, or refused with a short text.
pub(super) fn control(data: &[u8]) {
    let Ok(message) = Message::parse(Bytes::copy_from_slice(data)) else { return };
    let method = message.method().unwrap_or_default();
    let params = str::from_utf8(message.bytes())
        .ok()
        .and_then(|text| metamcp::protocol::ObjectMembers::one(text, "params"));
    if let Some(Err(error)) = control::read_params(method, params) {
        assert!(!error.is_empty() && error.len() < 4096, "{error}");
    }
}
