//! Sessions that last as long as one request of the modern era: what it wants of the servers, which
//! clients share, counts with what others want, and is taken back with it.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use super::{ServerScope, Session, SessionRegistry, SessionScope};
use crate::{
    connection::SessionOwner,
    holder::Holder,
    pool::{OneShotClient, ServerSlot},
    protocol::LoggingLevel,
};

/// A session that ends when it is dropped.
pub struct EphemeralSession {
    sessions: Arc<SessionRegistry>,
    session: Arc<Session>,
    key: Arc<str>,
}

impl SessionRegistry {
    /// Opens a session that no client knows the id of and that sends no calls. Its client wants to see log messages of this
    /// `level`, of the servers in `scope`.
    pub fn open_ephemeral(
        self: &Arc<Self>,
        scope: ServerScope,
        level: Option<LoggingLevel>,
    ) -> EphemeralSession {
        let number = self.n_keys.fetch_add(1, Ordering::Relaxed) + 1;
        // No header can have this as its value.
        let key: Arc<str> = format!("\0{number}").into();
        let session = Session::new(SessionScope::Passing, scope, Holder::SERVICE);
        if level.is_some() {
            session.memory().level = level;
            self.n_levels.fetch_add(1, Ordering::Relaxed);
        }
        let session = Arc::new(session);
        self.n_passing.fetch_add(1, Ordering::Relaxed);
        self.write().insert(Arc::clone(&key), Arc::clone(&session));
        EphemeralSession { sessions: Arc::clone(self), session, key }
    }

    /// Returns somebody who is nobody else, with these capabilities, JSON text.
    pub fn guest(&self, capabilities: &str) -> OneShotClient {
        let key = self.n_keys.fetch_add(1, Ordering::Relaxed) + 1;
        OneShotClient::new(Arc::clone(&self.pool), SessionOwner::new(key, capabilities))
    }

    /// Tells a server what its clients want now.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is told all the same.
    pub async fn reconcile(&self, session: &Session, slot: &ServerSlot) {
        slot.set_demand(session.owner(), || self.client_demand(slot, session)).await;
    }
}

impl EphemeralSession {
    /// Returns the session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for EphemeralSession {
    fn drop(&mut self) {
        self.sessions.forget(&self.key);
        self.sessions.n_passing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for EphemeralSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passing").field("key", &self.key).finish_non_exhaustive()
    }
}
