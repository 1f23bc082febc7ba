//! Batches of protocol version 2025-03-26: several messages in one array, answered by one array.
//!
//! Each member keeps its bytes, as a single message does.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    ByteChunks, Message, MessageKind, ParseError,
    json_array::first_items,
    jsonrpc::{self, MessagePart},
    payloads::method,
};

/// The messages of one batch, at least one.
#[derive(Debug)]
pub struct Batch {
    members: Vec<Result<Message, ParseError>>,
}

/// The reason to reject a whole batch.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Neither JSON nor UTF-8.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// No members.
    #[error("the batch has no messages")]
    Empty,
    /// Too many members.
    #[error("the batch has {n_members} messages, and the limit is {n_max}")]
    TooLong {
        /// The number of members.
        n_members: usize,
        /// The largest permitted number.
        n_max: usize,
    },
    /// None of its members is a message.
    #[error("no member of the batch is a valid message (first member: {0})")]
    NoMessage(ParseError),
    /// A handshake among other messages, which would precede its completion.
    #[error("`initialize` is not allowed in a batch")]
    Initialize,
    /// Two requests with one id, whose answers the client could not tell apart.
    #[error("two requests of the batch have the id {0}")]
    SameId(String),
}

impl Batch {
    /// Returns whether a body must be read as a batch.
    pub fn is_batch(bytes: &[u8]) -> bool {
        bytes.trim_ascii_start().starts_with(b"[")
    }

    /// Reads a batch of at most `n_max` members. An invalid member does not affect the others.
    /// Source: JSON-RPC 2.0, "Batch".
    ///
    /// # Errors
    ///
    /// [`BatchError`] if the whole batch is rejected.
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
            return Err(BatchError::NoMessage(error));
        }
        let mut ids = HashSet::new();
        for message in self.members.iter().flatten() {
            if message.method() == Some(method::INITIALIZE) {
                return Err(BatchError::Initialize);
            }
            if message.kind() == MessageKind::Request && !ids.insert(id(message)) {
                let id = message.part(MessagePart::Id).unwrap_or_default();
                return Err(BatchError::SameId(id.to_owned()));
            }
        }
        Ok(self)
    }

    /// Returns whether any member needs an answer: a request or an invalid message.
    pub fn wants_answer(&self) -> bool {
        let is_silent = |member: &Result<Message, ParseError>| {
            member.as_ref().is_ok_and(|message| message.kind() != MessageKind::Request)
        };
        !self.members.iter().all(is_silent)
    }

    /// Returns the members in their order: messages, or the errors of invalid ones.
    pub fn into_members(self) -> impl Iterator<Item = Result<Message, ParseError>> {
        self.members.into_iter()
    }
}

/// An id as clients compare it: strings by their value, numbers by their spelling.
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

/// Joins the answers to a batch into one array, without copying large ones.
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
