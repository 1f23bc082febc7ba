//! Batches of protocol version 2025-03-26: several messages in one array, and their answers in
//! another.
//!
//! A member keeps its bytes, as a message that comes alone does.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    ByteChunks, Message, MessageKind, ParseError,
    json_array::first_items,
    jsonrpc::{self, MessagePart},
    payloads::method,
};

/// Messages that came together, at least one of them.
#[derive(Debug)]
pub struct Batch {
    members: Vec<Result<Message, ParseError>>,
}

/// Why an array is no batch, so that nothing of it is done.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Not JSON at all, or not UTF-8.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// It has no members.
    #[error("a batch without messages")]
    Empty,
    /// It has too many.
    #[error("a batch of {n_members} messages, and there may be {n_max}")]
    TooLong {
        /// How many it has.
        n_members: usize,
        /// How many it may have.
        n_max: usize,
    },
    /// None of its members is a message.
    #[error("a batch without any message: the first member is {0}")]
    Nothing(ParseError),
    /// The handshake is among them, and the others would come before its end.
    #[error("`initialize` in a batch")]
    Initialize,
    /// Two requests have the same id: nobody could tell their answers apart.
    #[error("a batch with two requests whose id is {0}")]
    SameId(String),
}

impl Batch {
    /// Tells whether a body is to be read as a batch.
    pub fn is_batch(bytes: &[u8]) -> bool {
        bytes.trim_ascii_start().starts_with(b"[")
    }

    /// Reads a batch of at most `n_max` members. A member that is no message does not spoil the
    /// others. Source: JSON-RPC 2.0, "Batch".
    ///
    /// # Errors
    ///
    /// [`BatchError`] when nothing of it can be done.
    pub fn parse(bytes: &Bytes, n_max: usize) -> Result<Self, BatchError> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| BatchError::Json(error.to_string()))?;
        let (raw, n_members) =
            first_items(text, n_max).map_err(|error| BatchError::Json(error.to_string()))?;
        if n_members > n_max {
            return Err(BatchError::TooLong { n_members, n_max });
        }
        let slice = |raw: &RawValue| {
            let span = jsonrpc::span_in(text, raw.get());
            bytes.slice(span.start as usize..span.end as usize)
        };
        let members = raw.into_iter().map(|raw| Message::parse(slice(raw))).collect();
        Self { members }.checked()
    }

    fn checked(mut self) -> Result<Self, BatchError> {
        if self.members.is_empty() {
            return Err(BatchError::Empty);
        }
        if self.members.iter().all(Result::is_err) {
            let Err(error) = self.members.swap_remove(0) else { return Err(BatchError::Empty) };
            return Err(BatchError::Nothing(error));
        }
        let mut ids = HashSet::new();
        for message in self.members.iter().flatten() {
            if message.method() == Some(method::INITIALIZE) {
                return Err(BatchError::Initialize);
            }
            if message.shape() == MessageKind::Request && !ids.insert(id(message)) {
                let id = message.part(MessagePart::Id).unwrap_or_default();
                return Err(BatchError::SameId(id.to_owned()));
            }
        }
        Ok(self)
    }

    /// Tells whether anything of it is to be answered: a request, or what is no message.
    pub fn wants_answer(&self) -> bool {
        let is_silent = |member: &Result<Message, ParseError>| {
            member.as_ref().is_ok_and(|message| message.shape() != MessageKind::Request)
        };
        !self.members.iter().all(is_silent)
    }

    /// Returns its members in their order: messages, and why others are none.
    pub fn into_members(self) -> impl Iterator<Item = Result<Message, ParseError>> {
        self.members.into_iter()
    }
}

/// An id as clients compare it: strings by what they say, numbers by how they are written.
#[derive(PartialEq, Eq, Hash)]
enum Id {
    Text(String),
    Number(String),
}

fn id(message: &Message) -> Id {
    match message.string(MessagePart::Id) {
        Some(text) => Id::Text(text),
        None => Id::Number(message.part(MessagePart::Id).unwrap_or_default().to_owned()),
    }
}

/// Joins the answers to a batch in one array, without a copy of a large one.
pub fn merge(answers: impl IntoIterator<Item = ByteChunks>) -> ByteChunks {
    let mut pieces = vec![Bytes::from_static(b"[")];
    for answer in answers {
        if pieces.len() > 1 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.extend(answer);
    }
    pieces.push(Bytes::from_static(b"]"));
    ByteChunks::Many(pieces)
}

#[cfg(test)]
mod tests;
