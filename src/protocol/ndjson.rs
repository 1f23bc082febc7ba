//! Newline framing: one message per line, with a bounded line length.

use bytes::{Bytes, BytesMut};

use super::{RpcError, rpc_error::INVALID_REQUEST};

/// The number of bytes kept of each end of an oversized line.
///
/// This suffices to find an id, which JSON writers put first or last.
const REMNANT_BYTES: usize = 128;

/// The longest line, in bytes, that may share a buffer with the bytes read after it: the capacity
/// of a pipe. A longer line takes the buffer along, so that no short line keeps it allocated.
const SHARED_BYTES_MAX: usize = 64 << 10;

/// A decoder that splits a byte stream into lines.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// The length of the prefix of `buffer` that contains no newline.
    searched: usize,
    length_max: usize,
    skipping: Option<OversizedLine>,
}

/// A line read from a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum NdjsonLine {
    /// A line without its newline, never empty.
    Whole(Bytes),
    /// A line over the length limit, of which only the two ends were kept.
    Oversized(OversizedLine),
}

/// The two ends and the length of an oversized line or event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OversizedLine {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes.
    pub tail: Vec<u8>,
    /// The total length in bytes.
    pub length: usize,
}

impl LineDecoder {
    /// Returns a decoder that rejects lines over `length_max` bytes.
    pub fn new(length_max: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, length_max, skipping: None }
    }

    /// Returns the buffer into which the caller reads more bytes.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the rest at the end of the stream: a last line without its newline.
    pub fn last_line(&mut self) -> Option<NdjsonLine> {
        self.buffer.extend_from_slice(b"\n");
        self.next_line()
    }

    /// Returns the next complete line, or `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<NdjsonLine> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.skipping.is_some() || self.buffer.len() > self.length_max {
                    self.discard();
                }
                return None;
            };
            let mut line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            if line.len() > SHARED_BYTES_MAX {
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if let Some(mut oversized) = self.skipping.take() {
                oversized.extend(&line);
                return Some(NdjsonLine::Oversized(oversized));
            }
            if line.len() > self.length_max {
                return Some(NdjsonLine::Oversized(OversizedLine::of(&line)));
            }
            if !line.is_empty() {
                return Some(NdjsonLine::Whole(line.freeze()));
            }
        }
    }

    /// Discards the incomplete line, including the part that is still to come. The line is later
    /// returned as [`NdjsonLine::Oversized`].
    pub fn discard(&mut self) {
        // Replaced, not cleared, so that its memory is freed.
        let chunk = std::mem::take(&mut self.buffer);
        self.searched = 0;
        self.skipping.get_or_insert_default().extend(&chunk);
    }
}

impl OversizedLine {
    /// Returns the ends of a complete line.
    pub fn of(line: &[u8]) -> Self {
        let mut oversized = Self::default();
        oversized.extend(line);
        oversized
    }

    pub(super) fn extend(&mut self, chunk: &[u8]) {
        self.length += chunk.len();
        let room = REMNANT_BYTES.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        self.tail.extend_from_slice(&chunk[chunk.len().saturating_sub(REMNANT_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(REMNANT_BYTES);
        self.tail.drain(..surplus);
    }

    /// Returns the id of the response that the line was, if its ends show it unambiguously.
    ///
    /// In the head, no member that could contain another `"id"` may precede it. In the tail, only
    /// the end of the message may follow.
    pub fn response_id(&self) -> Option<u64> {
        // Only `{"jsonrpc":"2.0","id":7,` and the like. A request from the sender has its own id.
        let in_head = self.id_in_head(&["result", "error", "params", "method"]);
        let in_head = in_head.filter(|(_, rest)| !contains(rest, "\"method\""));
        in_head
            .map(|(id, _)| id)
            .or_else(|| self.id_in_tail().filter(|_| !contains(&self.head, "\"method\"")))
    }

    /// Returns the error for the sender of the line, where messages may have `length_max` bytes.
    pub fn refusal(&self, length_max: usize) -> Bytes {
        let text = format!("the message has {} bytes, and the limit is {length_max}", self.length);
        RpcError::new(INVALID_REQUEST, "LINE_TOO_LONG", text)
            .suggest("Send less data in one message.")
            .render(self.request_id().as_deref())
    }

    /// Returns the id, as JSON text, of the request that the line was, if its ends show it
    /// unambiguously.
    pub fn request_id(&self) -> Option<String> {
        let in_head = self.id_in_head(&["\"params\""]).map(|(id, _)| id);
        in_head.or_else(|| self.id_in_tail()).map(|id| id.to_string())
    }

    /// Returns the id in the head and the text after it, if no other object and none of `members`
    /// precede it.
    fn id_in_head(&self, members: &[&str]) -> Option<(u64, &[u8])> {
        let (before, rest) = split_at_id(&self.head)?;
        let is_outermost = memchr::memchr_iter(b'{', before).count() == 1
            && !members.iter().any(|member| contains(before, member));
        integer(rest).filter(|_| is_outermost)
    }

    fn id_in_tail(&self) -> Option<u64> {
        let at = memchr::memmem::rfind(&self.tail, b"\"id\"")?;
        let (_, rest) = split_at_id(&self.tail[at..])?;
        let (id, rest) = integer(rest)?;
        // Exactly one brace: a second one would close an object that contains the id.
        (rest.trim_ascii() == b"}").then_some(id)
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

/// Splits the text at the first `"id":`.
fn split_at_id(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memmem::find(text, b"\"id\"")?;
    let rest = text[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    Some((&text[..at], rest.trim_ascii_start()))
}

fn integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let n_digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(n_digits);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// Returns `message` on one line, as the framing requires.
///
/// Within strings, JSON escapes all newlines; elsewhere a newline is white space.
pub fn on_one_line(message: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    let mut line = Vec::from(message);
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &mut LineDecoder, chunks: &[&[u8]]) -> Vec<NdjsonLine> {
        let mut out = Vec::new();
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            while let Some(line) = lines.next_line() {
                out.push(line);
            }
        }
        out
    }

    #[test]
    fn a_line_may_arrive_in_pieces_and_pieces_may_hold_lines() {
        let mut lines = LineDecoder::new(100);
        let out = feed(&mut lines, &[b"on", b"e\ntwo\r\n\n\nthr", b"ee\n"]);
        assert_eq!(
            out,
            ["one", "two", "three"]
                .map(|line| NdjsonLine::Whole(Bytes::from_static(line.as_bytes())))
        );
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
        let mut lines = LineDecoder::new(200);
        let long = format!("{{\"id\":77,\"x\":\"{}\"}}\n", "y".repeat(500));
        let out = feed(&mut lines, &[&long.as_bytes()[..300], &long.as_bytes()[300..], b"ok\n"]);

        let NdjsonLine::Oversized(oversized) = &out[0] else { panic!("{out:?}") };
        assert_eq!(oversized.length, long.len() - 1);
        assert_eq!(oversized.response_id(), Some(77));
        assert_eq!(out[1], NdjsonLine::Whole(Bytes::from_static(b"ok")));
    }

    #[test]
    fn a_discarded_line_is_reported_as_oversized_at_its_end() {
        let mut lines = LineDecoder::new(200);
        assert_eq!(feed(&mut lines, &[b"{\"id\":7,\"result\":"]), []);
        lines.discard();
        assert_eq!(lines.buffer().capacity(), 0, "its memory is given back");
        let out = feed(&mut lines, &[b"{}", b"}\nok\n"]);
        let NdjsonLine::Oversized(line) = &out[0] else { panic!("{out:?}") };
        assert_eq!((line.length, line.response_id()), (20, Some(7)));
        assert_eq!(out[1], NdjsonLine::Whole(Bytes::from_static(b"ok")));
    }

    #[test]
    fn a_short_line_does_not_keep_the_memory_of_a_long_one_before_it() {
        let mut lines = LineDecoder::new(1 << 20);
        let text = "y".repeat(SHARED_BYTES_MAX) + "\nrest";
        lines.buffer().extend_from_slice(text.as_bytes());
        let long = lines.next_line().expect("a line");
        assert_eq!(&lines.buffer()[..], b"rest");
        assert!(lines.buffer().capacity() < SHARED_BYTES_MAX, "{}", lines.buffer().capacity());
        let NdjsonLine::Whole(long) = long else { panic!("{long:?}") };
        assert!(long.is_unique(), "nothing else is in its memory");
    }

    #[test]
    fn an_id_at_the_end_of_a_long_line_is_found() {
        let mut lines = LineDecoder::new(200);
        let long = format!("{{\"x\":\"{}\",\"jsonrpc\":\"2.0\",\"id\":5}}\n", "y".repeat(500));
        let out = feed(&mut lines, &[long.as_bytes()]);
        let NdjsonLine::Oversized(oversized) = &out[0] else { panic!("{out:?}") };
        assert_eq!(oversized.response_id(), Some(5));
    }

    #[test]
    fn an_id_inside_an_oversized_line_is_not_mistaken_for_the_id_of_the_message() {
        let filler = "y".repeat(500);
        for line in [
            // A row with an id, at the head and in the tail; a request of the server.
            format!(
                "{{\"jsonrpc\":\"2.0\",\"result\":{{\"rows\":[{{\"id\":4,\"x\":\"{filler}\"}}]}},\"id\":\"text\"}}"
            ),
            format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"x\":\"{filler}\",\"id\":4}}}}"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"m\",\"params\":\"{filler}\"}}"),
            filler,
        ] {
            let mut oversized = OversizedLine::default();
            oversized.extend(line.as_bytes());
            assert_eq!(oversized.response_id(), None, "{line}");
        }
    }

    #[test]
    fn the_id_of_an_oversized_request_is_found_at_either_end() {
        let filler = "y".repeat(500);
        for (line, id) in [
            (
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"m\",\"params\":\"{filler}\"}}"
                ),
                Some("4"),
            ),
            (
                format!(
                    "{{\"method\":\"m\",\"params\":\"{filler}\",\"jsonrpc\":\"2.0\",\"id\":5}}"
                ),
                Some("5"),
            ),
            (format!("{{\"method\":\"m\",\"params\":{{\"id\":6,\"x\":\"{filler}\"}}}}"), None),
            (format!("{{\"params\":\"{filler}\",\"id\":\"text\"}}"), None),
        ] {
            let mut oversized = OversizedLine::default();
            oversized.extend(line.as_bytes());
            assert_eq!(oversized.request_id().as_deref(), id, "{line}");
        }
    }

    #[test]
    fn pretty_printed_json_is_put_on_one_line() {
        assert_eq!(
            on_one_line(Bytes::from_static(b"{\n \"a\":\"\\n\"\r\n}")),
            "{  \"a\":\"\\n\"  }"
        );
    }

    proptest::proptest! {
        #[test]
        fn lines_do_not_depend_on_the_boundaries_of_reads(
            texts in proptest::collection::vec("[a-z]{1,300}", 1..8),
            cuts in proptest::collection::vec(1..50usize, 1..60),
        ) {
            let stream = texts.join("\n") + "\n";
            let mut whole = LineDecoder::new(200);
            let expected = feed(&mut whole, &[stream.as_bytes()]);

            let mut rest = stream.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            let mut lines = LineDecoder::new(200);
            proptest::prop_assert_eq!(feed(&mut lines, &pieces), expected);
        }
    }
}
