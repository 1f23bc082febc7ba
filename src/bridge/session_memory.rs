//! The state of a session that a bridge repeats at each new attachment.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::request::{BridgedMethod, BridgedRequest};
use crate::{
    config::defaults,
    protocol::{ObjectMembers, list_page::ListKind, version},
};

/// The state of the session that a new attachment needs.
#[derive(Debug, Default)]
pub(super) struct SessionMemory {
    pub(super) handshake: Option<Bytes>,
    /// `true` once the answer was passed on.
    pub(super) has_session: bool,
    /// The lists for whose changes the client receives notifications.
    pub(super) lists: Vec<ListKind>,
    pub(super) has_batches: bool,
    pub(super) initialized: Option<Bytes>,
    pub(super) level: Option<Bytes>,
    pub(super) watched: BTreeMap<String, Bytes>,
}

impl SessionMemory {
    /// Records the state that the service has accepted.
    pub(super) fn note(&mut self, request: BridgedRequest, result: &str) {
        match request.kind {
            BridgedMethod::Initialize => {
                self.has_session = true;
                let result = ObjectMembers::read(result).unwrap_or_default();
                let agreed = result.string("protocolVersion");
                self.has_batches = agreed.is_some_and(|version| version::has_batches(&version));
                let all = result.object("capabilities");
                let announces = |list: &ListKind| {
                    all.object(list.capability()).get("listChanged") == Some("true")
                };
                let lists = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
                self.lists = lists.into_iter().filter(announces).collect();
            }
            BridgedMethod::SetLevel => self.level = request.line,
            BridgedMethod::Subscribe(uri) => {
                if let Some(line) = request.line
                    && self.watched.len() < defaults::SUBSCRIPTIONS_MAX
                {
                    self.watched.insert(uri, line);
                }
            }
            BridgedMethod::Unsubscribe(uri) => {
                self.watched.remove(&uri);
            }
            BridgedMethod::Listen { .. } | BridgedMethod::ReadOnly | BridgedMethod::Other => {}
        }
    }
}
