//! Who calls a tool of ours.

use super::MetaReply;
use crate::{
    protocol::{Message, jsonrpc::MessagePart},
    session::Session,
};

/// Who calls a tool of ours: what everything needs that makes a call of it.
#[derive(Clone, Copy)]
pub(super) struct MetaCaller<'a> {
    /// The session of the client.
    pub(super) session: &'a Session,
    /// How it is answered.
    pub(super) reply: &'a MetaReply,
    /// Its request.
    pub(super) request: &'a Message,
}

impl MetaCaller<'_> {
    /// Returns what it has given to be told of progress, JSON text.
    pub(super) fn token(&self) -> Option<&str> {
        self.request.part(MessagePart::ProgressToken)
    }
}
