//! Server-sent events: an encoder for our answers, a parser for those of upstreams.

use bytes::{Bytes, BytesMut};

/// What keeps a silent stream alive: a comment, which every parser ignores.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Encodes one JSON message as an event.
pub fn encode(message: &[u8]) -> Bytes {
    encode_with_id(None, message)
}

/// Encodes an event without data, which tells a client where the stream begins.
pub fn encode_priming(id: &str) -> Bytes {
    format!("id: {id}\ndata:\n\n").into()
}

/// Encodes one JSON message as an event with an id, which has no line break.
pub fn encode_with_id(id: Option<&str>, message: &[u8]) -> Bytes {
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

/// Cuts a stream into events and hands out their data.
///
/// Fields other than `data` are read past; an event without data is none.
/// Source: WHATWG HTML, "Server-sent events".
#[derive(Debug)]
pub struct Events {
    buffer: BytesMut,
    searched: usize,
    data: BytesMut,
    has_data: bool,
    has_begun: bool,
    length_max: usize,
}

/// An event longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {length_max} bytes")]
pub struct TooLong {
    /// The limit in bytes.
    pub length_max: usize,
}

impl Events {
    /// Returns a parser that refuses events with more than `length_max` bytes of data.
    pub fn new(length_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            data: BytesMut::new(),
            has_data: false,
            has_begun: false,
            length_max,
        }
    }

    /// Adds bytes of the stream. A byte order mark at its very beginning means nothing.
    pub fn push(&mut self, chunk: &[u8]) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let mark: &[u8] = if is_first { b"\xef\xbb\xbf" } else { b"" };
        self.buffer.extend_from_slice(chunk.strip_prefix(mark).unwrap_or(chunk));
    }

    /// Returns the data of the next complete event, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`TooLong`] when an event passes the limit; the stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<Bytes>, TooLong> {
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) {
            let end = self.searched + found;
            // A carriage return at the very end may be half of a line break.
            if self.buffer[end] == b'\r' && end + 1 == self.buffer.len() {
                self.searched = end;
                return Ok(None);
            }
            let width = if self.buffer[end..].starts_with(b"\r\n") { 2 } else { 1 };
            let line = self.buffer.split_to(end + width);
            self.searched = 0;
            let line = &line[..end];
            if line.is_empty() {
                if std::mem::take(&mut self.has_data) {
                    return Ok(Some(self.data.split().freeze()));
                }
                continue;
            }
            self.field(line);
            if self.data.len() > self.length_max {
                return Err(TooLong { length_max: self.length_max });
            }
        }
        self.searched = self.buffer.len();
        if self.data.len() + self.buffer.len() > self.length_max {
            return Err(TooLong { length_max: self.length_max });
        }
        Ok(None)
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        if name == b"data" {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.extend_from_slice(b"\n");
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Bytes> {
        let mut events = Events::new(1000);
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(chunk);
            while let Some(event) = events.next_event().expect("short events") {
                out.push(event);
            }
        }
        out
    }

    #[test]
    fn comments_ids_and_events_without_data_are_read_past() {
        let out = read(&[b": hi\n\nid: 1\nretry: 5\ndata:\n\nevent: x\n\ndata: a\ndata:b\n\n"]);
        assert_eq!(out, [Bytes::from_static(b""), Bytes::from_static(b"a\nb")]);
    }

    #[test]
    fn all_three_line_breaks_end_a_line() {
        let out = read(&[b"data: a\r\n\r", b"\ndata: b\r\rdata: c\n\n"]);
        assert_eq!(out, ["a", "b", "c"].map(|text| Bytes::from_static(text.as_bytes())));
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut events = Events::new(10);
        events.push(b"data: 0123456789abc");
        assert_eq!(events.next_event(), Err(TooLong { length_max: 10 }));
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_read_back(
            messages in proptest::collection::vec("[ -~]{1,40}", 1..5), cut in 1..9usize,
        ) {
            let stream: Vec<u8> =
                messages.iter().flat_map(|message| encode(message.as_bytes())).collect();
            let out = read(&stream.chunks(cut).collect::<Vec<_>>());
            proptest::prop_assert_eq!(out, messages);
        }
    }
}
