//! Who calls a tool of ours.

use super::Reply;
use crate::{
    protocol::{Message, jsonrpc::Part},
    session::Session,
};

/// Who calls a tool of ours: what everything needs that makes a call of it.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    /// The session of the client.
    pub(super) session: &'a Session,
    /// How it is answered.
    pub(super) reply: &'a Reply,
    /// Its request.
    pub(super) request: &'a Message,
}

impl Caller<'_> {
    /// Returns what it has given to be told of progress, JSON text.
    pub(super) fn token(&self) -> Option<&str> {
        self.request.part(Part::ProgressToken)
    }
}
