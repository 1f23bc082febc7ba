//! The caller of a meta tool.

use super::MetaReply;
use crate::{
    protocol::{Message, jsonrpc::MessagePart},
    session::Session,
};

/// The caller of a meta tool, with everything that a call needs from it.
#[derive(Clone, Copy)]
pub(super) struct MetaCaller<'a> {
    /// The session of the client.
    pub(super) session: &'a Session,
    /// The reply to the client.
    pub(super) reply: &'a MetaReply,
    /// The request of the client.
    pub(super) request: &'a Message,
}

impl MetaCaller<'_> {
    /// Returns the client's progress token, as JSON text.
    pub(super) fn token(&self) -> Option<&str> {
        self.request.part(MessagePart::ProgressToken)
    }
}
