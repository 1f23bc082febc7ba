//! A JSON-RPC message as bytes, with the positions of the values that metamcp rewrites.
//!
//! A gateway must not change what it does not understand, so no message is ever parsed and
//! serialized again. One scan records the spans of the values that a hop rewrites, such as the id
//! or the progress token. [`Message::edit`] splices new text into the original bytes. Unknown
//! members, key order and the spelling of numbers survive.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    byte_chunks::ByteChunks,
    nesting_depth::{self, DEPTH_MAX},
    payloads::method,
    value_span::Span,
};

mod message_part;
mod params;
mod rewrite;

pub use message_part::MessagePart;
use params::ParamSpans;

/// A JSON-RPC 2.0 message: a request, a notification or a response.
#[derive(Clone)]
pub struct Message {
    bytes: Bytes,
    kind: MessageKind,
    method: Option<Cow<'static, str>>,
    spans: Spans,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A message with a method and an id; it needs an answer.
    Request,
    /// A message with a method and no id; it gets no answer.
    Notification,
    /// A message with an id and either a result or an error.
    Response,
}

const N_PARTS: usize = MessagePart::Error as usize + 1;
type Spans = [Span; N_PARTS];

/// The reason why bytes are not a JSON-RPC message.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Not UTF-8.
    #[error("not valid JSON: {0}")]
    Encoding(#[from] std::str::Utf8Error),
    /// Invalid JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// An array, which [`super::Batch`] reads where batches are allowed.
    #[error("a batch is not accepted here: send one message per request")]
    Batch,
    /// JSON, but not a JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
    /// A member that has the wrong type or is repeated.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Member(String),
    /// A message larger than a span can address (4 GiB).
    #[error("the message has {0} bytes, more than the limit of 4 GiB")]
    TooLarge(usize),
    /// More than [`DEPTH_MAX`] nested arrays and objects, on which many parsers crash.
    #[error("arrays and objects are nested deeper than {DEPTH_MAX} levels")]
    TooDeep {
        /// The kind of the message.
        kind: MessageKind,
        /// The id as JSON text, if the message has one.
        id: Option<Box<str>>,
    },
}

impl Message {
    /// Scans `bytes` as [`Self::parse`] does, with U+FFFD in place of invalid UTF-8. A server that
    /// copies a file into its answer has still answered.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the result is not one JSON-RPC 2.0 message.
    pub fn parse_lossy(bytes: Bytes) -> Result<Self, ParseError> {
        match Self::parse(bytes.clone()) {
            Err(ParseError::Encoding(_)) => {
                Self::parse(String::from_utf8_lossy(&bytes).into_owned().into())
            }
            parsed => parsed,
        }
    }

    /// Scans `bytes` from a client or a server, which must contain exactly one message.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if `bytes` are not one JSON-RPC 2.0 message, or one that is nested too deep.
    pub fn parse(bytes: Bytes) -> Result<Self, ParseError> {
        Self::scan(bytes, true)
    }

    /// Scans `bytes` as [`Self::parse`] does, at any depth. The depth of a message that metamcp
    /// assembled from parts of others is checked when it leaves for a server.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if `bytes` are not one JSON-RPC 2.0 message.
    pub fn parse_own(bytes: Bytes) -> Result<Self, ParseError> {
        Self::scan(bytes, false)
    }

    fn scan(bytes: Bytes, has_depth_max: bool) -> Result<Self, ParseError> {
        u32::try_from(bytes.len()).map_err(|_| ParseError::TooLarge(bytes.len()))?;
        let text = std::str::from_utf8(&bytes)?;
        // serde would also accept an array, as the members in declaration order.
        if !text.trim_ascii_start().starts_with('{')
            && serde_json::from_str::<IgnoredAny>(text).is_ok()
        {
            return Err(match text.trim_ascii_start().starts_with('[') {
                true => ParseError::Batch,
                false => ParseError::Shape("it is not an object"),
            });
        }
        let envelope: Envelope<'_> = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => return Err(ParseError::Member(error.to_string())),
            Err(error) => return Err(ParseError::Json(error.to_string())),
        };
        if envelope.jsonrpc.as_ref().is_none_or(|Text(version)| version != "2.0") {
            return Err(ParseError::Shape("`jsonrpc` must be \"2.0\""));
        }
        let kind = envelope.kind()?;
        let mut spans = Spans::default();
        let mut mark = |part: MessagePart, raw: Option<&RawValue>| {
            spans[part as usize] = raw.map(|raw| span_in(text, raw.get())).into();
        };
        mark(MessagePart::Id, envelope.id);
        mark(MessagePart::Result, envelope.result);
        mark(MessagePart::Error, envelope.error);
        if let Some(params) = envelope.params {
            // A request has its token in `_meta`; the same name in `params` means something else.
            let is_progress =
                envelope.method.as_ref().is_some_and(|Text(name)| name == method::PROGRESS);
            let token = if is_progress { params.progress_token } else { params.meta_token };
            mark(MessagePart::Meta, params.meta);
            mark(MessagePart::ProgressToken, token);
            mark(MessagePart::CancelledId, params.request_id);
            mark(MessagePart::Name, params.name);
            mark(MessagePart::Uri, params.uri);
            mark(MessagePart::Cursor, params.cursor);
            mark(MessagePart::ProtocolVersion, params.protocol_version);
            mark(MessagePart::Capabilities, params.capabilities);
            mark(MessagePart::Level, params.level);
            mark(MessagePart::Progress, params.progress);
            mark(MessagePart::RequestState, params.request_state);
            mark(MessagePart::InputResponses, params.input_responses);
            mark(MessagePart::Reference, params.reference);
        }
        // Names of known methods are not copied.
        let method = envelope.method.map(|Text(name)| match method::known(&name) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(name.into_owned()),
        });
        let message = Self { kind, method, spans, bytes };
        if has_depth_max && message.is_too_deep() {
            let id = message.part(MessagePart::Id).map(Into::into);
            return Err(ParseError::TooDeep { kind, id });
        }
        Ok(message)
    }

    /// Returns a request of metamcp with `params` as JSON text, or without parameters.
    ///
    /// Its id is 0, which the sender replaces.
    ///
    /// # Panics
    ///
    /// If `params` is not JSON: a bug in metamcp, since no such text comes from outside.
    pub fn request(method: &str, params: Option<&str>) -> Self {
        Self::own(r#""id":0,"#, method, params)
    }

    /// Returns a notification of metamcp with `params` as JSON text, or without parameters. Panics
    /// like [`Self::request`].
    pub fn notification(method: &str, params: Option<&str>) -> Self {
        Self::own("", method, params)
    }

    fn own(id: &str, method: &str, params: Option<&str>) -> Self {
        let method = serde_json::Value::from(method);
        let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"method":{method}{params}}}"#);
        Self::parse_own(text.into()).expect("our own message is JSON-RPC")
    }

    /// Returns a response to the request whose id is the JSON text `id`.
    pub fn response(id: &str, result: &str) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
    }

    /// Returns an error response to the request whose id is the JSON text `id`.
    pub fn error(id: &str, error: &str) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
    }

    /// Returns whether arrays and objects are nested deeper than [`DEPTH_MAX`] levels.
    pub fn is_too_deep(&self) -> bool {
        nesting_depth::is_too_deep(&self.bytes)
    }

    /// Returns the kind of the message.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the method; `None` for a response.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Returns `part` as JSON text.
    pub fn part(&self, part: MessagePart) -> Option<&str> {
        let range = self.range(part)?;
        // The span covers a whole JSON value of valid UTF-8.
        std::str::from_utf8(&self.bytes[range]).ok()
    }

    /// Returns `part` as JSON text that shares the memory of the message.
    pub fn slice(&self, part: MessagePart) -> Option<Bytes> {
        Some(self.bytes.slice(self.range(part)?))
    }

    /// Returns `part` unescaped if it is a JSON string.
    pub fn string(&self, part: MessagePart) -> Option<String> {
        self.unescaped(part).map(Cow::into_owned)
    }

    /// Returns `part` unescaped if it is a JSON string, without a copy if it has no escapes.
    pub fn unescaped(&self, part: MessagePart) -> Option<Cow<'_, str>> {
        let text = self.part(part)?;
        // Most strings are as they are written.
        match text.strip_prefix('"')?.strip_suffix('"') {
            Some(plain) if !plain.as_bytes().contains(&b'\\') => Some(Cow::Borrowed(plain)),
            _ => serde_json::from_str(text).ok().map(Cow::Owned),
        }
    }

    /// Returns `part` if it is an unsigned integer, as are the ids and tokens that metamcp assigns.
    pub fn integer(&self, part: MessagePart) -> Option<u64> {
        self.part(part)?.parse().ok()
    }

    /// Returns the bytes as received.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Moves the bytes into the buffer that `wrap` returns, which must hold the same bytes.
    ///
    /// # Errors
    ///
    /// Those of `wrap`.
    pub fn wrapped<E>(self, wrap: impl FnOnce(Bytes) -> Result<Bytes, E>) -> Result<Self, E> {
        let length = self.bytes.len();
        let bytes = wrap(self.bytes)?;
        debug_assert_eq!(bytes.len(), length, "the spans still hold");
        Ok(Self { bytes, ..self })
    }

    /// Returns the bytes with each given part replaced by JSON text. Parts that the message does
    /// not have are skipped.
    pub fn edit<const N: usize>(&self, edits: [(MessagePart, &str); N]) -> Bytes {
        self.edit_in_pieces(edits).join()
    }

    /// Works like [`Message::edit`], without copying a large message.
    pub fn edit_in_pieces<const N: usize>(&self, edits: [(MessagePart, &str); N]) -> ByteChunks {
        let mut edits = edits.map(|(part, text)| (self.range(part), text));
        edits.sort_by_key(|(range, _)| range.as_ref().map(|range| range.start));
        let present = |(range, text): (Option<Range<usize>>, _)| Some((range?, text));
        ByteChunks::splice(&self.bytes, edits.into_iter().filter_map(present))
    }

    /// Returns the message with one part replaced by JSON text, without scanning it again.
    #[must_use]
    pub fn with(&self, part: MessagePart, text: &str) -> Self {
        let Some(range) = self.spans[part as usize].get() else { return self.clone() };
        let end = range.start + u32::try_from(text.len()).unwrap_or(u32::MAX);
        let shifted = |offset: u32| offset - range.end + end;
        let spans = self.spans.map(|span| match span.get() {
            Some(span) if span.start >= range.end => {
                Some(shifted(span.start)..shifted(span.end)).into()
            }
            Some(span) if span == range => Some(span.start..end).into(),
            _ => span,
        });
        Self {
            bytes: self.edit([(part, text)]),
            kind: self.kind,
            method: self.method.clone(),
            spans,
        }
    }

    fn range(&self, part: MessagePart) -> Option<Range<usize>> {
        let range = self.spans[part as usize].get()?;
        Some(range.start as usize..range.end as usize)
    }
}

/// Returns the position of `part`, a slice of `whole`, within it.
pub fn span_in(whole: &str, part: &str) -> Range<u32> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    // `Message::parse` rejects texts that are too large.
    let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    narrow(start)..narrow(start + part.len())
}

impl fmt::Debug for Message {
    /// Prints the method and the size only: the content may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("kind", &self.kind)
            .field("method", &self.method)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "params::members")]
    params: Option<ParamSpans<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A string that is copied only if it contains escapes. In an `Option`, serde always copies a
/// `Cow`.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Envelope<'_> {
    fn kind(&self) -> Result<MessageKind, ParseError> {
        let id = self.id.map(|id| id.get().as_bytes()[0]);
        match (self.method.is_some(), id, self.result.is_some(), self.error.is_some()) {
            (true, None, false, false) => Ok(MessageKind::Notification),
            (true, Some(b'"' | b'-' | b'0'..=b'9'), false, false) => Ok(MessageKind::Request),
            (true, Some(_), false, false) => {
                Err(ParseError::Shape("`id` must be a string or a number"))
            }
            // A null id answers a request that could not be read.
            (false, Some(b'"' | b'-' | b'0'..=b'9' | b'n'), result, error) if result != error => {
                Ok(MessageKind::Response)
            }
            _ => Err(ParseError::Shape(
                "a request needs `method` and `id`, a response needs `id` and either `result` or `error`",
            )),
        }
    }
}

/// Reads a member that is present, `null` included.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
