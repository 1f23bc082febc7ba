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
    pub(super) is_greeted: bool,
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
            BridgedMethod::Handshake => {
                self.is_greeted = true;
                let result = ObjectMembers::read(result).unwrap_or_default();
                let agreed = result.string("protocolVersion");
                self.has_batches = agreed.is_some_and(|version| version::has_batches(&version));
                let all =
                    result.get("capabilities").and_then(ObjectMembers::read).unwrap_or_default();
                let tells = |list: &ListKind| {
                    let own = all.get(list.capability()).and_then(ObjectMembers::read);
                    own.is_some_and(|own| own.get("listChanged") == Some("true"))
                };
                self.lists = [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
                    .into_iter()
                    .filter(tells)
                    .collect();
            }
            BridgedMethod::Level => self.level = request.line,
            BridgedMethod::Watching(uri) => {
                if let Some(line) = request.line
                    && self.watched.len() < defaults::WATCHED_MAX
                {
                    self.watched.insert(uri, line);
                }
            }
            BridgedMethod::Unwatching(uri) => {
                self.watched.remove(&uri);
            }
            BridgedMethod::Listening { .. } | BridgedMethod::Reading | BridgedMethod::Acting => {}
        }
    }
}
