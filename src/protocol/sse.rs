//! Server-sent events: an encoder for answers to clients, a parser for those of upstreams.

use std::{iter, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};

pub use super::ndjson::on_one_line;
use super::{ByteChunks, byte_chunks::COPIED_MAX, ndjson::OversizedLine};

/// A comment that keeps an idle stream alive; every parser ignores it.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The chunk size, in bytes, above which a chunk of an event contains only data. Smaller chunks may
/// hold copied data together with an id.
pub const DATA_BYTES_MIN: usize = COPIED_MAX + (1 << 10);

/// Encodes a JSON message as an event, without copying a large one. Chunks of more than
/// [`DATA_BYTES_MIN`] bytes may contain line breaks, which would end the data: see [`on_one_line`].
pub fn encode_pieces(message: ByteChunks) -> ByteChunks {
    encode_event(None, message)
}

/// Works like [`encode_pieces`], for an event with an id.
pub fn encode_pieces_with_id(id: &str, message: ByteChunks) -> ByteChunks {
    encode_event(Some(id), message)
}

fn encode_event(id: Option<&str>, message: ByteChunks) -> ByteChunks {
    let large = match message {
        ByteChunks::One(message) if message.len() <= COPIED_MAX => {
            return ByteChunks::One(encode_copied(id, &message));
        }
        large => large,
    };
    let head = match id {
        None => Bytes::from_static(b"event: message\ndata: "),
        Some(id) => format!("id: {id}\nevent: message\ndata: ").into(),
    };
    let tame = |piece: Bytes| if piece.len() > DATA_BYTES_MIN { piece } else { on_one_line(piece) };
    let end = Bytes::from_static(b"\n\n");
    let data = large.into_iter().map(tame);
    ByteChunks::Many(iter::once(head).chain(data).chain(iter::once(end)).collect())
}

/// Encodes an event without data. It gives the client the start of the stream, and the delay before
/// it may resume the stream.
pub fn encode_priming(id: &str, retry: Option<Duration>) -> Bytes {
    match retry {
        Some(retry) => format!("id: {id}\nretry: {}\ndata:\n\n", retry.as_millis()).into(),
        None => format!("id: {id}\ndata:\n\n").into(),
    }
}

/// Encodes the URI to which a client must post its messages; it has no line break. Source: MCP
/// 2024-11-05, "HTTP with SSE".
pub fn encode_endpoint(uri: &str) -> Bytes {
    format!("event: endpoint\ndata: {uri}\n\n").into()
}

/// Encodes a JSON message as an event in one chunk. An id has no line break.
fn encode_copied(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 64);
    if let Some(id) = id {
        frame.extend_from_slice(b"id: ");
        frame.extend_from_slice(id.as_bytes());
        frame.extend_from_slice(b"\n");
    }
    frame.extend_from_slice(b"event: message\n");
    frame.extend_from_slice(b"data: ");
    let start = frame.len();
    frame.extend_from_slice(message);
    // A line break would end the data; in JSON it can only be white space between values.
    for at in memchr::memchr2_iter(b'\n', b'\r', message) {
        frame[start + at] = b' ';
    }
    frame.extend_from_slice(b"\n\n");
    frame.freeze()
}

/// The byte order mark that may precede a stream and has no meaning.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The longest event id that is stored, in bytes: it is sent back in a header.
const ID_BYTES_MAX: usize = 1024;

/// A decoder that splits a byte stream into events.
///
/// An event within one chunk is a slice of it, without a copy. Source: WHATWG HTML, "Server-sent
/// events".
#[derive(Debug)]
pub struct SseDecoder {
    /// The bytes that were pushed but not parsed yet.
    chunk: Bytes,
    /// The start of a line that continues in `chunk`.
    line: BytesMut,
    /// `true` if the start of the current line was discarded.
    is_cut: bool,
    /// `true` if the last line ended with a carriage return, to which a line feed may belong.
    is_after_return: bool,
    has_begun: bool,
    data: Option<Bytes>,
    /// The data so far, once it has several lines.
    joined: BytesMut,
    kind: Bytes,
    /// The value of the latest `id` field, which takes effect at the end of its event.
    id: Vec<u8>,
    last_id: Vec<u8>,
    retry: Option<Duration>,
    length_max: usize,
    skipping: Option<OversizedLine>,
}

/// An item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum SseItem {
    /// An event within the limit.
    Event(SseEvent),
    /// An event over the limit, of which only the two ends were kept.
    Oversized(OversizedLine),
}

/// An event with data, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The data lines, joined by line feeds.
    pub data: Bytes,
    /// The event type, empty if the stream does not name one.
    pub kind: Bytes,
}

impl SseEvent {
    /// Returns whether the event carries a message: its type is `message` or absent.
    pub fn is_message(&self) -> bool {
        self.kind.is_empty() || self.kind == "message"
    }
}

impl SseDecoder {
    /// Returns a decoder that skips events with more than `length_max` bytes of data.
    pub fn new(length_max: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            line: BytesMut::new(),
            is_cut: false,
            is_after_return: false,
            has_begun: false,
            data: None,
            joined: BytesMut::new(),
            kind: Bytes::new(),
            id: Vec::new(),
            last_id: Vec::new(),
            retry: None,
            length_max,
            skipping: None,
        }
    }

    /// Prepares for a stream that continues the last one. Keeps the id and the delay, and discards
    /// an incomplete event.
    pub fn restart(&mut self) {
        let (last_id, retry) = (std::mem::take(&mut self.last_id), self.retry);
        *self = Self { id: last_id.clone(), last_id, retry, ..Self::new(self.length_max) };
    }

    /// Returns the id of the last complete event, with data or without. It is empty if there is
    /// none to resume from.
    pub fn last_id(&self) -> &[u8] {
        &self.last_id
    }

    /// Returns the delay that the server requests before the stream is reopened.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the length so far of an oversized event that is being skipped.
    pub fn skipped(&self) -> Option<usize> {
        self.skipping.as_ref().map(|oversized| oversized.length)
    }

    /// Returns the number of buffered bytes of the current event.
    pub fn n_kept(&self) -> usize {
        self.length() + self.line.len() + self.chunk.len()
    }

    /// Discards the incomplete event, including the part that is still to come. The event is later
    /// returned as [`SseItem::Oversized`].
    pub fn discard(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.is_cut |= !line.is_empty();
        self.skip(&line);
    }

    /// Appends bytes of the stream.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            self.chunk = [&self.chunk[..], &chunk].concat().into();
        }
    }

    /// Returns the next complete event, or `None` if more bytes are needed.
    pub fn next_item(&mut self) -> Option<SseItem> {
        loop {
            if self.is_after_return && !self.chunk.is_empty() {
                self.is_after_return = false;
                if self.chunk[0] == b'\n' {
                    self.chunk.advance(1);
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', &self.chunk) else {
                self.keep_rest();
                return None;
            };
            let mut line = self.chunk.split_to(end);
            self.is_after_return = self.chunk.get_u8() == b'\r';
            if !self.line.is_empty() {
                self.line.extend_from_slice(&line);
                // Not split off: the remaining capacity would keep the whole buffer allocated.
                line = std::mem::take(&mut self.line).freeze();
            }
            if !std::mem::replace(&mut self.has_begun, true) && line.starts_with(BYTE_ORDER_MARK) {
                line.advance(BYTE_ORDER_MARK.len());
            }
            if std::mem::take(&mut self.is_cut) {
                self.skip(&line);
            } else if !line.is_empty() {
                self.field(line);
            } else if let Some(item) = self.dispatch() {
                return Some(item);
            }
        }
    }

    /// Keeps the rest of the chunk, the start of a line, if it fits the limit.
    fn keep_rest(&mut self) {
        let rest = std::mem::take(&mut self.chunk);
        let is_too_long = self.length() + self.line.len() + rest.len() > self.length_max;
        if !rest.is_empty() && (is_too_long || self.skipping.is_some()) {
            let line = std::mem::take(&mut self.line);
            self.skip(&line);
            self.skip(&rest);
            self.is_cut = true;
        } else {
            self.line.extend_from_slice(&rest);
        }
    }

    /// Returns the length of the data so far.
    fn length(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len) + self.joined.len()
    }

    /// Returns the length of the data with `line` added.
    fn length_with(&self, line: &[u8]) -> usize {
        let is_joined = self.data.is_some() || !self.joined.is_empty();
        self.length() + usize::from(is_joined) + line.len()
    }

    /// Discards `bytes` of an oversized event and the data before them.
    fn skip(&mut self, bytes: &[u8]) {
        let oversized = self.skipping.get_or_insert_default();
        oversized.extend(&self.data.take().unwrap_or_default());
        oversized.extend(&std::mem::take(&mut self.joined));
        oversized.extend(bytes);
    }

    fn field(&mut self, line: Bytes) {
        let colon = memchr::memchr(b':', &line);
        let mut value = line.slice(colon.map_or(line.len(), |colon| colon + 1)..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match &line[..colon.unwrap_or(line.len())] {
            b"data" if self.skipping.is_some() || self.length_with(&value) > self.length_max => {
                self.skip(&value);
            }
            b"data" => self.add_data(value),
            b"event" => self.kind = value,
            // An id that cannot be sent back counts as none.
            b"id" if value.len() > ID_BYTES_MAX => self.id.clear(),
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(&value);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(&value).unwrap_or_default();
                self.retry = Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }

    fn add_data(&mut self, value: Bytes) {
        if self.data.is_none() && self.joined.is_empty() {
            self.data = Some(value);
            return;
        }
        self.joined.extend_from_slice(&self.data.take().unwrap_or_default());
        self.joined.extend_from_slice(b"\n");
        self.joined.extend_from_slice(&value);
    }

    /// Ends an event. An event without data sets the id and is not returned.
    fn dispatch(&mut self) -> Option<SseItem> {
        self.last_id.clone_from(&self.id);
        let kind = std::mem::take(&mut self.kind);
        if let Some(oversized) = self.skipping.take() {
            return Some(SseItem::Oversized(oversized));
        }
        let data = match self.data.take() {
            Some(data) => data,
            None if self.joined.is_empty() => return None,
            None => std::mem::take(&mut self.joined).freeze(),
        };
        Some(SseItem::Event(SseEvent { data, kind }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the data of every event, and the decoder after the last one.
    fn read(chunks: &[&[u8]]) -> (Vec<String>, SseDecoder) {
        let mut events = SseDecoder::new(1000);
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(Bytes::copy_from_slice(chunk));
            while let Some(SseItem::Event(event)) = events.next_item() {
                out.push(String::from_utf8(event.data.into()).expect("UTF-8"));
            }
        }
        (out, events)
    }

    fn event(data: &'static str, kind: &'static str) -> Option<SseItem> {
        Some(SseItem::Event(SseEvent { data: data.into(), kind: kind.into() }))
    }

    #[test]
    fn a_discarded_event_is_reported_as_oversized_at_its_end() {
        let read_on = |first: &'static str, rest: &'static str| {
            let mut events = SseDecoder::new(1000);
            events.push(first.into());
            assert_eq!(events.next_item(), None);
            assert!(events.n_kept() > 0);
            events.discard();
            assert_eq!(events.n_kept(), 0);
            events.push(rest.into());
            let Some(SseItem::Oversized(discarded)) = events.next_item() else {
                panic!("it is told")
            };
            assert_eq!(events.next_item(), event("ok", ""));
            discarded.response_id()
        };
        assert_eq!(read_on("data: {\"id\":7,\"res", "ult\":{}}\n\ndata: ok\n\n"), Some(7));
        assert_eq!(read_on("data: {\"id\":7,\n", "data: \"result\":{}}\n\ndata: ok\n\n"), Some(7));
        assert_eq!(read_on("data: {\"result\":{},\"id\":7}\n", "\ndata: ok\n\n"), Some(7));
    }

    #[test]
    fn comments_and_unknown_fields_are_ignored() {
        let (out, _) = read(&[b": hi\n\nfoo: 1\ndata:\n\nevent: x\n\nbar\ndata: a\ndata:b\n\n"]);
        assert_eq!(out, ["", "a\nb"]);
    }

    #[test]
    fn an_event_in_chunks_has_the_bytes_of_a_copied_one() {
        for length in [1, COPIED_MAX / 2, COPIED_MAX, 2 * COPIED_MAX] {
            let message = Bytes::from("x\n".repeat(length));
            let many = ByteChunks::Many(vec![message.slice(..1), message.slice(1..)]);
            for pieces in [ByteChunks::One(message.clone()), many] {
                // The bytes as written to a stream.
                let written = |pieces: ByteChunks| {
                    let tame = |piece: Bytes| match piece.len() > DATA_BYTES_MIN {
                        true => on_one_line(piece),
                        false => piece,
                    };
                    pieces.into_iter().map(tame).collect::<Vec<_>>().concat()
                };
                let encoded = written(encode_pieces_with_id("i-1", pieces.clone()));
                assert_eq!(encoded, encode_copied(Some("i-1"), &message));
                assert_eq!(written(encode_pieces(pieces)), encode_copied(None, &message));
            }
        }
    }

    #[test]
    fn all_three_line_breaks_end_a_line_at_once() {
        let (out, _) = read(&[b"data: a\r\n\r", b"\ndata: b\r\rdata: c\n\ndata: d\r\r"]);
        assert_eq!(out, ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_byte_order_mark_is_ignored_only_at_the_start_of_a_stream() {
        let (out, _) = read(&[b"\xef\xbb", b"\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"]);
        assert_eq!(out, ["a"]);
    }

    #[test]
    fn an_event_without_a_type_is_a_message() {
        let mut events = SseDecoder::new(1000);
        events.push("event: endpoint\ndata: /m\n\ndata: x\n\nevent: message\ndata\n\n".into());
        assert_eq!(events.next_item(), event("/m", "endpoint"));
        assert_eq!(events.next_item(), event("x", ""), "a kind is for one event");
        let Some(SseItem::Event(message)) = events.next_item() else { panic!("a third one") };
        assert!(message.is_message() && message.data.is_empty());
    }

    #[test]
    fn the_last_event_id_stays_until_another_one_arrives() {
        let (out, events) = read(&[b"id: 1\n\ndata: a\n\n"]);
        assert_eq!((out, events.last_id()), (vec!["a".to_owned()], &b"1"[..]));
        let (_, events) = read(&[b"id: 1\ndata: a\n\nid: 2\ndata: b\n"]);
        assert_eq!(events.last_id(), b"1", "the second event has not ended");
        let (_, events) = read(&[b"id: 1\n\nid: 2\x003\n\n"]);
        assert_eq!(events.last_id(), b"1", "an id with NUL is none");
        let (_, events) = read(&[b"id: 1\n\nid\n\n"]);
        assert_eq!(events.last_id(), b"", "an empty id takes it back");
    }

    #[test]
    fn the_event_id_and_the_retry_delay_outlive_their_stream() {
        let (_, mut events) = read(&[b"id: 7\nretry: 250\n\nid: 8\ndata: ha"]);
        events.restart();
        assert_eq!(
            (events.last_id(), events.retry()),
            (&b"7"[..], Some(Duration::from_millis(250)))
        );
        events.push("\u{feff}lf\n\ndata: whole\n\n".into());
        assert_eq!(events.next_item(), event("whole", ""));
        assert_eq!(events.last_id(), b"7");
    }

    #[test]
    fn a_retry_delay_consists_of_digits() {
        for bad in ["", "-1", "1.5", "1s", "0x1"] {
            let (_, events) = read(&[format!("retry: {bad}\n\n").as_bytes()]);
            assert_eq!(events.retry(), None, "{bad}");
        }
        let (_, events) = read(&[b"retry: 99999999999999999999999\n\n"]);
        assert_eq!(events.retry(), Some(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn an_event_in_one_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"event: message\ndata: {\"id\":1}\n\n");
        let mut events = SseDecoder::new(1000);
        events.push(chunk.clone());
        let Some(SseItem::Event(event)) = events.next_item() else { panic!("an event") };
        assert!(chunk.as_ptr_range().contains(&event.data.as_ptr()));
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_and_the_next_one_read() {
        let mut events = SseDecoder::new(40);
        let answer = format!("{{\"result\":\"{}\",\"jsonrpc\":\"2.0\",\"id\":7}}", "x".repeat(100));
        let stream = format!("id: 3\ndata: {answer}\n\ndata: next\n\n");
        for chunk in stream.as_bytes().chunks(30) {
            events.push(Bytes::copy_from_slice(chunk));
            match events.next_item() {
                None => {}
                Some(SseItem::Oversized(oversized)) => assert_eq!(oversized.response_id(), Some(7)),
                found => assert_eq!(found, event("next", "")),
            }
        }
        assert_eq!((events.last_id(), events.skipped()), (&b"3"[..], None));
    }

    #[test]
    fn an_endless_event_takes_no_memory() {
        for endless in ["x", "data: 0123456789\n", ": "] {
            let mut events = SseDecoder::new(50);
            for _ in 0..100 {
                events.push(endless.to_owned().into());
                assert_eq!(events.next_item(), None);
            }
            assert!(events.line.len() + events.length() <= 50);
            assert!(events.skipped().is_some_and(|length| length > 50), "{endless}");
        }
    }

    /// The algorithm of the standard, applied to the whole text at once.
    fn by_the_book(text: &str) -> (Vec<(String, String)>, String) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let (mut out, mut last_id) = (Vec::new(), String::new());
        let (mut data, mut kind, mut id) = (String::new(), String::new(), String::new());
        let ended = text.rfind('\n').map_or("", |at| &text[..at]);
        for line in ended.split('\n') {
            if line.is_empty() {
                last_id.clone_from(&id);
                if let Some(data) = data.strip_suffix('\n') {
                    out.push((data.to_owned(), kind.clone()));
                }
                data.clear();
                kind.clear();
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => data += &format!("{value}\n"),
                "event" => kind = value.to_owned(),
                "id" if !value.contains('\0') => id = value.to_owned(),
                _ => {}
            }
        }
        (out, last_id)
    }

    proptest! {
        #[test]
        fn an_encoded_event_stream_is_read_back_unchanged(
            messages in prop::collection::vec("[ -~]{1,40}", 1..5), cut in 1..9usize,
        ) {
            let stream: Vec<u8> =
                messages.iter().flat_map(|message| encode_copied(None, message.as_bytes())).collect();
            let (out, _) = read(&stream.chunks(cut).collect::<Vec<_>>());
            prop_assert_eq!(out, messages);
        }

        #[test]
        fn any_stream_in_any_chunks_is_read_as_the_standard_defines(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "data", "event", "id", ":", ": ", "\n", "\n\n", "\r", "\r\n", "\0", "x", "\u{feff}",
                    "data: a", "id: 1", "event: e",
                ]),
                0..60,
            ),
            cut in 1..9usize,
        ) {
            let text = parts.concat();
            let mut events = SseDecoder::new(1000);
            let mut out = Vec::new();
            for chunk in text.as_bytes().chunks(cut) {
                events.push(Bytes::copy_from_slice(chunk));
                while let Some(item) = events.next_item() {
                    let SseItem::Event(event) = item else { panic!("not that long") };
                    let text = |bytes: Bytes| String::from_utf8(bytes.into()).expect("UTF-8");
                    out.push((text(event.data), text(event.kind)));
                }
            }
            let last_id = String::from_utf8_lossy(events.last_id()).into_owned();
            prop_assert_eq!((out, last_id), by_the_book(&text));
        }
    }
}
