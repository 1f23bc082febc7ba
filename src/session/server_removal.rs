//! The end of the client state for a server that is no longer declared.

use std::sync::Arc;

use super::{PendingServerRequest, ServerScope, Session, SessionRegistry};
use crate::server_name::ServerName;

impl SessionRegistry {
    /// Releases the state that clients have for `servers`, which are no longer declared. On a
    /// removed path, no client can answer a question or get messages.
    ///
    /// In the merged view, clients can still answer while the server finishes its running requests.
    /// A session's stream stays open, because its server may be declared again.
    pub(super) fn release(&self, servers: &[ServerName]) {
        if servers.is_empty() {
            return;
        }
        self.held_calls.withdraw(servers);
        let is_of_removed = |session: &&Arc<Session>| match &session.scope {
            ServerScope::Every | ServerScope::Tools => false,
            ServerScope::One(server) => servers.contains(server),
        };
        let sessions: Vec<_> = self.read().values().filter(is_of_removed).cloned().collect();
        for session in sessions {
            session.withdraw_questions();
            if session.is_ephemeral() {
                session.outbox.close();
            }
        }
    }
}

impl Session {
    /// Refuses every question that the client has not answered.
    fn withdraw_questions(&self) {
        let pending: Vec<PendingServerRequest> =
            self.memory().questions.drain().map(|(_, pending)| pending).collect();
        // Without the lock, because this notifies the servers.
        pending.into_iter().for_each(|pending| pending.question.withdraw());
    }
}
