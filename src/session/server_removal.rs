//! What becomes of the clients of a server that is no longer declared.

use std::sync::Arc;

use super::{Asked, ServerScope, Session, SessionRegistry};
use crate::name::ServerName;

impl SessionRegistry {
    /// Lets go of what clients have with `servers`, which are not declared any more: at a path that is
    /// not there, nobody can answer a question, and nothing is told any more.
    ///
    /// In the merged view, a question can still be answered while its server finishes what runs. The
    /// stream of a session goes on, because its server may be declared again.
    pub fn release(&self, servers: &[ServerName]) {
        if servers.is_empty() {
            return;
        }
        self.shelf.withdraw(servers);
        let is_of_one = |session: &&Arc<Session>| match &session.scope {
            ServerScope::Every | ServerScope::Tools => false,
            ServerScope::One(server) => servers.contains(server),
        };
        let sessions: Vec<_> = self.read().values().filter(is_of_one).cloned().collect();
        for session in sessions {
            session.withdraw_questions();
            if session.kind.is_ephemeral() {
                session.outbox.close();
            }
        }
    }
}

impl Session {
    /// Has every question refused that the client has not answered.
    fn withdraw_questions(&self) {
        let asked: Vec<Asked> = self.memory().asked.drain().map(|(_, asked)| asked).collect();
        // Without the lock: the servers are told.
        asked.into_iter().for_each(|asked| asked.question.withdraw());
    }
}
